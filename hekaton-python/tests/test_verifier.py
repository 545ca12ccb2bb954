"""The wheel, with golden files: python test_verifier.py GOLDEN"""

import sys
import threading
import unittest
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType

import hekaton_verifier
from hekaton_verifier import Key, Refused, verify

GOLDEN = Path(sys.argv.pop())
PUBLIC = [3, 81]


def golden(name):
    return (GOLDEN / name).read_bytes()


class Wheel(unittest.TestCase):
    def setUp(self):
        self.key, self.proof = Key(golden("v2.key")), golden("v2.proof")

    def verify(self, public=PUBLIC, proof=None, key_digest=None, accept_test_keys=True):
        proof = self.proof if proof is None else proof
        return verify(self.key, proof, public, key_digest=key_digest, accept_test_keys=accept_test_keys)

    def refused(self, why, **changed):
        with self.assertRaisesRegex(Refused, why):
            self.verify(**changed)

    def test_comes_with_types(self):
        folder = Path(hekaton_verifier.__file__).parent
        self.assertTrue((folder / "py.typed").exists())
        self.assertIn("class Key", (folder / "__init__.pyi").read_text())

    def test_good_proofs(self):
        names = self.key.public_names
        for public in PUBLIC, ("3", "0x51"), "[3, 81]", dict(zip(names, PUBLIC)), MappingProxyType(dict(zip(names, PUBLIC))):
            self.assertIsNone(self.verify(public))
        Numbers = IntEnum("Numbers", {"THREE": 3})
        self.assertIsNone(self.verify([Numbers.THREE, 81]))
        self.assertIsNone(self.verify(key_digest=f" {self.key.digest.upper()}\n"))
        histogram = Key(golden("v4.key"))
        verify(histogram, golden("v4.proof"), [0, 133, 1, 2, 0], key_digest=None, accept_test_keys=True)

    def test_refusals(self):
        self.refused("does not hold for these public values", public=[3, 82])
        self.refused("malformed proof", proof=self.proof[:-1])
        self.refused("format version 1", proof=golden("format-1.proof"))
        self.refused("malformed proof", proof=b"")
        self.refused("test key", accept_test_keys=False)
        self.refused("expected 2 public values, found 1", public=[3])
        self.refused("not a JSON object or array", public="{")
        self.refused("'z' is not a public wire", public={"z": 1})
        self.refused("not the required one", key_digest="00" * 32)
        self.refused("not below the group order", public=[3, 2**256])
        self.refused("not a decimal number", public=[3, -1])
        self.refused("not a decimal number", public=[3, 10**5000])
        self.refused("surrogates not allowed", public=[3, "\ud800"])
        self.refused("surrogates not allowed", public="\ud800")
        self.refused("not 64 hexadecimal digits", key_digest="2a60..")
        for data, why in (b"", "not a Hekaton verifying key"), (golden("v1.key"), "format version 1"):
            with self.assertRaisesRegex(Refused, why):
                Key(data)

    def test_wrong_types(self):
        for public in [3, True], [3, 81.0], [3, None], 3, None, bytes(PUBLIC), set(PUBLIC), iter(PUBLIC), {3: 3}:
            with self.assertRaises(TypeError):
                self.verify(public)
        # Whoever does not pin the key says so.
        with self.assertRaises(TypeError):
            verify(self.key, self.proof, PUBLIC)

    def test_key(self):
        key = self.key
        self.assertEqual((len(key.digest), key.circuit, key.is_test_key), (64, "golden", True))
        self.assertEqual((key.subcircuits, key.zero_knowledge), (3, True))
        self.assertIn("TEST KEYS", key.trust)
        self.assertEqual(list(key.public_values(["3", "0x51"]).items()), list(zip(key.public_names, PUBLIC)))
        with self.assertRaises(AttributeError):
            key.circuit = "another"
        self.assertIn(key.digest, repr(key))

    def test_threads(self):
        verdicts = []
        threads = [threading.Thread(target=lambda: verdicts.append(self.verify())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(verdicts, [None] * 4)


unittest.main()
