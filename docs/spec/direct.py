"""Verifies Hekaton's direct proofs, in plain Python. Written from docs/spec/14-direct.md and docs/formats.md
alone, on the curve, the hashes and the verifying keys of verifier.py; `spec: #ANCHOR` is one of that page."""
import argparse, sys
from collections import defaultdict
from pathlib import Path
from verifier import H, Key, ONE, R, Reader, blake3, combine, decode, encode, keccak, pairing, require

def keccak256(data):
    """With the padding of the original Keccak, not that of SHA-3."""
    padded, state = bytearray(data + b"\1" + bytes(-(len(data) + 1) % 136)), bytes(200)
    padded[-1] |= 0x80
    for start in range(0, len(padded), 136):
        block = padded[start:start + 136].ljust(200, b"\0")
        state = keccak(bytes(a ^ b for a, b in zip(state, block)))
    return bytes(state[:32])

# Words: what contracts and hashes take. spec: #key, #transcript
def word(number, size=32): return number.to_bytes(size, "big")
def numbers(*values): return b"".join(word(value % R) for value in values)
def title(text): return text.ljust(32, b"\0")
def coordinates(point, size, count):
    values = [value for pair in point for value in pair[:count]] if point else [0] * 2 * count
    return b"".join(word(value, size) for value in values)
def in_G1(*points): return b"".join(coordinates(point, 64, 1) for point in points)
def in_G2(*points): return b"".join(coordinates(point, 64, 2) for point in points)

def type_map(data):
    """The number of types of a verifying key, and the digest of its type map. formats: Verifying key"""
    reader = Reader(data[10:])      # after magic bytes and version
    reader.trust(), reader.number(1), reader.text(2**16), reader.text(2**16), reader.number(8)
    k = reader.number(4)
    for _ in range(k):
        reader.text(), reader.take(32)
    return k, reader.take(32)

class DirectKey:
    """`types` are delta, eta, Theta, Sg and, with buses, ST; `instances` are St, Sb and, with buses, SV."""
    @classmethod
    def read(cls, data):
        """spec: #key-checks, formats: Direct key"""
        key, reader = cls(), Reader(data, b"HEKATNDK\1\0")
        code = reader.take(reader.number(4))
        key.verifying, (k, map_digest) = Key.read(code), type_map(code)
        n, buses = key.verifying.n, key.verifying.buses
        *_, of_alpha_beta, key.K, _, _ = key.verifying.elements
        require(n <= 4096, "the key is for more than 4,096 subcircuits")
        def points(*sizes): return [decode(reader.take(size)) for size in sizes]
        key.alpha, key.beta, key.gamma = points(48, 96, 96)
        key.type_of = [reader.number(4, range(k)) for _ in range(n)]
        key.types = [points(96, 96, 96, 48, *[48] * buses) for _ in range(k)]
        key.instances = [points(48, 48, *[48] * buses) for _ in range(n)]
        require(reader.take(32) == blake3(data[:-32]), "the checksum is wrong")
        reader.end()
        require(map_digest == blake3(b"".join(encode(c, 4) for c in key.type_of), b"hekaton-v1 type map"),
                "the types of the instances are not those of the verifying key")
        vectors = [key.gamma, *[vector for kind in key.types for vector in kind[:2]]]
        thetas = [kind[2] for kind in key.types]
        require(None not in [key.alpha, key.beta, key.K, *vectors, *thetas], "an element is infinity")
        require(len({*vectors}) == len(vectors), "two of gamma and all delta and eta are equal")
        require(H not in vectors[1:], "a delta or eta is the generator")
        require(pairing([(key.alpha, key.beta)]) == of_alpha_beta, "alpha or beta is not the verifying key's")
        key.digest = keccak256(key.words())
        return key
    def words(self):
        """What KEY, the digest, is the hash of. spec: #key"""
        verifying, k = self.verifying, len(self.types)
        m = len(verifying.public)
        public, constants = verifying.wires[:m], verifying.wires[m:]
        return b"".join([
            title(b"hekaton direct key v1"), verifying.digest, numbers(verifying.n, k, verifying.buses),
            numbers(m, *sum(public, ())), numbers(len(constants)),
            *[numbers(*wire, value) for wire, value in zip(constants, verifying.constants)],
            numbers(*self.type_of), in_G1(self.alpha), in_G2(self.beta, self.gamma), in_G1(self.K),
            *[in_G2(*kind[:3]) + in_G1(*kind[3:]) for kind in self.types],
            *[in_G1(*instance) for instance in self.instances]])

