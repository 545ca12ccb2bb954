// A page of figures in Chromium: node benches/tests/page.mjs INDEX.html EXPERIMENT...
// Fails unless each experiment's figure is drawn, nothing is asked from elsewhere, and nothing goes wrong.

import assert from "node:assert/strict";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { open } from "../../hekaton-wasm/tests/chromium.mjs";

const [file, ...experiments] = process.argv.slice(2);
const url = pathToFileURL(resolve(file)).href;
const page = await open(url);

/** What a reader sees of each figure. Runs in the page. */
function look() {
  const size = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width > 0 || height > 0;
  };
  return [...document.querySelectorAll("figure")].map((figure) => {
    const svg = figure.querySelector("svg");
    const { width, height } = svg.getBoundingClientRect();
    // Markers are <use> of a shape, curves are paths: a reference that leads nowhere is drawn as nothing.
    const shapes = [...svg.querySelectorAll("path, use")].filter((shape) => !shape.closest("defs, clipPath"));
    return {
      title: [...document.querySelectorAll("h2")].filter((h) => h.compareDocumentPosition(figure) & 4).pop()?.textContent,
      width, height,
      shapes: shapes.filter(size).length,
      texts: [...svg.querySelectorAll("text")].filter(size).map((text) => text.textContent.trim()),
      lost: [...svg.querySelectorAll("[clip-path], [*|href]")]
        .map((e) => /#([^)"']+)/.exec(e.getAttribute("clip-path") ?? e.getAttribute("xlink:href") ?? e.getAttribute("href")))
        .filter((reference) => reference && !document.getElementById(reference[1].trim()))
        .map((reference) => reference[0]),
    };
  });
}

try {
  const figures = await page.value(`(${look})()`);
  for (const name of experiments) {
    const figure = figures.find(({ title }) => title?.startsWith(`${name}:`));
    assert.ok(figure, `${name} has no figure; there are ${figures.map(({ title }) => title).join(", ")}`);
    const { width, height, shapes, texts, lost } = figure;
    assert.ok(width > 200 && height > 100, `${name}: ${width} x ${height}`);
    // Axes, grid and labels alone; an experiment that was skipped has no more.
    assert.ok(shapes > 10 && texts.length > 3, `${name}: ${shapes} shapes, texts ${texts.join(", ")}`);
    assert.deepEqual(lost, [], `${name}: references that lead nowhere`);
  }
  const ids = await page.value(`[...document.querySelectorAll("[id]")].map((e) => e.id)`);
  assert.equal(new Set(ids).size, ids.length, "two elements have the same id");
  assert.ok(await page.value("document.documentElement.scrollWidth <= window.innerWidth"), "the page is too wide");
  assert.equal(await page.value("document.scripts.length"), 0);

  const asked = page.messages.filter((m) => m.method === "Network.requestWillBeSent").map((m) => m.params.request.url);
  assert.deepEqual([...new Set(asked)].filter((other) => other !== url), [], "only the page itself may be loaded");
  const wrong = page.messages.filter((m) =>
    m.method === "Runtime.exceptionThrown" || m.method === "Runtime.consoleAPICalled" || m.params?.entry?.level === "error");
  assert.deepEqual(wrong, []);
  const version = (await page.send("Browser.getVersion")).product;
  console.log(`${version}: ${figures.length} figures of ${file}`);
} finally {
  await page.close();
}
