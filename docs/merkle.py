#!/usr/bin/env python3
"""The root of `hekaton hash FILE`: python3 merkle.py FILE [LEAF_BYTES [ITERATIONS]]"""
import sys, hashlib
H = lambda *parts: hashlib.sha256(b"".join(parts)).digest()
data, size, times = open(sys.argv[1], "rb").read(), *(int(x) for x in (sys.argv[2:] + ["512", "1"][len(sys.argv) - 2:]))
count = max(1, -(-len(data) // size))
level = [H(data[i * size:(i + 1) * size].ljust(size, b"\0"), b"\0") for i in range(count)]
for _ in range(times - 1): level = [H(d, b"\4") for d in level]
tag, zero = b"\1", bytes(32)
while len(level) > 2:
    level, tag = [H(*(level[i:i + 2] + [zero])[:2], tag) for i in range(0, len(level), 2)], b"\2"
print(H(*(level + [zero])[:2], len(data).to_bytes(8, "big"), b"\3").hex())
