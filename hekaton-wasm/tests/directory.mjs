// The page that looks labels up, in Chromium, with a real directory and real proofs: node hekaton-wasm/tests/directory.mjs SITE WORK HEKATON

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, get } from "node:http";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { open } from "./chromium.mjs";
import { serve } from "./serve.mjs";

const [site, folder, hekaton, screenshots] = process.argv.slice(2);
const work = resolve(folder);
rmSync(work, { recursive: true, force: true });
mkdirSync(work, { recursive: true });
const at = (name) => join(work, name);
const run = (...args) => JSON.parse(execFileSync(hekaton, [...args, "--json"], { stdio: ["ignore", "pipe", "pipe"] }));

run("setup", "epochs", "-p", "profile=compress", "-p", "steps=2", "--up-to", "132", "--keys", at("keys"));
run("directory", "init", at("d"), "--keys", at("keys"));
const parameters = JSON.parse(readFileSync(at("d/parameters.json"), "utf8"));

/** Serves the directory, without proving. */
async function directory() {
  const child = spawn(hekaton, ["directory", "serve", at("d"), "--listen", "127.0.0.1:0", "--interval", "1ms", "--json"],
    { stdio: ["ignore", "pipe", "ignore"] });
  const [line] = await new Promise((done) => createInterface(child.stdout).once("line", (...args) => done(args)));
  const ended = new Promise((done) => child.once("exit", done));
  return { url: JSON.parse(line).address, stop: () => (child.kill("SIGTERM"), ended) };
}

const read = (url) => new Promise((done, failed) => {
  get(url, (answer) => {
    let text = "";
    answer.on("data", (data) => (text += data)).on("end", () => done({ answer, text }));
  }).on("error", failed);
});

/** Stands between the page and the directory, and changes answers to paths that match. */
const lies = { target: "", path: null, change: null };
const between = createServer(async (request, response) => {
  const path = lies.redirect?.(request.url) ?? request.url;
  const { answer, text } = await read(lies.target + path);
  const { "content-length": _, "transfer-encoding": __, connection: ___, ...headers } = answer.headers;
  let body = text;
  if (lies.path?.test(request.url)) {
    const object = JSON.parse(text);
    lies.change(object);
    body = JSON.stringify(object);
  }
  response.writeHead(answer.statusCode, headers).end(body);
});
await new Promise((done) => between.listen(0, "127.0.0.1", done));
const address = `http://127.0.0.1:${between.address().port}`;

const flipped = (text, where) => {
  const bytes = Buffer.from(text, "base64");
  bytes[where < 0 ? bytes.length + where : where] ^= 1;
  return bytes.toString("base64");
};

let service = await directory();
lies.target = service.url;
const insert = (label, value) => run("directory", "insert", service.url, label, value);
insert("alice", "her first key");
insert("bob", "his key");
insert("alice", "her second key");

const server = await serve(site);
const page = await open(`${server.url}directory.html`);
const text = (id) => page.value(`document.getElementById(${JSON.stringify(id)}).textContent`);
const set = (id, value) => page.value(`{
  const field = document.getElementById("${id}");
  field.value = ${JSON.stringify(value)};
  field.dispatchEvent(new Event("input", { bubbles: true }));
}`);
async function choose(slot, file, shown) {
  await page.choose(`#${slot}`, file);
  await page.until(`document.getElementById("${slot}-state").textContent.includes(${JSON.stringify(shown)})`);
}
/** Looks a label up and returns the verdict that the page shows. */
async function lookUp(label, { epoch = "", to = address } = {}) {
  await set("service", to);
  await set("label", label);
  await set("epoch", epoch);
  await page.until(`!document.getElementById("look-up").disabled && document.getElementById("result").hidden`);
  await page.value(`document.getElementById("look-up").click()`);
  await page.until(`!document.getElementById("result").hidden`);
  return {
    kind: await page.value(`document.getElementById("result").className`),
    title: await text("verdict-title"),
    reason: await text("verdict-reason"),
  };
}
const forget = () => page.value("localStorage.clear()");

