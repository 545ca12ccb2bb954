"""Random circuits in one piece, and their witnesses, as circom writes them (docs/formats.md): for scripts/memory-limits."""

import struct

# The order of BLS12-381's groups.
MODULUS = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
# Terms take most of the time to write a circuit.
MOST_TERMS = 200_000


def between(chance, low, high):
    """Returns a whole number whose logarithm is uniformly distributed."""
    return round(low * (high / low) ** chance.random())


def number(chance):
    return chance.getrandbits(256) % MODULUS


def container(magic, version, sections):
    """Returns the bytes of a file of sections, which are numbered from 1."""
    parts = [struct.pack("<4sII", magic, version, len(sections))]
    for index, section in enumerate(sections, 1):
        parts += [struct.pack("<IQ", index, len(section)), section]
    return b"".join(parts)


class RandomCircuit:
    """Rows A * B = C with random sums A and B, where C is a new wire. What is typical of a circuit is random, too: terms of a sum, wires
    that no row computes, the distance to other rows whose wires a row uses, public wires, bits among the values, and coefficients."""

    def __init__(self, chance, rows):
        self.chance, self.values, self.public = chance, [1], between(chance, 1, rows / 4)
        self.is_bit, self.is_fresh = chance.random() ** 2, chance.choice([0, 0, chance.random()])
        self.window = between(chance, 4, rows)
        self.coefficients = [1] + [number(chance) for _ in range(between(chance, 1, 1000))]
        mean = between(chance, 1, max(1, MOST_TERMS // rows))
        for _ in range(self.public):
            self.wire(number(chance))
        self.rows = [self.row(1 + row, mean) for row in range(rows)]

    def wire(self, value):
        self.values.append(value)
        return len(self.values) - 1

    def row(self, row, mean):
        chance, sides = self.chance, []
        for side in range(2):
            # Each public wire is in a constraint.
            wires = {row if side == 0 and row <= self.public else len(self.values) - 1}
            for _ in range(chance.randint(0, 2 * mean - 1)):
                if chance.random() < self.is_fresh:
                    wires.add(self.wire(chance.getrandbits(1) if chance.random() < self.is_bit else number(chance)))
                else:
                    wires.add(max(0, len(self.values) - 1 - chance.randrange(self.window)))
            sides.append([(wire, chance.choice(self.coefficients)) for wire in sorted(wires)])
        a, b = (sum(self.values[wire] * coefficient for wire, coefficient in side) for side in sides)
        return [*sides, [(self.wire(a * b % MODULUS), 1)]]

    def write(self, path):
        """Writes PATH.r1cs and PATH.wtns."""
        field = struct.pack("<I", 32) + MODULUS.to_bytes(32, "little")
        wires = len(self.values)
        header = field + struct.pack("<IIIIQI", wires, 0, self.public, 0, wires, len(self.rows))
        sides = []
        for side in (side for row in self.rows for side in row):
            sides.append(struct.pack("<I", len(side)))
            sides += [struct.pack("<I", wire) + coefficient.to_bytes(32, "little") for wire, coefficient in side]
        labels = struct.pack(f"<{wires}Q", *range(wires))
        path.with_suffix(".r1cs").write_bytes(container(b"r1cs", 1, [header, b"".join(sides), labels]))
        values = b"".join(value.to_bytes(32, "little") for value in self.values)
        path.with_suffix(".wtns").write_bytes(container(b"wtns", 2, [field + struct.pack("<I", wires), values]))
