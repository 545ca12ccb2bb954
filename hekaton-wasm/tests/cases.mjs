// A real proof with its key and public values, made by the program, and what can be wrong with them.

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Reads what scripts/wasm has made: keys/verifying.key, proof, and the report of `hekaton verify --json`. */
export function load(folder) {
  const report = JSON.parse(readFileSync(join(folder, "verified.json"), "utf8"));
  const [key, proof] = ["keys/verifying.key", "proof"].map((name) => readFileSync(join(folder, name)));
  const values = report.public_values;
  const name = Object.keys(values)[0];
  const digest = report.key_digest;
  const good = { key, proof, public: JSON.stringify(values), digest };
  return {
    report,
    good,
    /** What is changed, and what the refusal must say. */
    bad: [
      ["a changed public value", { ...good, public: JSON.stringify({ ...values, [name]: "12345" }) }, "does not hold for these public values"],
      ["a truncated proof", { ...good, proof: proof.subarray(0, -1) }, "malformed proof: a proof for this key has"],
      ["another key digest", { ...good, digest: digest.replace(/^./, (c) => (c === "0" ? "1" : "0")) }, "the verifying key is not the required one"],
      ["a missing public value", { ...good, public: "{}" }, `the value of '${name}' is missing`],
      ["a file that is no proof", { ...good, proof: Buffer.from("hello") }, "not a Hekaton proof"],
    ],
  };
}
