// The page in Chromium: node hekaton-wasm/tests/browser.mjs SITE CASES [SCREENSHOTS]

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { load } from "./cases.mjs";
import { open } from "./chromium.mjs";
import { serve } from "./serve.mjs";

const [site, cases, screenshots] = process.argv.slice(2);
const { report, good, bad } = load(cases);

const server = await serve(site);
const page = await open(server.url);
const text = (id) => page.value(`document.getElementById(${JSON.stringify(id)}).textContent`);

/** Fills the form, presses the button and returns the verdict that the page shows. */
async function judge(name, files) {
  const folder = join(resolve(cases), "browser");
  mkdirSync(folder, { recursive: true });
  for (const slot of ["key", "proof"]) {
    const file = join(folder, `${slot} of ${name}`);
    writeFileSync(file, files[slot]);
    await page.choose(`#${slot}`, file);
    await page.until(`document.getElementById("${slot}-state").textContent.includes(${JSON.stringify(`${slot} of ${name}`)})`);
  }
  const set = (id, value) => page.value(`{
    const field = document.getElementById("${id}");
    field.value = ${JSON.stringify(value)};
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }`);
  await set("public", files.public);
  await set("digest", files.digest);
  await page.until(`!document.getElementById("verify").disabled && document.getElementById("result").hidden`);
  await page.value(`document.getElementById("verify").click()`);
  await page.until(`!document.getElementById("result").hidden`);
  return {
    kind: await page.value(`document.getElementById("result").className`),
    title: await text("verdict-title"),
    reason: await text("verdict-reason"),
  };
}

try {
  const verdict = await judge("a good proof", good);
  assert.deepEqual([verdict.kind, verdict.title], ["holds", "The proof holds"], verdict.reason);
  assert.equal(await text("key-digest"), report.key_digest);
  assert.equal(await text("circuit"), report.circuit);
  assert.deepEqual(JSON.parse(await text("parameters")), report.parameters);
  assert.equal(await text("trust"), report.trust);
  assert.equal(await text("digest-verdict"), "This is the expected key.");
  const first = await text("seconds");
  if (screenshots) {
    mkdirSync(screenshots, { recursive: true });
    for (const [width, scheme] of [[1000, "light"], [1000, "dark"], [390, "light"]]) {
      writeFileSync(join(screenshots, `${width}-${scheme}.png`), await page.screenshot(width, 1100, scheme));
    }
  }

  // Without an expected digest, the page must not just say yes.
  const unpinned = await judge("a good proof", { ...good, digest: "" });
  assert.deepEqual([unpinned.kind, unpinned.title], ["unpinned", "The proof holds under this key"]);
  for (const [what, files, reason] of bad) {
    const verdict = await judge(what, files);
    assert.deepEqual([verdict.kind, verdict.title], ["refused", "Not accepted"], what);
    assert.ok(verdict.reason.toLowerCase().includes(reason.toLowerCase()), `${what}: ${verdict.reason}`);
  }
  if (screenshots) writeFileSync(join(screenshots, "refused.png"), await page.screenshot(1000, 1100, "light"));

  // A verdict disappears as soon as something in the form changes.
  await page.value(`document.getElementById("public").dispatchEvent(new Event("input", { bubbles: true }))`);
  assert.equal(await page.value(`document.getElementById("result").hidden`), true);

  const times = await page.value(`(async () => {
    const { default: init, verify } = await import("./hekaton.js");
    await init();
    const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const [key, proof] = [bytes("${good.key.toString("base64")}"), bytes("${good.proof.toString("base64")}")];
    return Array.from({ length: 11 }, () => verify(key, proof, ${JSON.stringify(good.public)}).seconds * 1000).sort((a, b) => a - b);
  })()`);

  // The page has asked for its own files only, and nothing went wrong behind the scenes.
  const asked = page.messages.filter((m) => m.method === "Network.requestWillBeSent").map((m) => m.params.request.url);
  const own = ["", "page.css", "page.js", "hekaton.js", "hekaton_wasm.wasm"].map((file) => server.url + file);
  assert.deepEqual([...new Set(asked)].filter((url) => !own.includes(url) && !url.startsWith("data:")), []);
  const wrong = page.messages.filter((m) => m.method === "Runtime.exceptionThrown" || m.params?.entry?.level === "error");
  assert.deepEqual(wrong, []);
  const version = (await page.send("Browser.getVersion")).product;
  console.log(`${version}: the page's verdicts are right; first ${first}, median ${times[5].toFixed(0)} ms`);
} finally {
  await page.close();
  server.stop();
}
