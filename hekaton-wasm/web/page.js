// The page around the verifier. Everything that a key or a caller says is shown as text, never as markup.

import init, { inspectKey, verify } from "./hekaton.js";

const at = (id) => document.getElementById(id);
// Larger files are refused before they are read; keys and proofs have some kilobytes.
const LIMIT = 64 << 20;
const MAGIC = { HEKATNVK: "key", HEKATNPF: "proof" };
const files = { key: null, proof: null };

const loaded = init().catch((error) => refuse("The verifier could not be loaded", String(error)));

function count(n) {
  return n.toLocaleString("en-US");
}

// Takes the file of a slot. `slot` is "key" or "proof".
async function take(slot, file) {
  const [box, state] = [at(`${slot}-box`), at(`${slot}-state`)];
  files[slot] = null;
  box.classList.remove("set", "bad");
  if (file.size > LIMIT) {
    box.classList.add("bad");
    state.textContent = `${file.name} is too large: ${count(file.size)} bytes`;
  } else {
    files[slot] = new Uint8Array(await file.arrayBuffer());
    box.classList.add("set");
    state.textContent = `${file.name}, ${count(file.size)} bytes`;
  }
  if (slot === "key") await describe();
  changed();
}

// Shows the key as soon as it is chosen.
async function describe() {
  await loaded;
  const about = files.key ? inspectKey(files.key) : { ok: false };
  at("about").hidden = !about.ok;
  if (about.ok) {
    show(about);
  } else if (files.key) {
    at("key-box").classList.add("bad");
    at("key-state").textContent = about.reason;
  }
}

function show(about) {
  const groups = about.keyDigest.match(/.{8}/g).map((group) => {
    const span = document.createElement("span");
    span.textContent = group;
    return span;
  });
  at("key-digest").replaceChildren(...groups);
  at("key-digest").dataset.digest = about.keyDigest;
  at("trust").textContent = about.trust;
  at("trust").className = about.testKey ? "warn" : "";
  at("zero-knowledge").textContent = about.zeroKnowledge ? "yes" : "NO: a proof can confirm a guess of the secrets";
  at("zero-knowledge").className = about.zeroKnowledge ? "" : "warn";
  at("subcircuits").textContent = count(about.subcircuits);
  const names = about.publicNames.slice(0, 12).join(", ");
  const more = about.publicNames.length > 12 ? ` and ${count(about.publicNames.length - 12)} more` : "";
  at("public-names").textContent = about.publicNames.length ? names + more : "none";
  at("circuit").textContent = about.circuit;
  at("parameters").textContent =
    typeof about.parameters === "string" ? about.parameters : JSON.stringify(about.parameters);
  compareDigest();
}

// Says whether the digest is the expected one, as soon as both are there.
function compareDigest() {
  const expected = at("digest").value.trim().toLowerCase();
  const found = at("key-digest").dataset.digest;
  const line = at("digest-verdict");
  line.className = expected ? (expected === found ? "same" : "other") : "";
  line.textContent = {
    "": "No expected digest was given.",
    same: "This is the expected key.",
    other: "This is not the expected key.",
  }[line.className];
}

// The last verdict is not about what is in the form now.
function changed() {
  at("result").hidden = true;
  at("seconds-row").hidden = true;
  at("verify").disabled = !(files.key && files.proof);
}

function refuse(title, reason) {
  say("refused", title, reason);
}

function sentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

function say(kind, title, reason) {
  at("result").className = kind;
  at("result").hidden = false;
  at("verdict-title").textContent = title;
  at("verdict-reason").textContent = reason;
}

async function submit() {
  await loaded;
  const expected = at("digest").value.trim();
  const verdict = verify(files.key, files.proof, at("public").value.trim() || "{}", {
    keyDigest: expected || undefined,
    acceptTestKeys: at("test-keys").checked,
  });
  at("seconds-row").hidden = false;
  at("seconds").textContent = `${(1000 * verdict.seconds).toFixed(0)} ms`;
  if (!verdict.ok) {
    refuse("Not accepted", sentence(verdict.reason));
  } else if (verdict.testKey) {
    say("unpinned", "The proof holds under a test key", "Anybody can make such proofs: it proves nothing.");
  } else if (!expected) {
    const compare = "Compare the digest below with the one that you trust: under another key, a proof proves something else.";
    say("unpinned", "The proof holds under this key", compare);
  } else {
    say("holds", "The proof holds", "It holds for these public values under the expected key.");
  }
  at("result").focus();
  at("result").scrollIntoView({ block: "nearest" });
}

// Drops may have several files: their first bytes say which is which, and text is the public values.
async function drop(event) {
  const slot = event.target.closest?.(".file")?.id.replace("-box", "");
  const dropped = [...event.dataTransfer.files];
  for (const file of dropped) {
    const head = new TextDecoder().decode(await file.slice(0, 8).arrayBuffer());
    if (MAGIC[head]) {
      await take(MAGIC[head], file);
    } else if (slot && dropped.length === 1) {
      await take(slot, file);
    } else if (/^\s*[[{]/.test(head) && file.size < LIMIT) {
      at("public").value = await file.text();
      changed();
    }
  }
}

for (const slot of ["key", "proof"]) {
  at(slot).addEventListener("change", () => at(slot).files[0] && take(slot, at(slot).files[0]));
}
at("public").addEventListener("input", changed);
at("test-keys").addEventListener("change", changed);
at("digest").addEventListener("input", () => {
  changed();
  if (files.key) compareDigest();
});
at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});

document.addEventListener("dragover", (event) => {
  event.preventDefault();
  for (const box of document.querySelectorAll(".file")) box.classList.toggle("over", box.contains(event.target));
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  for (const box of document.querySelectorAll(".file")) box.classList.remove("over");
  drop(event);
});
