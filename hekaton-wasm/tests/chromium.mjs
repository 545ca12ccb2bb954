// Drives Debian's Chromium through the DevTools protocol over a pipe: no packages, no ports.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Starts Chromium and returns a page with the methods below. */
export async function open(url, program = process.env.CHROMIUM ?? "chromium") {
  const profile = mkdtempSync(join(tmpdir(), "hekaton-chromium-"));
  // Chromium refuses its sandbox to root, which is who runs tests in containers; it loads our own page only.
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const args = ["--headless=new", "--remote-debugging-pipe", `--user-data-dir=${profile}`, "--disable-gpu",
    "--disable-dev-shm-usage", "--no-first-run", ...sandbox, "about:blank"];
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const waiting = new Map();
  const messages = [];
  let last = 0, rest = Buffer.alloc(0), session;
  const failed = (why) => [...waiting.values()].forEach(({ reject }) => reject(why));
  child.on("error", failed);
  child.on("exit", (status) => failed(new Error(`${program} ended with ${status}`)));
  child.stdio[4].on("data", (data) => {
    rest = Buffer.concat([rest, data]);
    for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1)) {
      const message = JSON.parse(rest.subarray(0, end).toString());
      const call = waiting.get(message.id);
      waiting.delete(message.id);
      if (!call) messages.push(message);
      else if (message.error) call.reject(new Error(JSON.stringify(message.error)));
      else call.resolve(message.result);
    }
  });
  const send = (method, params = {}) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      waiting.set(id, { resolve, reject });
      child.stdio[3].write(JSON.stringify({ id, method, params, sessionId: session }) + "\0");
    });

  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  session = (await send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
  for (const domain of ["Page", "Runtime", "DOM", "Network", "Log"]) await send(`${domain}.enable`);
  await send("Page.navigate", { url });

  const page = {
    send,
    /** Everything that the page has logged, thrown, or asked the network for. */
    messages,
    /** The value of an expression in the page; promises are awaited. */
    async value(expression) {
      const answer = await send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
      if (answer.exceptionDetails) throw new Error(JSON.stringify(answer.exceptionDetails));
      return answer.result.value;
    },
    /** Waits until an expression is true. */
    async until(expression, seconds = 30) {
      const end = Date.now() + 1000 * seconds;
      while (!(await page.value(expression))) {
        if (Date.now() > end) throw new Error(`still false after ${seconds} s: ${expression}`);
        await new Promise((done) => setTimeout(done, 20));
      }
    },
    /** Chooses a file in an input, as a user would. */
    async choose(selector, file) {
      const { root } = await send("DOM.getDocument");
      const { nodeId } = await send("DOM.querySelector", { nodeId: root.nodeId, selector });
      await send("DOM.setFileInputFiles", { nodeId, files: [file] });
    },
    async screenshot(width, height, scheme) {
      await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      await send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
      const { data } = await send("Page.captureScreenshot", { captureBeyondViewport: true });
      return Buffer.from(data, "base64");
    },
    async close() {
      const ended = new Promise((done) => child.once("exit", done));
      await send("Browser.close").catch(() => {});
      await ended;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  await page.until("document.readyState === 'complete'");
  return page;
}
