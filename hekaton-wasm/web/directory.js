// Looking labels up. Everything that a service says is shown as text, never as markup, and only once it is verified.

import init, { inspectKey, verifyLookUp } from "./hekaton.js";

const at = (id) => document.getElementById(id);
// Keys have some kilobytes, parameters less.
const LIMIT = 1 << 20;
// The most epochs between what was seen and what is asked for: each record's signature is verified here.
const MOST_EPOCHS = 50000;
// The most bytes of an answer: 4,096 records have less than two million.
const MOST_BYTES = 8 << 20;
const held = { parameters: null, keys: [] };
let busy = false;

const loaded = init().catch((error) => refuse("The verifier could not be loaded", String(error)));

// Reads the files of a slot; `read` says what is wrong with one by throwing.
async function take(slot, files, read) {
  const [box, state] = [at(`${slot}-box`), at(`${slot}-state`)];
  box.classList.remove("set", "bad");
  try {
    await loaded;
    const all = [];
    for (const file of files) {
      if (file.size > LIMIT) throw new Error(`${file.name} is too large: ${file.size.toLocaleString("en-US")} bytes`);
      all.push(read(new Uint8Array(await file.arrayBuffer()), file.name));
    }
    box.classList.add("set");
    state.textContent = [...files].map((file) => file.name).join(", ");
    return all;
  } catch (error) {
    box.classList.add("bad");
    state.textContent = error.message;
    return [];
  } finally {
    changed();
  }
}

function readParameters(bytes, name) {
  try {
    const parameters = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (typeof parameters?.server === "string") return parameters;
  } catch {
    // Said below.
  }
  throw new Error(`${name} has no parameters of a directory`);
}

function readKey(bytes, name) {
  const about = inspectKey(bytes);
  if (!about.ok) throw new Error(`${name}: ${about.reason}`);
  return bytes;
}

// The last verdict is not about what is in the form now.
function changed() {
  at("result").hidden = true;
  at("about").hidden = true;
  ready();
}

function ready() {
  at("look-up").disabled = busy || !(held.parameters && at("service").value.trim() && at("label").value);
}

// While a look-up is under way, nothing in the form changes.
function lock(is) {
  busy = is;
  at("fields").disabled = is;
  ready();
}

function refuse(title, reason) {
  say("refused", title, reason);
}

function say(kind, title, reason) {
  at("result").className = kind;
  at("result").hidden = false;
  at("verdict-title").textContent = title;
  at("verdict-reason").textContent = reason;
}

function sentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

// Asks the service. What it says about a problem is its own text.
async function ask(service, path) {
  const signal = AbortSignal.timeout(60000);
  const response = await fetch(`${service}${path}`, { headers: { accept: "application/json" }, credentials: "omit", signal });
  const answer = await parsed(response, path);
  if (!response.ok) {
    const detail = plain(String(answer?.detail ?? "nothing more").slice(0, 300));
    throw new Error(`the service answers ${path} with status ${response.status}, and says: ${detail}`);
  }
  if (answer === null) throw new Error(`the service's answer to ${path} is no JSON`);
  return answer;
}

// The JSON of an answer; null if it is not JSON.
async function parsed(response, path) {
  const [parts, reader] = [[], response.body.getReader()];
  let size = 0;
  for (let part; !(part = await reader.read()).done; parts.push(part.value)) {
    size += part.value.length;
    if (size > MOST_BYTES) {
      await reader.cancel();
      throw new Error(`the service's answer to ${path} does not end`);
    }
  }
  try {
    return JSON.parse(await new Blob(parts).text());
  } catch {
    return null;
  }
}

// Text without characters that could change how others look.
function plain(text) {
  return text.replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");
}

// The records of epochs in a row. What a service says may be wrong, but not endless.
async function records(service, from, to) {
  const all = [];
  if (to - from > MOST_EPOCHS) {
    const more = `the records from epoch ${from} to ${to} are more than this page verifies`;
    throw new Error(`${more}; hekaton directory audit does`);
  }
  while (all.length <= to - from) {
    const some = (await ask(service, `/v1/records?from=${from + all.length}&to=${to}`)).records;
    if (!Array.isArray(some) || some.length === 0 || some.length > to - from - all.length + 1) {
      throw new Error(`the service does not give the records from epoch ${from + all.length} to ${to}`);
    }
    all.push(...some);
  }
  return all;
}

function whole(number, what) {
  if (!Number.isInteger(number) || number < 0 || number > 0xffffffff) throw new Error(`the service's ${what} is no epoch`);
  return number;
}

// The record that was seen last, by directory.
const memory = {
  name: () => `hekaton-directory:${held.parameters.profile}:${held.parameters.server}:${held.parameters.proofs}`,
  read() {
    try {
      const seen = JSON.parse(localStorage.getItem(this.name()));
      return typeof seen?.record === "string" && Number.isInteger(seen.epoch) ? seen : null;
    } catch {
      return null;
    }
  },
  // Returns whether it is kept. Another tab may have seen a later one meanwhile.
  write(seen) {
    try {
      const kept = this.read();
      if (!kept || kept.epoch < seen.epoch) localStorage.setItem(this.name(), JSON.stringify(seen));
      return true;
    } catch {
      return false;
    }
  },
};

