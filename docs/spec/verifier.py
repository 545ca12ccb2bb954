"""Verifies Hekaton's proofs and derives verifying keys from key families, in plain Python.
Written from docs/spec and docs/formats.md alone; `spec: PAGE#ANCHOR` and `formats: SECTION` say what is
followed. G1 and G2 are written additively and, unlike in the specification, GT multiplicatively."""
import json, re, struct, sys
from collections import Counter, defaultdict
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple
X = -0xD201000000010000
Q = (X - 1) ** 2 * (X**4 - X**2 + 1) // 3 + X
R = X**4 - X**2 + 1

class Refused(ValueError):
    """Says what is wrong with a key, a proof, public values or a layout."""

def require(condition, what):
    if not condition:
        raise Refused(what)

def encode(number, size=8): return number.to_bytes(size, "little", signed=number < 0)
def encode_text(text, size): return encode(len(text.encode()), size) + text.encode()
def rotated(word, left, size): return (word << left | word >> size - left) & (1 << size) - 1

# BLAKE3
IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
MIXED = [[4 * row + (i + shift * row) % 4 for row in range(4)] for shift in (0, 1) for i in range(4)]
PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
CHUNK_START, CHUNK_END, PARENT, ROOT, CONTEXT, MATERIAL = 1, 2, 4, 8, 32, 64

def compress(chaining, block, counter, length, flags):
    v = [*chaining, *IV[:4], counter % 2**32, counter >> 32, length, flags]
    for _ in range(7):
        for i, (a, b, c, d) in enumerate(MIXED):
            for word, first, second in (block[2 * i], 16, 20), (block[2 * i + 1], 24, 25):
                v[a] = (v[a] + v[b] + word) % 2**32
                v[d] = rotated(v[d] ^ v[a], first, 32)
                v[c] = (v[c] + v[d]) % 2**32
                v[b] = rotated(v[b] ^ v[c], second, 32)
        block = [block[i] for i in PERMUTATION]
    return [v[i] ^ v[i + 8] for i in range(8)]

