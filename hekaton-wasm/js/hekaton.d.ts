/** What a verifying key says, if it can be read. */
export interface KeyDescription {
  /** Whether the key can be read, or the proof holds. */
  ok: boolean;
  /** Why not. */
  reason?: string;
  /** BLAKE3 of the key, as 64 hexadecimal digits: compare it with the one that you trust. */
  keyDigest?: string;
  /** The name of the circuit: an unverified claim of the author of the key. */
  circuit?: string;
  /** The parameters of the circuit: an unverified claim of the author of the key. */
  parameters?: unknown;
  /** The number of subcircuits. */
  subcircuits?: number;
  /** Whether proofs under the key are zero-knowledge. */
  zeroKnowledge?: boolean;
  /** Who must be trusted, in one sentence. */
  trust?: string;
  /** True for a test key, under which anyone can forge proofs. */
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
  /** For tests only: accepts keys from a known seed, under which anyone can forge proofs. */
  acceptTestKeys?: boolean;
}

type PublicValue = string | number | bigint;

/**
 * Loads the verifier; call it once, before anything else.
 * @param source the WebAssembly module, its bytes, or a response with them; by default `hekaton_wasm.wasm` in the folder of this file
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

/** A look-up in a key directory: what the caller holds, and what a service has answered. */
export interface LookUp {
  /** The content of parameters.json, from a source that you trust, not from the service. */
  parameters: object;
  /** The label. */
  label: string;
  /** The epoch that was asked for; without it, the last one. */
  epoch?: number;
  /** The last signed record that you have seen, as base64: with it, a service that shows an older state or another history is found out. */
  seen?: string;
  /** Verifying keys of the epochs' proofs, one per number of subcircuits, from a source that you trust, not from the service. */
  keys?: (Uint8Array | ArrayBuffer)[];
  /** For tests only: accepts keys from a known seed, under which anyone can forge proofs. */
  acceptTestKeys?: boolean;
  /** What GET /v1/keys/LABEL answered. */
  answer: object;
  /** What GET /v1/continuation?from=N&to=N answered for the epochs of `seen` and of the answer, the lower one first; needed if they differ. */
  continuation?: object;
  /** The signed records of epochs in a row, as base64: with those of the answer, and of both ends of the proof. */
  records: string[];
  /** What GET /v1/proofs/FROM-TO answered for the proof of the epoch, if there is one. */
  proof?: object;
}

/** The verdict on a look-up. */
export interface LookUpVerdict {
  /** Whether the answer is the directory's, and its proof holds if there is one and a key for it. */
  ok: boolean;
  /** Why not. */
  reason?: string;
  /** Whether the label has ever had a value. */
  present?: boolean;
  /** How often the value has changed. */
  version?: number | null;
  /** The first epoch with this value. */
  since?: number | null;
  /** The value if it is text; null if it is erased or withheld. */
  value?: string | null;
  /** The value's bytes, hexadecimal. */
  valueHex?: string | null;
  epoch?: number;
  /** When the epoch was closed, in seconds since 1970, as the service says. */
  closed?: number;
  /** The number of labels. */
  labels?: number;
  /** The digest of the signed record, to compare with others. */
  record?: string;
  /** The digest of the parameters. */
  parametersDigest?: string;
  /** The proof of the epoch: verified here, not there yet, or there without a verifying key for it. */
  proof?: {
    state: "proven" | "unproven" | "unverified";
    from?: number;
    to?: number;
    subcircuits?: number;
    keyDigest?: string;
    trust?: string;
    reason?: string;
  };
  /** The time of the verification. */
  seconds: number;
}

/** Verifies what the service of a key directory has answered about a label. It never throws. */
export function verifyLookUp(request: LookUp): LookUpVerdict;

/** Describes a verifying key. It never throws. */
export function inspectKey(key: Uint8Array | ArrayBuffer): KeyDescription;