// The proof that the record of the answer and the one that was seen are of one history.
async function continued(service, asked, current, seen) {
  const [from, to] = [Math.min(current, seen), Math.max(current, seen)];
  // An older answer than what was seen is refused, and may come from a service that has no more records.
  if (from === to || (asked === undefined && current < seen)) return undefined;
  return await ask(service, `/v1/continuation?from=${from}&to=${to}`);
}

// Asks for everything that is needed to verify a look-up.
async function lookUp(service, label, epoch) {
  const suffix = epoch === undefined ? "" : `?epoch=${epoch}`;
  const answer = await ask(service, `/v1/keys/${encodeURIComponent(label)}${suffix}`);
  const current = whole(answer.epoch, "epoch");
  const range = (await ask(service, `/v1/proofs?from=${current}`)).proofs?.[0];
  const covers = range && range.from < current && current <= range.to;
  const proof = covers ? await ask(service, `/v1/proofs/${whole(range.from, "proof")}-${whole(range.to, "proof")}`) : undefined;
  const seen = memory.read();
  const chain = await (covers ? records(service, range.from, range.to) : records(service, current, current));
  const continuation = await continued(service, epoch, current, seen?.epoch ?? current);
  const { keys, parameters } = held;
  const acceptTestKeys = at("test-keys").checked;
  const request = { parameters, keys, label, epoch, seen: seen?.record, answer, continuation, records: chain, proof, acceptTestKeys };
  return { verdict: verifyLookUp(request), seen, record: answer.record };
}

async function submit() {
  if (busy) return;
  changed();
  lock(true);
  await loaded;
  const service = at("service").value.trim().replace(/\/+$/, "");
  const label = at("label").value;
  const text = at("epoch").value.trim();
  try {
    if (!/^https?:\/\/[^/?#\s]+/.test(service)) throw new Error(`'${service}' is no address: expected http://HOST:PORT`);
    if (text && !/^\d{1,10}$/.test(text)) throw new Error(`'${text}' is no number of an epoch`);
    const { verdict, seen, record } = await lookUp(service, label, text ? Number(text) : undefined);
    if (verdict.ok) {
      show(label, verdict, seen, memory.write({ epoch: verdict.epoch, record }));
    } else {
      refuse("Not accepted", sentence(verdict.reason));
    }
  } catch (error) {
    const unreachable = error instanceof TypeError || error.name === "TimeoutError";
    refuse("No answer", unreachable ? `${service} cannot be reached, or is no directory.` : sentence(error.message));
  } finally {
    lock(false);
  }
  at("result").focus();
  at("result").scrollIntoView({ block: "nearest" });
}

function show(label, verdict, seen, isKept) {
  const { proof } = verdict;
  const title = verdict.present ? `'${label}' has version ${verdict.version}` : `'${label}' has never had a value`;
  const range = proof.from === proof.to - 1 ? `epoch ${proof.to}` : `epochs ${proof.from + 1} to ${proof.to}`;
  const proofs = {
    proven: `holds for ${range}: every change inserted a label or raised its version by one`,
    unproven: "this epoch has no proof yet: it is signed, not proven",
    unverified: `of ${range}, not verified: ${proof.reason}`,
  };
  if (proof.state !== "proven") {
    say("unpinned", title, sentence(`the record is signed and the answer is its own. The proof: ${proofs[proof.state]}`));
  } else if (at("test-keys").checked) {
    say("unpinned", title, "The proof holds, but test keys are accepted: anyone can make such proofs.");
  } else {
    say("holds", title, `The answer is that of a signed record, and the proof of its epoch holds.`);
  }
  const value = { false: "none", true: verdict.value ?? (verdict.valueHex === null ? "erased, or withheld by the service" : `${verdict.valueHex} (hexadecimal)`) };
  at("value").textContent = plain(value[verdict.present]);
  at("version").textContent = verdict.present ? `${verdict.version}, since epoch ${verdict.since}` : "none";
  const closed = new Date(1000 * verdict.closed);
  at("of-epoch").textContent = `${verdict.epoch}, closed ${Number.isNaN(closed.valueOf()) ? "at an unknown time" : closed.toISOString()}, as the service says`;
  at("record").textContent = verdict.record;
  at("seen").textContent = seen ? `epoch ${seen.epoch}, of the same history` : isKept ? "nothing: the next look-up is compared with this one" : "nothing, and this browser keeps nothing for the next time";
  at("proof").textContent = proofs[proof.state];
  at("proof-key").textContent = proof.keyDigest ?? "none";
  at("parameters-digest").textContent = verdict.parametersDigest;
  at("seconds").textContent = `${(1000 * verdict.seconds).toFixed(0)} ms`;
  at("about").hidden = false;
}

at("parameters").addEventListener("change", async () => {
  held.parameters = null;
  [held.parameters = null] = await take("parameters", at("parameters").files, readParameters);
  changed();
});
at("keys").addEventListener("change", async () => {
  held.keys = [];
  held.keys = await take("keys", at("keys").files, readKey);
  changed();
});
for (const id of ["service", "label", "epoch"]) at(id).addEventListener("input", changed);
at("test-keys").addEventListener("change", changed);
at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
