package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	cs "github.com/consensys/gnark/constraint/bls12-381"
)

// sections returns the sections of a file of iden3's format (.r1cs, .wtns) by their types.
func sections(path, magic string) (map[uint32][]byte, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(file) < 12 || string(file[:4]) != magic {
		return nil, fmt.Errorf("%s: not a .%s file", path, magic)
	}
	found, rest := map[uint32][]byte{}, file[12:]
	for range binary.LittleEndian.Uint32(file[8:]) {
		if len(rest) < 12 || binary.LittleEndian.Uint64(rest[4:]) > uint64(len(rest)-12) {
			return nil, fmt.Errorf("%s: a section is cut off", path)
		}
		size := binary.LittleEndian.Uint64(rest[4:])
		found[binary.LittleEndian.Uint32(rest)] = rest[12 : 12+size]
		rest = rest[12+size:]
	}
	return found, nil
}

// number reads a field element: 32 bytes, little-endian.
func number(reader io.Reader) (*big.Int, error) {
	var code [32]byte
	if _, err := io.ReadFull(reader, code[:]); err != nil {
		return nil, err
	}
	for i := range 16 {
		code[i], code[31-i] = code[31-i], code[i]
	}
	return new(big.Int).SetBytes(code[:]), nil
}

// imported returns the same R1CS as a constraint system of gnark, and a function that reads its witness. All variables are
// given, so that gnark solves nothing.
func imported(r1csPath, wtnsPath string) (constraint.ConstraintSystem, func() (witness.Witness, error), error) {
	parts, err := sections(r1csPath, "r1cs")
	if err != nil {
		return nil, nil, err
	}
	header := parts[1]
	field := ecc.BLS12_381.ScalarField()
	if len(header) != 64 {
		return nil, nil, fmt.Errorf("%s: a header of %d bytes, expected 64", r1csPath, len(header))
	}
	if prime, err := number(bytes.NewReader(header[4:36])); err != nil || prime.Cmp(field) != 0 {
		return nil, nil, fmt.Errorf("%s: of another field than that of BLS12-381", r1csPath)
	}
	counts := make([]uint32, 4)
	for i := range counts {
		counts[i] = binary.LittleEndian.Uint32(header[36+4*i:])
	}
	wires, public := int(counts[0]), int(counts[1]+counts[2])
	rows := int(binary.LittleEndian.Uint32(header[60:]))
	system := cs.NewR1CS(rows)
	system.AddPublicVariable("1")
	for i := 1; i < wires; i++ {
		if i <= public {
			system.AddPublicVariable(fmt.Sprint(i))
		} else {
			system.AddSecretVariable(fmt.Sprint(i))
		}
	}
	gate := system.AddBlueprint(&constraint.BlueprintGenericR1C{})
	reader := bytes.NewReader(parts[2])
	side := func() (constraint.LinearExpression, error) {
		var count uint32
		if err := binary.Read(reader, binary.LittleEndian, &count); err != nil {
			return nil, err
		}
		var terms constraint.LinearExpression
		for range count {
			var wire uint32
			if err := binary.Read(reader, binary.LittleEndian, &wire); err != nil {
				return nil, err
			}
			factor, err := number(reader)
			if err != nil {
				return nil, err
			}
			if int(wire) >= wires {
				return nil, fmt.Errorf("wire %d of %d", wire, wires)
			}
			terms = append(terms, system.MakeTerm(system.FromInterface(factor), int(wire)))
		}
		return terms, nil
	}
	for range rows {
		a, errA := side()
		b, errB := side()
		c, errC := side()
		if err := errors.Join(errA, errB, errC); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r1csPath, err)
		}
		system.AddR1C(constraint.R1C{L: a, R: b, O: c}, gate)
	}
	values := func() (witness.Witness, error) { return assignment(wtnsPath, field, wires, public) }
	return system, values, nil
}

// assignment reads a witness of iden3's format.
func assignment(path string, field *big.Int, wires, public int) (witness.Witness, error) {
	parts, err := sections(path, "wtns")
	if err != nil {
		return nil, err
	}
	if len(parts[2]) != 32*wires {
		return nil, fmt.Errorf("%s: %d bytes of values, expected %d", path, len(parts[2]), 32*wires)
	}
	reader := bytes.NewReader(parts[2][32:])
	values := make(chan any)
	go func() {
		defer close(values)
		for range wires - 1 {
			// The length is that of all values.
			value, _ := number(reader)
			values <- value
		}
	}()
	filled, err := witness.New(field)
	if err != nil {
		return nil, err
	}
	return filled, filled.Fill(public, wires-1-public, values)
}
