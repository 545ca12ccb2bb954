// The live page in Chromium, with a real service: node orchestrator/server/tests/page.mjs ORCHESTRATOR [SCREENSHOTS]

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { open } from "../../../hekaton-wasm/tests/chromium.mjs";

const [orchestrator, screenshots] = process.argv.slice(2);
const work = mkdtempSync(join(tmpdir(), "hekaton-live-"));
const at = (name) => join(work, name);

/** A service whose prover reports half, and waits for a sign. */
async function serve(name, more) {
  writeFileSync(at("prover"), `echo '{"progress":0.5}'; while [ ! -e "${at("go")}" ]; do sleep 0.05; done; cp "$1" "$2"`);
  writeFileSync(at(`${name}.toml`), `version = 1
slots = 2
${more}
[backends.prove]
kind = "command"
command = ["sh", "${at("prover")}", "{input}", "{output}"]
unverified = true
`);
  const child = spawn(orchestrator, ["--json", "serve", "--data", at(name), "--settings", at(`${name}.toml`), "--listen", "127.0.0.1:0"],
    { stdio: ["ignore", "pipe", "ignore"] });
  const line = await new Promise((done) => createInterface(child.stdout).once("line", done));
  const ended = new Promise((done) => child.once("exit", done));
  return { url: JSON.parse(line).address, stop: () => (child.kill("SIGTERM"), ended) };
}

/** Submits a block with some inputs. */
async function submit(url, id, inputs, token, place = {}) {
  const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
  const send = async (method, path, body) => {
    const answer = await fetch(url + path, { method, headers, body });
    const text = await answer.text();
    assert(answer.ok, `${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  };
  const job = { chain: "main", block: 7, id, ...place };
  await send("PUT", `/v1/chains/${job.chain}`, JSON.stringify(job.parent ? { order: "strict", genesis: "genesis" } : { order: "none" }));
  const blobs = [];
  for (const input of inputs) {
    const digest = b3(input);
    await send("PUT", `/v1/blobs/${digest}`, input);
    blobs.push(digest);
  }
  return send("POST", "/v1/jobs", JSON.stringify({ backend: "prove", ...job, inputs: { input: blobs } }));
}

/** The BLAKE3 digest of a text of at least 16 characters: what the program prints for tokens. */
const b3 = (text) => execFileSync(orchestrator, ["token-digest"], { input: text }).toString().match(/[0-9a-f]{64}/)[0];

const [alice, bob] = ["the token of alice", "the token of bob, too"];
const cells = (column) =>
  `[...document.querySelectorAll("#jobs tbody tr")].map((row) => row.cells[${column}].textContent).join("|")`;

const service = await serve("one", "standstill_seconds = 2");
let page;
try {
  page = await open(`${service.url}/`);
  await page.until(`document.getElementById("status").textContent === "Live"`);
  await page.until(`document.querySelectorAll("#workers tbody tr").length === 1`);
  assert.equal(await page.value(`document.querySelector("#workers tbody tr").cells[2].textContent`), "prove");
  assert.equal(await page.value(`document.getElementById("no-jobs").hidden`), false);

  // A job appears, with its tasks, how far they are, and without a reload.
  await submit(service.url, "first", [1, 2, 3].map((number) => `input number ${number} of three`));
  await page.until(`${cells(2)} === "first"`);
  await page.until(`${cells(4)}.includes("2 leased") && ${cells(4)}.includes("1 ready")`);
  // Two of three tasks are half done.
  await page.until(`Math.abs(document.querySelector("#jobs progress").value - 1 / 3) < 0.01`);
  assert.equal(await page.value(cells(3)), "live");
  writeFileSync(at("go"), "");
  await page.until(`${cells(3)} === "done"`);
  await page.until(`${cells(4)} === "3 done"`);
  assert.equal(await page.value(`document.querySelector("#jobs progress").value`), 1);

  // How far a chain is, and why it stands still.
  await submit(service.url, "b1", ["the input of block one"], undefined, { chain: "strict", block: 1, parent: "genesis" });
  const chain = `[...document.querySelectorAll("#chains tbody tr")].find((row) => row.cells[0].textContent === "strict")?.textContent ?? ""`;
  await page.until(`${chain} === "strict1, b11, b1"`);
  await submit(service.url, "b2", ["the input of block two"], undefined, { chain: "strict", block: 2, parent: "b1", backend: "nowhere" });
  await page.until(`${chain}.startsWith("strict1, b12, b2block 2 b2 needs back-ends that no live process has")`);

  // It asks nobody else, and nothing went wrong.
  const asked = page.messages.filter(({ method }) => method === "Network.requestWillBeSent").map(({ params }) => params.request.url);
  for (const url of asked) assert(url.startsWith(service.url) || url.startsWith("data:"), url);
  const wrong = page.messages.filter(({ method, params }) =>
    method === "Runtime.exceptionThrown" || (method === "Log.entryAdded" && params.entry.level === "error"));
  assert.deepEqual(wrong, []);
  if (screenshots) writeFileSync(join(screenshots, "live.png"), await page.screenshot(1000, 700, "light"));

  // The service is started again: the page finds it, as the address is the same.
  await service.stop();
  await page.until(`document.getElementById("status").textContent.startsWith("The service does not answer")`);
  await page.close();

  // With tenants, the page asks whose jobs, and shows no others'.
  const tenant = (name, token) => `[tenants.${name}]\ntoken_digest = "${digests[token]}"\n`;
  const digests = {};
  for (const token of [alice, bob]) digests[token] = b3(token);
  const tenants = await serve("two", tenant("alice", alice) + tenant("bob", bob));
  try {
    await submit(tenants.url, "alices", ["an input of alice's"], alice);
    await submit(tenants.url, "bobs", ["an input of bob's"], bob);
    page = await open(`${tenants.url}/`);
    const enter = async (token) => {
      await page.until(`!document.getElementById("sign-in").hidden`);
      await page.value(`document.getElementById("token").value = ${JSON.stringify(token)}`);
      await page.value(`document.getElementById("sign-in").requestSubmit()`);
    };
    await enter("the token of mallory");
    await page.until(`document.getElementById("status").textContent === "No tenant has this token."`);
    await enter(alice);
    await page.until(`${cells(2)} === "alices"`);
    assert(!(await page.value("document.body.textContent")).includes("bobs"));
  } finally {
    await tenants.stop();
  }
  console.log("ok: the live page");
} finally {
  await service.stop();
  await page?.close();
  rmSync(work, { recursive: true, force: true });
}
