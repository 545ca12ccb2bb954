"""Verifies Hekaton proofs."""

from collections.abc import Mapping
from typing import final

# JSON text, or the values by name, or in the key's order: integers, or decimal or hexadecimal text (with 0x).
_PublicValues = str | Mapping[str, int | str] | list[int | str] | list[int] | list[str] | tuple[int | str, ...]

class Refused(ValueError):
    """A proof does not hold, or a key or public values cannot be read; the text says why."""

@final
class Key:
    """A verifying key. `circuit` and `parameters` are unverified text of its author; the rest follows from the key."""

    def __init__(self, data: bytes) -> None:
        """Raises Refused if the bytes are not a verifying key."""

    @property
    def digest(self) -> str:
        """BLAKE3 of the key, as 64 hexadecimal digits: compare it with the one that you trust."""

    @property
    def circuit(self) -> str: ...
    @property
    def parameters(self) -> str: ...
    @property
    def subcircuits(self) -> int: ...
    @property
    def zero_knowledge(self) -> bool: ...
    @property
    def trust(self) -> str:
        """Who must be trusted, in one sentence."""

    @property
    def is_test_key(self) -> bool:
        """True for a key under which anyone can forge proofs."""

    @property
    def public_names(self) -> list[str]:
        """The names of the public values, in the key's order."""

    def public_values(self, values: _PublicValues) -> dict[str, int]:
        """The public values as integers by name, in the key's order. Raises Refused unless they are those of this key."""

def verify(
    key: Key, proof: bytes, public_values: _PublicValues, *, key_digest: str | None, accept_test_keys: bool = False
) -> None:
    """Returns if the proof holds, and raises Refused if not.

    `key_digest` is the digest that the key must have. None accepts any key, which is right only for a key that comes with
    your program. `accept_test_keys` is for tests: it accepts keys under which anyone can forge proofs.
    """