class Proof:
    """D, A, B, C and e of each subcircuit."""
    def __init__(self, key, data):
        """spec: #proof, (1) of #checks, formats: Direct proof"""
        n, reader = key.verifying.n, Reader(data, b"HEKATNDP\1\0" + key.digest)
        require(len(data) == 42 + 272 * n, "the length of the proof is wrong")
        def points(*sizes): return [decode(reader.take(size)) for size in sizes]
        self.D, AB, self.C = points(*[48] * n), points(*[48, 96] * n), points(*[48] * n)
        self.A, self.B = AB[::2], AB[1::2]
        self.e = [int.from_bytes(reader.take(32), "big") for _ in range(n)]
        require(all(value < R for value in self.e), "an e is not below r")
        reader.end()
        self.before = in_G1(*self.D)    # the challenges g, b, b_T and b_V; the rest is before r
        self.after = b"".join(in_G1(A) + in_G2(B) for A, B in zip(self.A, self.B)) + in_G1(*self.C)
        self.after += numbers(*self.e)

def words(key, proof):
    """The expanded proof, which contracts take. spec: #proof"""
    proof = Proof(key, proof)
    return proof.before + proof.after

def draw(key, public, context, proof):
    """T0, g, b, b_T, b_V, T1 and r. spec: #transcript"""
    require(len(public) == len(key.verifying.public), "the number of public values is wrong")
    require(all(value in range(R) for value in public), "a public value is not below r")
    require(len(context) == 32, "the context does not have 32 bytes")
    def challenge(state, number): return int.from_bytes(keccak256(state + word(number)), "big") % R
    T0 = keccak256(title(b"hekaton direct v1") + key.digest + context + numbers(*public) + proof.before)
    g, b, b_T, b_V = [challenge(T0, i) if i < 3 or key.verifying.buses else 0 for i in range(1, 5)]
    T1 = keccak256(T0 + proof.after)
    return T0, g, b, b_T, b_V, T1, challenge(T1, 5)

def challenges(key, public, context, proof):
    """The values of the transcript as text: hexadecimal for t0 and t1, decimal for the others."""
    values = draw(key, public, context, Proof(key, proof))
    texts = [value.hex() if isinstance(value, bytes) else str(value) for value in values]
    return dict(zip("t0 g b b_t b_v t1 r".split(), texts))

def verify(key, public, context, proof, test_keys=False):
    """spec: #checks"""
    require(test_keys or key.verifying.trust != 2, "the key is a test key")
    proof = Proof(key, proof)
    _, g, b, b_T, b_V, _, r = draw(key, public, context, proof)
    N, d = 0, 1     # (2)
    for (address, multiplicity), value in zip(key.verifying.wires, [*public, *key.verifying.constants]):
        f = g + value + b * address
        N, d = (N * f + multiplicity * d) % R, d * f % R
    require(d, "a public value is a pole")
    require((N + d * sum(proof.e)) % R == 0, "the terms of the memory check do not add up to 0")
    powers = [pow(r, i, R) for i in range(key.verifying.n)]     # (3)
    S, of_K = [], defaultdict(int)
    pairs = [(combine([(power, A)]), B) for power, A, B in zip(powers, proof.A, proof.B)]
    pairs += [(combine([(-sum(powers), key.alpha)]), key.beta)]
    for power, instance in zip(powers, key.instances):
        S += zip([power, b * power, b_V * power], instance)
    for c, (delta, eta, Theta, *of_type) in enumerate(key.types):
        members = [i for i, kind in enumerate(key.type_of) if kind == c]
        total = sum(powers[i] for i in members)
        S += zip([g * total, b_T * total], of_type)
        pairs += [(combine([(-powers[i], proof.C[i]) for i in members]), delta),
                  (combine([(-powers[i], proof.D[i]) for i in members]), eta)]
        of_K[Theta] -= sum(powers[i] * proof.e[i] for i in members)
    pairs += [(combine([(factor, key.K)]), Theta) for Theta, factor in of_K.items()]
    pairs += [(combine([(-factor, point) for factor, point in S]), key.gamma)]
    require(pairing(pairs) == ONE, "the product of the pairings is not 1")

def main(arguments):
    parser = argparse.ArgumentParser(description="Verifies direct proofs.", allow_abbrev=False)
    command = parser.add_subparsers(required=True).add_parser("verify", allow_abbrev=False)
    for name in "KEY", "PROOF", "PUBLIC":
        command.add_argument(name, type=Path)
    command.add_argument("--context", type=bytes.fromhex, default=bytes(32), metavar="HEX", help="32 bytes")
    command.add_argument("--test-keys", action="store_true", help="accept keys whose secrets are known")
    chosen = parser.parse_args(arguments)
    key = DirectKey.read(chosen.KEY.read_bytes())
    public = key.verifying.values(chosen.PUBLIC.read_bytes().decode())
    verify(key, public, chosen.context, chosen.PROOF.read_bytes(), chosen.test_keys)

if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError,
            ValueError) as error:
        sys.exit(f"refused: {error!r:.300}")