try {
  writeFileSync(at("other.json"), "{}");
  await choose("parameters", at("other.json"), "has no parameters of a directory");
  await choose("parameters", at("d/parameters.json"), "parameters.json");

  // Signed, and not proven.
  const signed = await lookUp("alice");
  assert.deepEqual([signed.kind, signed.title], ["unpinned", "'alice' has version 1"], signed.reason);
  assert.match(signed.reason, /not proven/);
  assert.equal(await text("value"), "her second key");
  assert.match(await text("seen"), /^nothing/);
  const again = await lookUp("nobody");
  assert.deepEqual([again.kind, again.title], ["unpinned", "'nobody' has never had a value"], again.reason);
  assert.match(await text("seen"), /^epoch 3,/);
  // An older epoch is shown if somebody asks for it.
  const older = await lookUp("alice", { epoch: "1" });
  assert.equal(older.title, "'alice' has version 0", older.reason);
  assert.equal(await text("value"), "her first key");

  await service.stop();
  const unreachable = await lookUp("alice", { to: service.url });
  assert.deepEqual([unreachable.kind, unreachable.title], ["refused", "No answer"]);
  assert.equal(run("directory", "prove", at("d"), "--keys", at("keys")).proven, 3);
  service = await directory();
  lies.target = service.url;

  // Proven, but the page has no key.
  const noKey = await lookUp("alice");
  assert.deepEqual([noKey.kind, noKey.title], ["unpinned", "'alice' has version 1"], noKey.reason);
  assert.match(noKey.reason, /no verifying key for \d+ subcircuits/);
  const [range] = JSON.parse((await read(`${service.url}/v1/proofs`)).text).proofs;
  const { subcircuits } = JSON.parse((await read(`${service.url}/v1/proofs/${range.from}-${range.to}`)).text);
  const derived = run("keys", "derive", at("keys"), "-p", `subcircuits=${subcircuits}`, "--out", at("derived"));
  const other = run("keys", "derive", at("keys"), "-p", `subcircuits=${subcircuits + 1}`, "--out", at("derived-other"));
  assert.notEqual(derived.verifying_key_digest, other.verifying_key_digest);
  await choose("keys", at("d/parameters.json"), "not a Hekaton verifying key");
  copyFileSync(at("derived-other/verifying.key"), at("other.key"));
  copyFileSync(at("derived/verifying.key"), at("epochs.key"));
  await choose("keys", at("other.key"), "other.key");
  assert.match((await lookUp("alice")).reason, /no verifying key/);
  await choose("keys", at("epochs.key"), "epochs.key");
  const proven = await lookUp("alice");
  assert.deepEqual([proven.kind, proven.title], ["holds", "'alice' has version 1"], proven.reason);
  assert.equal(await text("proof-key"), derived.verifying_key_digest);
  assert.equal(await text("proof"), "holds for epochs 1 to 3: every change inserted a label or raised its version by one");
  const seconds = await text("seconds");
  if (screenshots) {
    mkdirSync(screenshots, { recursive: true });
    writeFileSync(join(screenshots, "directory.png"), await page.screenshot(1000, 1300, "light"));
  }
  const absent = await lookUp("nobody");
  assert.deepEqual([absent.kind, absent.title], ["holds", "'nobody' has never had a value"], absent.reason);
  assert.match(await text("seen"), /^epoch 3,/);
  const early = await lookUp("bob", { epoch: "1" });
  assert.deepEqual([early.kind, early.title], ["holds", "'bob' has never had a value"], early.reason);

  // A service, or somebody between, that lies.
  const key = /^\/v1\/keys\//;
  for (const [what, path, change] of [
    ["another value", key, (answer) => (answer.current.value = Buffer.from("a forged key").toString("base64"))],
    ["another salt", key, (answer) => (answer.current.salt = flipped(answer.current.salt, 0))],
    ["a changed path", key, (answer) => (answer.path = flipped(answer.path, -1))],
    ["a changed record", key, (answer) => (answer.record = flipped(answer.record, 40))],
    ["a changed signature", key, (answer) => (answer.record = flipped(answer.record, -1))],
    ["a newer epoch than the record's", key, (answer) => (answer.epoch += 1)],
    ["a changed proof", /^\/v1\/proofs\/\d/, (answer) => (answer.proof = flipped(answer.proof, 100))],
    ["a shorter proof", /^\/v1\/proofs\/\d/, (answer) => (answer.proof = Buffer.from(answer.proof, "base64").subarray(1).toString("base64"))],
    ["a proof of other epochs", /^\/v1\/proofs\/\d/, (answer) => (answer.from = 1)],
    ["a changed record of another epoch", /^\/v1\/records/, (answer) => (answer.records[1] = flipped(answer.records[1], 60))],
    ["a record that is missing", /^\/v1\/records/, (answer) => answer.records.splice(1, 1)],
    ["no records", /^\/v1\/records/, (answer) => (answer.records = [])],
    ["something else", key, (answer) => (answer.path = 7)],
  ]) {
    Object.assign(lies, { path, change });
    const verdict = await lookUp("alice");
    assert.equal(verdict.kind, "refused", `${what}: ${verdict.title}`);
    assert.ok(verdict.reason.length > 10, what);
    assert.equal(await page.value(`document.getElementById("about").hidden`), true, what);
  }
  // A look-up of an earlier epoch than the one that was seen.
  for (const [what, change] of [
    ["a changed proof", (answer) => (answer.entry = flipped(answer.entry, 0))],
    ["no proof", (answer) => (answer.entry = "")],
    ["a proof of other records before", (answer) => (answer.before = flipped(answer.before, -1))],
    ["half a digest", (answer) => (answer.before = Buffer.from(answer.before, "base64").subarray(16).toString("base64"))],
  ]) {
    Object.assign(lies, { path: /^\/v1\/continuation/, change });
    const verdict = await lookUp("bob", { epoch: "1" });
    assert.deepEqual([verdict.kind, /epoch 3 was seen before/.test(verdict.reason)], ["refused", true], `${what}: ${verdict.reason}`);
  }
  // The answer of an earlier epoch is as good as it was then, but not for who saw a later one.
  Object.assign(lies, { path: null, redirect: (url) => (key.test(url) ? `${url}?epoch=1` : url) });
  const rolled = await lookUp("alice");
  assert.equal(rolled.kind, "refused", rolled.title);
  assert.match(rolled.reason, /epoch 3 was seen before/);
  await forget();
  assert.equal((await lookUp("alice")).title, "'alice' has version 0", "who has seen nothing cannot know");
  await forget();
  lies.redirect = null;

  // Another directory's parameters.
  const wrong = { ...parameters, proofs: parameters.proofs.replace(/^./, (c) => (c === "0" ? "1" : "0")) };
  writeFileSync(at("wrong.json"), JSON.stringify(wrong));
  await choose("parameters", at("wrong.json"), "wrong.json");
  assert.equal((await lookUp("alice")).kind, "refused");

  // The page has asked its own server for files, and the service for answers.
  const asked = page.messages.filter((m) => m.method === "Network.requestWillBeSent").map((m) => m.params.request.url);
  assert.deepEqual(asked.filter((url) => !url.startsWith("data:") && !/^http:\/\/127\.0\.0\.1:/.test(url)), []);
  const files = asked.filter((url) => url.startsWith(server.url)).map((url) => url.slice(server.url.length));
  const own = ["directory.html", "directory.js", "page.css", "hekaton.js", "hekaton_wasm.wasm"];
  assert.deepEqual(files.filter((file) => !own.includes(file)), []);
  assert.deepEqual(page.messages.filter((m) => m.method === "Runtime.exceptionThrown"), []);
  console.log(`a directory's page: all verdicts are right; a look-up with its proof is verified in ${seconds}`);
} finally {
  await page.close();
  server.stop();
  between.close();
  between.closeAllConnections();
  await service.stop();
}
