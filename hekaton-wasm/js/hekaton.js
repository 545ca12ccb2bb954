// The Hekaton verifier for JavaScript:
//
//     import init, { verify } from "hekaton-wasm";
//     await init();
//     const verdict = verify(key, proof, '{"root": "0x12"}', { keyDigest });
//     if (!verdict.ok) console.error(verdict.reason);
//
// Types and documentation: hekaton.d.ts.

let compiled; // the WebAssembly.Module
let code; // the exports of its instance

/** Loads the verifier. Without an argument, hekaton_wasm.wasm in the folder of this file. */
export default async function init(source) {
  if (code) return;
  source = await (source ?? beside());
  if (source instanceof WebAssembly.Module) {
    compiled = source;
  } else if (typeof Response !== "undefined" && source instanceof Response) {
    if (!source.ok) throw new Error(`${source.url}: ${source.status} ${source.statusText}`);
    compiled = await WebAssembly.compile(await source.arrayBuffer());
  } else {
    compiled = await WebAssembly.compile(source);
  }
  start();
}

async function beside() {
  const url = new URL("hekaton_wasm.wasm", import.meta.url);
  if (url.protocol !== "file:") return fetch(url);
  const { readFile } = await import("node:fs/promises");
  return readFile(url);
}

function start() {
  code = new WebAssembly.Instance(compiled, {}).exports;
}

/** Verifies a proof. Never throws: a refusal has ok = false and a reason. */
export function verify(key, proof, publicValues, options = {}) {
  const begin = performance.now();
  const verdict = guarded(() => {
    const { keyDigest, acceptTestKeys } = options ?? {};
    // An empty digest must not be taken for none: it is a value that the caller lost.
    if (keyDigest != null && String(keyDigest).trim() === "") throw new Error("the required key digest is empty");
    const parts = [
      bytes(key, "the verifying key"),
      bytes(proof, "the proof"),
      new TextEncoder().encode(typeof publicValues === "string" ? publicValues : text(publicValues)),
      new TextEncoder().encode(keyDigest ?? ""),
    ];
    write(parts);
    return code.hekaton_verify(...parts.map((part) => part.length), acceptTestKeys === true ? 1 : 0);
  });
  return { ...verdict, seconds: (performance.now() - begin) / 1000 };
}

/** Describes a verifying key. Never throws. */
export function inspectKey(key) {
  return guarded(() => {
    write([bytes(key, "the verifying key")]);
    return code.hekaton_inspect_key();
  });
}

/**
 * Verifies what the service of a key directory has answered about a label. Never throws. The request's members are those of
 * the type LookUp in hekaton.d.ts; keys are Uint8Arrays, and everything of the service is as it came.
 */
export function verifyLookUp(request) {
  const begin = performance.now();
  const verdict = guarded(() => {
    const { keys = [], acceptTestKeys, ...rest } = request ?? {};
    const all = [...keys].map((key) => base64(bytes(key, "a verifying key")));
    // Only `true` is consent.
    write([new TextEncoder().encode(JSON.stringify({ ...rest, keys: all, acceptTestKeys: acceptTestKeys === true }))]);
    return code.hekaton_look_up();
  });
  return { ...verdict, seconds: (performance.now() - begin) / 1000 };
}

function base64(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

function bytes(value, what) {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw new Error(`${what} is not a Uint8Array`);
}

// Public values that are not text yet. Numbers above 2^53 would have lost digits: BigInts and strings keep them.
function text(values) {
  return JSON.stringify(values, (_, value) => {
    if (typeof value === "bigint") return value.toString();
    if (typeof value === "number" && !Number.isSafeInteger(value)) {
      throw new Error(`the public value ${value} is not an exact integer: write it as a string`);
    }
    return value;
  }) ?? "";
}

function write(parts) {
  const total = parts.reduce((sum, part) => sum + part.length, 0);
  let at = code.hekaton_input(total) >>> 0;
  if (at === 0) throw new Error(`${total} bytes are too many`);
  for (const part of parts) {
    new Uint8Array(code.memory.buffer).set(part, at);
    at += part.length;
  }
}

function guarded(call) {
  if (!code) return { ok: false, reason: "the verifier is not loaded: await init() first" };
  try {
    const length = call() >>> 0;
    const answer = new Uint8Array(code.memory.buffer, code.hekaton_answer() >>> 0, length);
    return JSON.parse(new TextDecoder().decode(answer));
  } catch (error) {
    // After a trap (out of memory) the instance's memory is in an unknown state: take a new one.
    if (error instanceof WebAssembly.RuntimeError) start();
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}
