/** What a verifying key says, if it can be read. */
export interface KeyDescription {
  /** Whether the key can be read, or the proof holds. */
  ok: boolean;
  /** Why not. */
  reason?: string;
  /** BLAKE3 of the key, as 64 hexadecimal digits: compare it with the one that you trust. */
  keyDigest?: string;
  /** The name of the circuit: the words of whoever made the key, which nothing checks. */
  circuit?: string;
  /** The parameters of the circuit: the words of whoever made the key, which nothing checks. */
  parameters?: unknown;
  /** The number of subcircuits. */
  subcircuits?: number;
  /** Whether proofs under the key are zero-knowledge. */
  zeroKnowledge?: boolean;
  /** Who must be trusted, in one sentence. */
  trust?: string;
  /** Whether it is a test key, under which anybody can forge proofs. */
  testKey?: boolean;
  /** The names of the public values, in the key's order. */
  publicNames?: string[];
  /** The number of wires whose values the key fixes. */
  constants?: number;
}

/** The verdict on a proof. */
export interface Verdict extends KeyDescription {
  /** The time of the verification. */
  seconds: number;
}

export interface VerifyOptions {
  /** Refuses every key but the one with this digest (64 hexadecimal digits). Always set it, unless the key comes with your program. */
  keyDigest?: string;
  /** For tests only: accepts keys from a known seed, under which anybody can forge proofs. */
  acceptTestKeys?: boolean;
}

type PublicValue = string | number | bigint;

/**
 * Loads the verifier; call it once, before anything else.
 * @param source the WebAssembly module, its bytes, or a response with them; by default `hekaton_wasm.wasm` beside this file
 */
export default function init(
  source?: WebAssembly.Module | BufferSource | Response | Promise<Response | BufferSource>,
): Promise<void>;

/**
 * Verifies a proof. It never throws, whatever the bytes: a refusal has `ok: false` and a `reason`.
 * @param publicValues JSON text, or the values: by name, or as an array in the key's order. Write numbers above 2^53 as
 *   strings (decimal, or hexadecimal with 0x) or as BigInts.
 */
export function verify(
  key: Uint8Array | ArrayBuffer,
  proof: Uint8Array | ArrayBuffer,
  publicValues: string | Record<string, PublicValue> | PublicValue[],
  options?: VerifyOptions,
): Verdict;

/** Describes a verifying key. It never throws. */
export function inspectKey(key: Uint8Array | ArrayBuffer): KeyDescription;
