package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
)

func TestProofsAreAccepted(t *testing.T) {
	// The second time with the keys of the first.
	directory := t.TempDir()
	work, _ := find("blocks")
	for range 2 {
		found, err := proveWorkload(work, 1, 2, 1, directory)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"blocks_per_core_second", "blocks_per_cpu_second", "seconds", "cpu_seconds"} {
			if value, ok := found[field].(float64); !ok || value <= 0 {
				t.Errorf("%s is %v", field, found[field])
			}
		}
	}
}

func TestWorkloadsAreProven(t *testing.T) {
	for _, name := range []string{"range", "memory"} {
		work, known := find(name)
		if !known {
			t.Fatalf("no workload %s", name)
		}
		if _, err := proveWorkload(work, 8, 2, 1, t.TempDir()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMessagesFillTheirBlocks(t *testing.T) {
	// A byte of padding and eight bytes of length follow the message.
	for blocks, bytes := range map[int]int{1: 55, 8: 503} {
		if length(blocks) != bytes {
			t.Errorf("%d blocks: %d bytes, expected %d", blocks, length(blocks), bytes)
		}
	}
}

// file returns a file of iden3's format with sections 1, 2, ..
func file(magic string, sections ...[]byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte(magic), 1)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(sections)))
	for i, section := range sections {
		out = binary.LittleEndian.AppendUint32(out, uint32(i+1))
		out = binary.LittleEndian.AppendUint64(out, uint64(len(section)))
		out = append(out, section...)
	}
	return out
}

// scalar returns a small number in 32 bytes.
func scalar(value byte) []byte {
	return append([]byte{value}, make([]byte, 31)...)
}

func TestImportedSystemsAreProven(t *testing.T) {
	prime := ecc.BLS12_381.ScalarField().FillBytes(make([]byte, 32))
	for i := range 16 {
		prime[i], prime[31-i] = prime[31-i], prime[i]
	}
	words := func(values ...uint32) (out []byte) {
		for _, value := range values {
			out = binary.LittleEndian.AppendUint32(out, value)
		}
		return out
	}
	// Wires 1, public y, private x: x * x = y.
	header := append(append(words(32), prime...), words(3, 1, 0, 1, 3, 0, 1)...)
	term := func(wire uint32) []byte { return append(words(1, wire), scalar(1)...) }
	rows := append(append(term(2), term(2)...), term(1)...)
	directory := t.TempDir()
	path := func(name string, content []byte) string {
		where := filepath.Join(directory, name)
		if err := os.WriteFile(where, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return where
	}
	values := func(y, x byte) []byte {
		return file("wtns", make([]byte, 40), append(append(scalar(1), scalar(y)...), scalar(x)...))
	}
	system := path("a.r1cs", file("r1cs", header, rows))
	if _, err := proveImported(system, path("a.wtns", values(9, 3)), 2, 1, directory); err != nil {
		t.Fatal(err)
	}
	if _, err := proveImported(system, path("b.wtns", values(8, 3)), 2, 1, directory); err == nil {
		t.Error("3 is no root of 8")
	}
	short := path("c.r1cs", file("r1cs", header, rows[:len(rows)-1]))
	if _, _, err := imported(short, ""); err == nil {
		t.Error("a row is cut off")
	}
}