def last_compression(data, key, counter, flags):
    """Its arguments, for the tree over `data`, whose first chunk has the number `counter`."""
    if len(data) > 1024:
        left = 1024 << ((len(data) - 1) // 1024).bit_length() - 1
        halves = (data[:left], key, counter, flags), (data[left:], key, counter + left // 1024, flags)
        return key, sum((compress(*last_compression(*half)) for half in halves), []), 0, 64, flags | PARENT
    start = CHUNK_START
    while len(data) > 64:
        key = compress(key, struct.unpack("<16I", data[:64]), counter, 64, flags | start)
        data, start = data[64:], 0
    return key, struct.unpack("<16I", data.ljust(64, b"\0")), counter, len(data), flags | start | CHUNK_END

def blake3(data, context=None, key=IV, mode=0):
    """BLAKE3, or with a context derive(context). formats: introduction"""
    if context:
        key, mode = struct.unpack("<8I", blake3(context, mode=CONTEXT)), MATERIAL
    *arguments, flags = last_compression(data, key, 0, mode)
    return struct.pack("<8I", *compress(*arguments, flags | ROOT))

# Keccak-f[1600], STROBE-128 and Merlin
def keccak(state):
    a, lfsr = list(struct.unpack("<25Q", state)), 1
    for _ in range(24):
        c = [a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20] for x in range(5)]
        a = [lane ^ c[(i - 1) % 5] ^ rotated(c[(i + 1) % 5], 1, 64) for i, lane in enumerate(a)]
        x, y, lane = 1, 0, a[1]
        for t in range(1, 25):
            x, y = y, (2 * x + 3 * y) % 5
            lane, a[x + 5 * y] = a[x + 5 * y], rotated(lane, t * (t + 1) // 2 % 64, 64)
        a = [lane ^ ~a[i - i % 5 + (i + 1) % 5] & a[i - i % 5 + (i + 2) % 5] for i, lane in enumerate(a)]
        for j in range(7):
            lfsr = lfsr << 1 ^ (lfsr >> 7) * 0x171
            a[0] ^= (lfsr >> 1 & 1) << (1 << j) - 1
    return bytearray(struct.pack("<25Q", *a))

class Transcript:
    """formats: Transcript"""
    RATE, AD, META_AD, PRF = 166, 2, 18, 7
    def __init__(self):
        self.state = keccak((bytes([1, self.RATE + 2, 1, 0, 1, 96]) + b"STROBEv1.0.2").ljust(200, b"\0"))
        self.place = self.begin = 0
        self.operate(self.META_AD, b"Merlin v1.0")
        self.absorb("dom-sep", b"hekaton-v1")
    def permute(self):
        for place, byte in (self.place, self.begin), (self.place + 1, 4), (self.RATE + 1, 0x80):
            self.state[place] ^= byte
        self.state, self.place, self.begin = keccak(self.state), 0, 0
    def operate(self, flags, data=b""):
        previous, self.begin = self.begin, self.place + 1
        for byte in [previous, flags, *data]:
            self.state[self.place] ^= byte
            self.place += 1
            if self.place == self.RATE:
                self.permute()
        if flags == self.PRF and self.place:
            self.permute()
    def absorb(self, label, data):
        self.operate(self.META_AD, label.encode() + encode(len(data), 4))
        self.operate(self.AD, data)
    def challenge(self, label, size=64, excluded=lambda drawn: False):
        """spec: verifier#challenges, verifier#redraw"""
        self.operate(self.META_AD, label.encode() + encode(size, 4))
        self.operate(self.PRF)
        drawn = int.from_bytes(self.state[:size], "little") % R
        self.state[:size], self.place = bytes(size), size
        return self.challenge(label, size, excluded) if excluded(drawn) else drawn

# Fields and groups. formats: Elements
def inverse(scalar): return pow(scalar, -1, R)
def power(base, exponent):
    result = base
    for bit in bin(exponent)[3:]:
        result = result * result * base if bit == "1" else result * result
    return result

class Fq2(NamedTuple):
    """c0 + c1 u, u^2 = -1."""
    c0: int
    c1: int = 0
    def __add__(self, other): return Fq2((self.c0 + other.c0) % Q, (self.c1 + other.c1) % Q)
    def __sub__(self, other): return Fq2((self.c0 - other.c0) % Q, (self.c1 - other.c1) % Q)
    def __mul__(self, other):
        (a, b), (c, d) = self, other
        return Fq2((a * c - b * d) % Q, (a * d + b * c) % Q)
    def inverse(self): return Fq2(self.c0, -self.c1) * Fq2(pow(self.c0**2 + self.c1**2, -1, Q))
    def root(self):
        """A square root; something else if there is none."""
        a = power(self, (Q - 3) // 4)
        root, square = a * self, a * a * self
        return Fq2(0, 1) * root if square == Fq2(Q - 1) else power(square + Fq2(1), (Q - 1) // 2) * root

class Fq12(tuple):
    """Coordinates in Fq2 of w^0 to w^5, w^6 = u + 1. Those of even powers are Fq6, with v = w^2."""
    def __mul__(self, other):
        real, imaginary = [0] * 12, [0] * 12
        for i, (a, b) in enumerate(self):
            if a or b:
                for k, (c, d) in enumerate(other, i):
                    real[k] += a * c - b * d
                    imaginary[k] += a * d + b * c
        return Fq12(Fq2((real[k] + real[k + 6] - imaginary[k + 6]) % Q,
                        (imaginary[k] + real[k + 6] + imaginary[k + 6]) % Q) for k in range(6))
    def frobenius(self, times):
        """self^(q^times); self.frobenius(6) negates w, and is the inverse in GT."""
        for _ in range(times):
            self = Fq12(Fq2(c.c0, -c.c1) * factor for c, factor in zip(self, FROBENIUS))
        return self
    def inverse(self):
        rest = self.frobenius(6)
        norm = self * rest
        rest *= norm.frobenius(2) * norm.frobenius(4)
        return rest * Fq12([(self * rest)[0].inverse(), *ONE[1:]])

FROBENIUS = [Fq2(1)] + [power(Fq2(1, 1), i * (Q - 1) // 6) for i in range(1, 6)]
ZERO, ONE, W = Fq2(0), *(Fq12(Fq2(int(i == place)) for i in range(6)) for place in (0, 1))
GT_ONE, INFINITY = b"\x80".ljust(288, b"\0"), b"\xc0".ljust(96, b"\0")

def chord(p, q):
    """p + q and the slope of the line through them. Points are (x, y) in Fq2, infinity is None."""
    (x1, y1), (x2, y2) = p, q
    slope = Fq2(3) * x1 * x1 * (y1 + y1).inverse() if p == q else (y2 - y1) * (x2 - x1).inverse()
    x = slope * slope - x1 - x2
    return (x, slope * (x1 - x) - y1), slope

def add(p, q):
    if not (p and q):
        return p or q
    return None if p[0] == q[0] and p[1] != q[1] else chord(p, q)[0]

def combine(terms, operation=add, neutral=None):
    """The sum of scalar * element over terms (scalar, element), four bits at a time."""
    terms = [(k % R, list(accumulate([neutral] + [element] * 15, operation))) for k, element in terms]
    result = neutral
    for shift in reversed(range(0, max((scalar.bit_length() for scalar, _ in terms), default=0), 4)):
        for _ in range(4):
            result = operation(result, result)
        for scalar, multiples in terms:
            result = operation(multiples[scalar >> shift & 15], result)
    return result

def pairing(pairs):
    """The product of e(P, Q) over pairs (P, Q)."""
    pairs = [(p, q) for p, q in pairs if p and q]
    f, sums = ONE, [q for _, q in pairs]
    for bit in bin(-X)[3:]:
        f *= f
        for i, (p, q) in enumerate(pairs):
            for addend in (sums[i], q)[:1 + int(bit)]:
                x, y = sums[i]
                sums[i], slope = chord(sums[i], addend)
                # w^3 times the line at P; the exponent removes w^3, which lies in a subfield
                f = Fq12([slope * x - y, ZERO, ZERO - slope * p[0], p[1], ZERO, ZERO]) * f
    f *= f.frobenius(6).inverse()
    return power(f * f.frobenius(2), 3 * (Q**4 - Q**2 + 1) // R)

def decode(code):
    """An element of G1 (48 bytes), G2 (96) or GT (192, in keys 288). spec: verifier#encoding"""
    if code in (GT_ONE[:192], GT_ONE, INFINITY[:48], INFINITY):
        return None if len(code) < 192 else ONE
    c = [int.from_bytes(code[i:i + 48], "big") for i in range(0, len(code), 48)]
    flags, c[0] = divmod(c[0], 2**384 if len(code) >= 192 else 2**381)
    require(max(c) < Q, "a coordinate is not below q")
    if len(code) >= 192:    # spec: verifier#proof-size
        *y, y1, y2 = [Fq2(*c[i:i + 2]) for i in range(0, len(c), 2)]
        product = Fq2(1, 1) * y2 * y2 + Fq2(pow(3, -1, Q))
        require(y1 != ZERO, "not the code of an element of GT")
        y0, = y or [product * y1.inverse()]
        require(y0 * y1 == product, "an element of GT is not in the cyclotomic subgroup")
        f = Fq12([y0, Fq2(1), y1, ZERO, y2, ZERO])
        f *= f.frobenius(6).inverse()
        require(f.frobenius(1) * power(f, -X) == ONE, "an element of GT does not have order r")
        return f
    x = Fq2(*reversed(c))
    square = x * x * x + (Fq2(4) if len(code) == 48 else Fq2(4, 4))
    y = square.root()
    require(flags in (4, 5) and y * y == square and (len(code) == 96 or y.c1 == 0), "not the code of a point")
    y, negative = sorted([y, ZERO - y], key=lambda root: root[::-1], reverse=flags == 5)
    require(combine([(R - 1, (x, y))]) == (x, negative), "a point is not in the subgroup")
    return x, y

def encode_target(f):
    """The longer code, which keys have. spec: verifier#proof-size"""
    if f == ONE:
        return GT_ONE
    plus, minus = (Fq12([f[0] + one, *f[1:]]) for one in (Fq2(1), Fq2(Q - 1)))
    return b"".join(c.to_bytes(48, "big") for pair in (W * plus * minus.inverse())[::2] for c in pair)

G, H = (decode(bytes.fromhex(code)) for code in (
    "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb",
    "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
    "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"))

# Verifying keys and proofs
class Reader:
    """Takes fields from bytes."""
    def __init__(self, data, start=b""):
        self.data, self.place = data, len(start)
        require(data.startswith(start), f"the file does not start with {start}")
    def take(self, size):
        self.place += size
        require(self.place <= len(self.data), "the bytes end too early")
        return self.data[self.place - size:self.place]
    def number(self, size, allowed=range(2**64)):
        number = int.from_bytes(self.take(size), "little", signed=allowed.start < 0)
        require(number in allowed, f"the number {number} before byte {self.place} is out of range")
        return number
    def text(self, limit=2**10):
        code = self.take(self.number(4, range(limit + 1)))
        text = code.decode(errors="replace")
        require(text.encode() == code and not re.search("[\0-\x1f\x7f-\x9f]", text), "a text is not allowed")
        return text
    def trust(self):
        trust = self.number(1, range(1, 4))
        self.take(32 if trust == 3 else 0)     # the digest of a ceremony
        return trust
    def end(self): require(self.place == len(self.data), "bytes follow the end")

class Key:
    """A verifying key."""
    @classmethod
    def read(cls, data):
        """spec: verifier#key, formats: Verifying key"""
        key, reader = cls(), Reader(data, b"HEKATNVK")
        version = reader.number(2, range(2, 5))
        key.trust, key.buses, key.digest = reader.trust(), version == 4, blake3(data)
        reader.number(1, range(2)), reader.text(2**16), reader.text(2**16)
        key.n = reader.number(8, range(1, 2**40 + 1))
        k = reader.number(4, range(1, min(key.n, 2**20) + 1))
        types = dict((reader.text(), reader.take(32)) for _ in range(k))
        reader.take(64)     # digests of type map and layout
        reader.take(32 * (reader.number(1, range(2)) if key.buses else version == 3))
        key.public = [(reader.number(8), reader.number(8, range(-1, 2**32)), reader.text(), reader.number(8))
                      for _ in range(reader.number(4, range(2**24 + 1)))]
        constants = [(reader.number(8), reader.number(8, range(1, 2**32)), reader.number(32, range(R)))
                     for _ in range(reader.number(4, range(2**24 + 1)))]
        for wires in key.public, constants:
            require(all(a[0] < b[0] for a, b in zip([(0,), *wires], wires)), "addresses do not increase")
        key.wires = [wire[:2] for wire in key.public + constants]
        key.constants = [value for _, _, value in constants]
        require(len(dict(key.wires)) == len(key.wires), "a constant has the address of a public wire")
        require(all(multiplicity for _, multiplicity in key.wires), "a multiplicity is 0")
        names = {wire[2:] for wire in key.public}
        require(len(types) == k and len(names) == len(key.public), "a name is there twice")
        require(all(re.fullmatch("[a-z0-9_-]{1,64}", name) for name in types), "the name of a type")
        require(all(re.fullmatch(r"[^][]+", name) for name, _ in names), "the name of a public wire")
        # cm_St cm_Sg cm_Sb [cm_ST cm_SV] | cm_gamma cm_delta cm_eta cm_Theta e(alpha,beta) K psi phi
        sizes = [288] * (5 if key.buses else 3) + [288] * 5 + [48, 48, 96]
        key.elements = [decode(reader.take(size)) for size in sizes]
        require(not {None, ONE, G, H} & {*key.elements[-8:]}, "an element is neutral or a generator")
        require(len({*key.elements[-8:-4]}) == 4, "two of cm_gamma, cm_delta, cm_eta and cm_Theta are equal")
        require(reader.take(32) == blake3(data[:-32]), "the checksum is wrong")
        reader.end()
        return key
    def values(self, text):
        """Public values from JSON. formats: Public values"""
        count = Counter(name for _, _, name, _ in self.public)
        names = [name if i == 0 and count[name] == 1 else f"{name}[{i}]" for _, _, name, i in self.public]
        # -0 becomes a negative number, too, and is refused
        values = json.loads(text, object_pairs_hook=tuple, parse_int=lambda n: int(n.replace("-", "-1")))
        require(isinstance(values, (tuple, list)) and len(values) == len(names), "not a list of all values")
        if isinstance(values, tuple):
            require(sorted(names) == sorted(dict(values)), "wrong names")
            values = [dict(values)[name] for name in names]
        return list(map(scalar, values))

def scalar(value):
    """formats: Public values"""
    if isinstance(value, str) and re.fullmatch("0|[1-9][0-9]{0,77}|0x[0-9a-fA-F]{1,80}", value):
        value = int(value, 0)
    elif type(value) is not int or value >= 2**64:
        raise Refused(f"{value!r:.99} is not a number")
    require(0 <= value < R, f"{value} is not below r")
    return value

def verify(key, public, proof, test_keys=False):
    """spec: verifier#encoding, verifier#challenges, verifier#merged"""
    require(test_keys or key.trust != 2, "the key is a test key")
    require(len(public) == len(key.public), "the number of public values is wrong")
    require(all(value in range(R) for value in public), "a public value is not below r")
    reader, rounds = Reader(proof, b"HEKATNPF\2\0" + key.digest), (key.n - 1).bit_length()
    require(len(proof) == 42 + 192 * (10 + 6 * rounds) + 4 * 48 + 4 * 96, "the length of the proof is wrong")
    sizes = {"V_e": 96, "R_f": 96, "v_f": 96, "pi_v": 96, "L_f": 48, "w_f": 48, "W_r": 48, "pi_w": 48}
    transcript, is_zero = Transcript(), (0).__eq__
    challenge = transcript.challenge
    def absorbed(names):
        for name in names.split():
            transcript.absorb(name, code := reader.take(sizes.get(name, 192)))
            yield decode(code)
    transcript.absorb("verifying key", key.digest)
    transcript.absorb("public values: count", encode(len(public)))
    for value in public:
        transcript.absorb("public value", encode(value, 32))
    cm_D, = absorbed("cm_D")
    g, b, *tags = map(challenge, ["g", "b"] + ["b_T", "b_V"] * key.buses)
    cm_A, cm_B, cm_C, V_e = absorbed("cm_A cm_B cm_C V_e")
    r = challenge("r", excluded=lambda drawn: drawn in (0, 1) or pow(drawn, key.n, R) == 1)
    zeta = challenge("zeta")
    (X1, s1), (X2, s2), (X3, s3) = [([*absorbed("X+ X-")], challenge("s", 64, is_zero)) for _ in range(3)]
    gipa = [([*absorbed("T_L T_R U_L U_R Z_L Z_R")], challenge("x", 16, is_zero)) for _ in range(rounds)]
    L_f, R_f, v_f, w_f, W_r = absorbed("L_f R_f v_f w_f W_r")
    z, rho = challenge("z"), challenge("rho")
    pi_v, pi_w = absorbed("pi_v pi_w")
    rho1, rho2, rho3, rho4 = [challenge("rho", 16) for _ in range(4)]
    P = 0   # spec: verifier#public-sum
    for (address, multiplicity), value in zip(key.wires, [*public, *key.constants]):
        require(denominator := (g + value + b * address) % R, "a public value is a pole")
        P += multiplicity * inverse(denominator)
    ratio, f, y = z * z * inverse(r) % R, 1, 1     # spec: aggregation#openings
    for j, (_, x_inverse) in enumerate(gipa):
        f = f * (1 + x_inverse * pow(ratio, 2**j, R)) % R
        y = y * (1 + inverse(x_inverse) * pow(z, 2 ** (j + 1), R)) % R
    y += rho * (key.n if ratio == 1 else (pow(ratio, key.n, R) - 1) * inverse(ratio - 1))
    *_, K, psi, phi = key.elements
    t1, t2, t3, s = inverse(s1), inverse(s2), inverse(s3), s1 * s2 * s3
    with_H = [(rho3 * f - rho4 * y, G), (rho4, w_f), (rho4 * rho + rho1 * zeta * inverse(s), W_r),
              (rho4 * z, pi_w), (rho2 * zeta * P, K)]
    left = pairing([
        (L_f, combine([(1, v_f), (rho2, R_f)])), (combine([(rho1, w_f)]), R_f), (combine([(s, K)]), V_e),
        (combine([(1, psi), (-z, G)]), combine([(rho3, pi_v)])), (combine([(-rho4, pi_w)]), phi),
        (combine([(-rho3, G)]), v_f), (combine(with_H), H)])
    of_key = [-s3, -s3 * g, -s3 * b, *[-s3 * tag for tag in tags], rho1 * t3, rho1 * t3 * t1, rho1 * t3 * t2,
              rho1 * t3 * t1 * t2, rho2 * (pow(r, key.n, R) - 1) * inverse(r - 1)]
    right = [*zip(of_key, key.elements), (1, cm_A), (rho1, cm_B), (-s1 * s3, cm_C), (-s2 * s3, cm_D)]
    right += zip([-rho2 * s1, -rho2 * t1, -rho2 * s2, -rho2 * t2, -rho2 * s3, rho2 * t3], X1 + X2 + X3)
    for products, x_inverse in gipa:
        x = inverse(x_inverse)
        right += zip([x, x_inverse, rho1 * x, rho1 * x_inverse, rho2 * x, rho2 * x_inverse], products)
    require(left == combine(right, Fq12.__mul__, ONE), "the merged equation does not hold")

# Key families
def sections(data):
    """The sections of a family and its digest. formats: Key files, Family"""
    reader, found = Reader(data, b"HEKATNKY" + encode(3, 4)), {}
    names = [b"header", b"phi", b"psi", b"ic", b"gamma", b"elements", b"buses"]
    names = [name.ljust(24, b"\0") for name in names[:reader.number(4, range(6, 8))]]
    require(reader.take(32) == b"key family".ljust(32, b"\0"), "the file is not a key family")
    table = [struct.unpack("<24sQQQ32s", reader.take(80)) for _ in names]
    require(sorted(names) == sorted(name for name, *_ in table), "the sections are not those of a family")
    for name, offset, length, zero, digest in table:
        zero += sum(reader.take(-reader.place % 4096))
        require(offset == reader.place and not zero, "a section is in a wrong place")
        found[name] = reader.take(length), digest
        require(blake3(found[name][0]) == digest, f"section {name} is damaged")
    reader.end()
    contents, digests = zip(*map(found.get, names))
    return *contents, blake3(b"".join(digests), b"hekaton-v1 key family")

def points(section, size):
    """Points in memory form. formats: Key files"""
    require(len(section) % size == 0, "a section has a wrong length")
    factor = pow(2**384, -1, Q)
    c = [int.from_bytes(section[i:i + 48], "little") * factor % Q for i in range(0, len(section), 48)]
    fields = [Fq2(*c[i:i + size // 96]) for i in range(0, len(c), size // 96)]
    return [(x, y) if any(x + y) else None for x, y in zip(fields[::2], fields[1::2])]

def check_stars(slots, wires):
    """spec: memory-check#stars"""
    star = defaultdict(list)
    for address, multiplicity in sum(slots, [(wire["address"], wire["multiplicity"]) for wire in wires]):
        star[address].append(multiplicity)
    require(not any(star.pop(0, [])), "an unused slot has a multiplicity")
    for address, multiplicities in star.items():
        *readers, writer = sorted(multiplicities)
        require(address > 0 and set(readers) == {-1} and writer == len(readers) < 2**32, "not a set of stars")

def derive(family, layout, parameters):
    """spec: key-family#derive, formats: Family, Digest of the layout"""
    header, phi, psi, ic, gamma, elements, *buses, family_digest = sections(family)
    reader = Reader(header)
    reader.trust()
    trust, circuit, _ = header[:reader.place], reader.text(2**16), reader.text(2**16)
    largest, masks = reader.number(8, range(1, 2**32 + 1)), encode(reader.number(1, range(2)), 1)
    k = reader.number(4, range(1, 2**20 + 1))
    types = [(reader.text(), reader.take(32), reader.number(8, range(2**28))) for _ in range(k)]
    fixed = reader.take(288 + 48 + 48 + 96)
    reader.end()
    numbers = list(struct.iter_unpack("<6Q", buses[0] if buses else bytes(48 * k)))
    require(len(numbers) == k and any(map(any, numbers)) == bool(buses), "the section of buses is wrong")
    require({row[0] for row in numbers} in ({0}, {1}), "some types have buses, and some do not")
    buses = numbers[0][0]
    phi, psi, ic, (gamma,) = points(phi, 96), points(psi, 192), iter(points(ic, 96)), points(gamma, 192)
    require(len(phi) == len(psi) == (2 << (largest - 1).bit_length()) - 1, "the number of powers is wrong")
    elements = points(elements, 192)
    require(len(elements) == 3 * k and None not in [gamma, *elements], "gamma, delta, eta or Theta is wrong")
    require(len({gamma, *elements[::3], *elements[1::3]}) == 1 + 2 * k, "a delta or eta is repeated")
    family_types = {}
    for i, ((name, digest, slots), (_, own, pairs, _, entries, _)) in enumerate(zip(types, numbers)):
        count = 2 + 2 * buses + 2 * slots + own + pairs
        queries = list(islice(ic, count))
        uses = {1: slots + entries, 2: entries, 3: 0} if buses else {1: slots}
        require(len(queries) == count, "the section of IC is too short")
        require(all(query or uses.get(j) == 0 for j, query in enumerate(queries)), "an IC is infinity")
        family_types[name] = (slots, own, pairs), digest, queries, [gamma, *elements[3 * i:3 * i + 3]]
    require(len(family_types) == k and next(ic, 0) == 0, "too many IC, or a name is there twice")
    type_of, kinds, slots, n = layout["type_of"], layout["types"], layout["slots"], len(layout["type_of"])
    require(1 <= n <= largest, "the family is not for this number of subcircuits")
    used = [family_types[kind["name"]] for kind in kinds]
    shapes = [(kind["slots"], kind["parameters"], kind["pairs"]) for kind in kinds]
    require([kind[0] for kind in used] == shapes, "the types are not those of the family")
    require(bool(layout["buses"]) == buses and set(type_of) <= set(range(len(kinds))), "wrong buses or types")
    public, constants = layout["public"], layout["constants"]
    check_stars(slots, public + constants)
    own = [list(map(scalar, numbers)) for numbers in layout["parameters"]]
    pairs = [[(scalar(key), scalar(value)) for key, value in entries] for entries in layout["pairs"]]
    left, right = [], []      # by instance: St, Sg, Sb, ST, SV; gamma, delta, eta, Theta
    for c, slot, numbers, entries in zip(type_of, slots, own, pairs, strict=True):
        shape, _, queries, vectors = used[c]
        require((len(slot), len(numbers), len(entries)) == shape, "an instance is not of its type")
        x, mu, rest = (queries[2 + 2 * buses + start * len(slot):] for start in range(3))
        St = [(1, queries[0]), *zip([multiplicity for _, multiplicity in slot], mu),
              *zip(numbers + [key for key, _ in entries], rest)]
        Sb = zip([address for address, _ in slot], x)
        SV = [(1, queries[3]), *zip([value for _, value in entries], rest[len(numbers):])] if buses else []
        left.append([combine(St), queries[1], combine(Sb), *([queries[2], combine(SV)] if buses else [])])
        right.append(vectors)
    commitments = [pairing(zip(points, psi[::2])) for points in zip(*left)]
    commitments += [pairing(zip(phi[::2], points)) for points in zip(*right)]
    def wires(size):
        def code(wire): return encode(wire["address"]) + encode(wire["multiplicity"])
        return [encode(len(public), size),
                *[code(wire) + encode_text(wire["name"], size) + encode(wire["index"]) for wire in public],
                encode(len(constants), size),
                *[code(wire) + encode(scalar(wire["value"]), 32) for wire in constants]]
    type_map = blake3(b"".join(encode(c, 4) for c in type_of), b"hekaton-v1 type map")
    wiring = [masks, encode(len(kinds)),
              *[encode_text(kind["name"], 8) + encode(kind["slots"]) for kind in kinds], encode(n), type_map,
              *[encode(number) for entry in sum(slots, []) for number in entry], *wires(8)]
    if buses or any(shape[1] for shape in shapes):
        wiring += [encode(len(layout["buses"])), *[encode_text(name, 8) for name in layout["buses"]],
                   *[encode(count) for shape in shapes for count in shape[1:]],
                   *[encode(number, 32) for number in sum(own, [])],
                   *[encode(number, 32) for entry in sum(pairs, []) for number in entry]]
    types = [encode_text(kind["name"], 4) + digest for kind, (_, digest, *_) in zip(kinds, used)]
    key = b"".join([b"HEKATNVK", encode(3 + buses, 2), trust, masks, encode_text(circuit, 4),
                    encode_text(parameters, 4), encode(n), encode(len(kinds), 4), *types, type_map,
                    blake3(b"".join(wiring), b"hekaton-v2 wiring"), b"\1" * buses, family_digest, *wires(4),
                    *map(encode_target, commitments), fixed])
    key += blake3(key)
    Key.read(key)
    return key

def main(arguments):
    def read(path): return Path(path).read_bytes()
    match arguments:
        case ["verify", key, proof, public, *options] if options in ([], ["--test-keys"]):
            key, proof, public = Key.read(read(key)), read(proof), read(public)
            verify(key, key.values(public.decode()), proof, bool(options))
        case ["derive", family, layout, parameters, output]:
            Path(output).write_bytes(derive(read(family), json.loads(read(layout)), parameters))
        case _:
            print("verify KEY PROOF PUBLIC.json [--test-keys] | derive FAMILY.key LAYOUT.json PARAMETERS OUT")
            sys.exit(2)

if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error: sys.exit(print(error, file=sys.stderr) or 3)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        sys.exit(f"refused: {error!r:.300}")
