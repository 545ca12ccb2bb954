// The package as it is installed into a project: node project.mjs CASES, in the folder of the project

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import init, { inspectKey, verify } from "hekaton-wasm";

const read = (name) => readFileSync(join(process.argv[2], name));
const report = JSON.parse(read("verified.json"));
const key = read("keys/verifying.key");
await init();
assert.equal(inspectKey(key).keyDigest, report.key_digest);
const options = { keyDigest: report.key_digest };
assert.equal(verify(key, read("proof"), report.public_values, options).ok, true);
assert.equal(verify(key, read("proof").subarray(1), report.public_values, options).ok, false);
console.log("the installed package verifies");
