// The package in Node: node hekaton-wasm/tests/node.mjs PACKAGE CASES GOLDEN

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { load } from "./cases.mjs";

const [folder, cases, golden] = process.argv.slice(2);
const { default: init, verify, inspectKey } = await import(pathToFileURL(resolve(folder, "hekaton.js")));
const { report, good, bad } = load(cases);

assert.match(verify(good.key, good.proof, good.public).reason, /not loaded/);
await init();
await init();

const verdict = verify(good.key, good.proof, good.public, { keyDigest: good.digest });
assert.deepEqual([verdict.ok, verdict.reason], [true, undefined], verdict.reason);
assert.equal(verdict.keyDigest, report.key_digest);
assert.equal(verdict.circuit, report.circuit);
assert.deepEqual(verdict.parameters, report.parameters);
assert.equal(verdict.subcircuits, report.subcircuits);
assert.equal(verdict.zeroKnowledge, true);
assert.equal(verdict.trust, report.trust);
assert.deepEqual(verdict.publicNames.toSorted?.() ?? [...verdict.publicNames].sort(), Object.keys(report.public_values).sort());
assert.ok(verdict.seconds > 0);
const { seconds: _, ...about } = verdict;
assert.deepEqual(inspectKey(good.key), about);
// public values as a JavaScript object, with BigInts
const values = Object.entries(report.public_values).map(([name, value]) => [name, BigInt(value)]);
assert.ok(verify(good.key, good.proof, Object.fromEntries(values)).ok);
assert.match(verify(good.key, good.proof, { x: 2 ** 60 }).reason, /not an exact integer/);

for (const [what, files, reason] of bad) {
  const verdict = verify(files.key, files.proof, files.public, { keyDigest: files.digest });
  assert.equal(verdict.ok, false, what);
  assert.ok(verdict.reason.includes(reason), `${what}: ${verdict.reason}`);
}

// Wrong arguments are refusals, not exceptions.
for (const wrong of [undefined, null, "text", 7, {}]) {
  assert.equal(verify(wrong, good.proof, good.public).ok, false);
  assert.equal(verify(good.key, wrong, good.public).ok, false);
  assert.equal(verify(good.key, good.proof, wrong).ok, false);
  assert.equal(inspectKey(wrong).ok, false);
}
assert.match(verify(good.key, good.proof, good.public, { keyDigest: " " }).reason, /digest is empty/);

// Test keys, with the golden files: 3^4 = 81 is proven.
const [key, proof] = ["v2.key", "v2.proof"].map((name) => readFileSync(join(golden, name)));
assert.match(verify(key, proof, [3, 81]).reason, /test key/);
assert.equal(verify(key, proof, [3, 81], { acceptTestKeys: true }).ok, true);
assert.equal(verify(key, proof, [3, 82], { acceptTestKeys: true }).ok, false);
// only `true` is consent
assert.equal(verify(key, proof, [3, 81], { acceptTestKeys: "no" }).ok, false);
assert.match(inspectKey(readFileSync(join(golden, "v1.key"))).reason, /format version 1/);

// Bad bytes of many kinds, in one instance: every answer is a refusal with a reason.
let random = 1;
const draw = (n) => (random = (random * 48271) % 2147483647) % n;
for (let round = 0; round < 60; round++) {
  const [k, p] = [Buffer.from(good.key), Buffer.from(good.proof)];
  const target = round % 2 ? k : p;
  for (let i = 0; i <= round % 4; i++) target[draw(target.length)] ^= 1 + draw(255);
  const cut = target.subarray(0, round % 5 ? target.length : draw(target.length));
  const verdict = round % 2 ? verify(cut, p, good.public) : verify(k, cut, good.public);
  assert.equal(verdict.ok, false, `round ${round}`);
  assert.ok(verdict.reason.length > 10 && !/unreachable|memory access/.test(verdict.reason), verdict.reason);
}
// More input than there is memory is refused, and the verifier still works.
assert.equal(verify(good.key, { length: 1 }, good.public).ok, false);
assert.equal(inspectKey(new Uint8Array(1 << 30)).ok, false);
assert.ok(verify(good.key, good.proof, good.public).ok);

const times = Array.from({ length: 11 }, () => verify(good.key, good.proof, good.public).seconds * 1000);
times.sort((a, b) => a - b);
console.log(`Node ${process.version}: all verdicts are right; first ${(verdict.seconds * 1000).toFixed(0)} ms, median ${times[5].toFixed(0)} ms`);
