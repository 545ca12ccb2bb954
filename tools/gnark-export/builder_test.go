package gnarkexport

import (
	"bytes"
	"errors"
	"math/big"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/std/hash/sha2"
	"github.com/consensys/gnark/std/lookup/logderivlookup"
	"github.com/consensys/gnark/std/math/emulated"
	"github.com/consensys/gnark/std/math/uints"
	"github.com/consensys/gnark/std/rangecheck"
)

// ranged says that the public Sum is the sum of two values of 40 bits.
type ranged struct {
	A, B frontend.Variable
	Sum  frontend.Variable `gnark:",public"`
}

func (c *ranged) Define(api frontend.API) error {
	checker := rangecheck.New(api)
	checker.Check(c.A, 40)
	checker.Check(c.B, 40)
	api.AssertIsEqual(api.Add(c.A, c.B), c.Sum)
	return nil
}

// hashed says that Digest is the SHA-256 of Message.
type hashed struct {
	Message []uints.U8
	Digest  [32]uints.U8 `gnark:",public"`
}

func (c *hashed) Define(api frontend.API) error {
	hasher, err := sha2.New(api)
	if err != nil {
		return err
	}
	bytes, err := uints.NewBytes(api)
	if err != nil {
		return err
	}
	hasher.Write(c.Message)
	for i, found := range hasher.Sum() {
		bytes.AssertIsEqual(found, c.Digest[i])
	}
	return nil
}

// multiplied says that C = A B in the field of secp256k1.
type multiplied struct {
	A, B emulated.Element[emulated.Secp256k1Fp]
	C    emulated.Element[emulated.Secp256k1Fp] `gnark:",public"`
}

func (c *multiplied) Define(api frontend.API) error {
	field, err := emulated.NewField[emulated.Secp256k1Fp](api)
	if err != nil {
		return err
	}
	field.AssertIsEqual(field.Mul(&c.A, &c.B), &c.C)
	return nil
}

// lookedUp says that Value is the square of Place, by a table of squares.
type lookedUp struct {
	Place frontend.Variable
	Value frontend.Variable `gnark:",public"`
}

func (c *lookedUp) Define(api frontend.API) error {
	table := logderivlookup.New(api)
	for i := range 16 {
		table.Insert(i * i)
	}
	api.AssertIsEqual(table.Lookup(c.Place)[0], c.Value)
	return nil
}

func rangedValues(a, b int64) *ranged { return &ranged{A: a, B: b, Sum: a + b} }

func multipliedValues() *multiplied {
	p := emulated.Secp256k1Fp{}.Modulus()
	a, b := new(big.Int).Sub(p, big.NewInt(7)), new(big.Int).Sub(p, big.NewInt(1<<40))
	c := new(big.Int).Mul(a, b)
	return &multiplied{
		A: emulated.ValueOf[emulated.Secp256k1Fp](a),
		B: emulated.ValueOf[emulated.Secp256k1Fp](b),
		C: emulated.ValueOf[emulated.Secp256k1Fp](c.Mod(c, p)),
	}
}

// files exports a circuit and a witness for it.
func files(t *testing.T, build frontend.NewBuilder, circuit, values frontend.Circuit) (constraints, solution []byte) {
	t.Helper()
	ccs := compiled(t, ecc.BLS12_381, build, circuit)
	t.Logf("%d constraints", ccs.GetNbConstraints())
	assignment, err := frontend.NewWitness(values, ecc.BLS12_381.ScalarField())
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	if err := R1CS(ccs, &first); err != nil {
		t.Fatal(err)
	}
	if err := Witness(ccs, assignment, &second); err != nil {
		t.Fatal(err)
	}
	return first.Bytes(), second.Bytes()
}

// TestGadgetsOfTheStandardLibrary exports what gnark's own builder makes with commitments. Every
// constraint holds for gnark's solution, and no value of a public wire can be another one.
func TestGadgetsOfTheStandardLibrary(t *testing.T) {
	cases := []struct {
		name            string
		build           frontend.NewBuilder
		circuit, values frontend.Circuit
	}{
		{"range checks", NewBuilder, &ranged{}, rangedValues(1<<40-1, 5)},
		{"range checks with a hash", NewHashingBuilder, &ranged{}, rangedValues(1<<40-1, 5)},
		{"a look-up table", NewHashingBuilder, &lookedUp{}, &lookedUp{Place: 7, Value: 49}},
		{"emulated arithmetic", NewHashingBuilder, &multiplied{}, multipliedValues()},
		{"api.Commit", NewHashingBuilder, &committed{}, &committed{X: 3}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			constraints, values := files(t, c.build, c.circuit, c.values)
			if wrong := falseRows(t, constraints, values); wrong != 0 {
				t.Fatalf("%d constraints do not hold", wrong)
			}
			header := sections(t, constraints, "r1cs", 1)[0]
			public := int(header[44]) | int(header[45])<<8
			z := sections(t, values, "wtns", 2)[1]
			for wire := 1; wire <= public; wire += 1 + public/4 {
				spoiled := append([]byte(nil), values...)
				spoiled[len(spoiled)-len(z)+fieldSize*wire] ^= 1
				if falseRows(t, constraints, spoiled) == 0 {
					t.Errorf("another value of public wire %d is not noticed", wire)
				}
			}
		})
	}
}

// TestRangesHold: values beyond the range have no witness, and the decomposition into bits is bound.
func TestRangesHold(t *testing.T) {
	ccs := compiled(t, ecc.BLS12_381, NewBuilder, &ranged{})
	for _, wrong := range []*ranged{rangedValues(1<<40, 5), rangedValues(5, 1<<40), rangedValues(-1, 5)} {
		assignment, err := frontend.NewWitness(wrong, ecc.BLS12_381.ScalarField())
		if err != nil {
			t.Fatal(err)
		}
		if err := Witness(ccs, assignment, &bytes.Buffer{}); err == nil {
			t.Errorf("%v + %v is accepted", wrong.A, wrong.B)
		}
	}
	constraints, values := files(t, NewBuilder, &ranged{}, rangedValues(77, 5))
	z := sections(t, values, "wtns", 2)[1]
	for wire := 1; wire < len(z)/fieldSize; wire++ {
		spoiled := append([]byte(nil), values...)
		spoiled[len(spoiled)-len(z)+fieldSize*wire] ^= 1
		if falseRows(t, constraints, spoiled) == 0 {
			t.Errorf("another value of wire %d is not noticed", wire)
		}
	}
}

// twice commits to the same value twice, and to a longer list.
type twice struct{ X frontend.Variable }

func (c *twice) Define(api frontend.API) error {
	committer := api.(frontend.Committer)
	var all []frontend.Variable
	for _, list := range [][]frontend.Variable{{c.X}, {c.X}, {c.X, 0}} {
		challenge, err := committer.Commit(list...)
		if err != nil {
			return err
		}
		all = append(all, challenge)
	}
	for i := range all {
		for j := range i {
			api.AssertIsDifferent(all[i], all[j])
		}
	}
	return nil
}

// TestChallengesDifferAndAreBound: calls with other inputs have other challenges, and no challenge is a free
// wire: each value of the solution, those inside the hash included, is bound by a constraint.
func TestChallengesDifferAndAreBound(t *testing.T) {
	constraints, values := files(t, NewHashingBuilder, &twice{}, &twice{X: 3})
	if wrong := falseRows(t, constraints, values); wrong != 0 {
		t.Fatalf("%d constraints do not hold", wrong)
	}
	z := sections(t, values, "wtns", 2)[1]
	for wire := 1; wire < len(z)/fieldSize; wire++ {
		spoiled := append([]byte(nil), values...)
		spoiled[len(spoiled)-len(z)+fieldSize*wire] ^= 1
		if falseRows(t, constraints, spoiled) == 0 {
			t.Errorf("another value of wire %d is not noticed", wire)
		}
	}
}

func TestGadgetsThatNeedAChallengeAreRefusedByName(t *testing.T) {
	message := &hashed{Message: make([]uints.U8, 3)}
	// its tables have too many entries for a hash
	if _, err := frontend.Compile(ecc.BLS12_381.ScalarField(), NewHashingBuilder, message); !errors.Is(err, ErrTooManyCommitted) {
		t.Errorf("SHA-256 with a hash: %v", err)
	}
	for name, circuit := range map[string]frontend.Circuit{
		"SHA-256": message, "emulated arithmetic": &multiplied{}, "a table": &lookedUp{}, "Commit": &committed{},
	} {
		_, err := frontend.Compile(ecc.BLS12_381.ScalarField(), NewBuilder, circuit)
		if !errors.Is(err, ErrNoCommit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// gnark's own builder makes commitments for range checks
	ccs := compiled(t, ecc.BLS12_381, r1cs.NewBuilder, &ranged{})
	if err := R1CS(ccs, &bytes.Buffer{}); !errors.Is(err, ErrCommit) {
		t.Errorf("range checks of gnark's builder: %v", err)
	}
	for _, build := range []frontend.NewBuilder{NewBuilder, NewHashingBuilder} {
		if _, err := frontend.Compile(ecc.BN254.ScalarField(), build, &powers{}); !errors.Is(err, ErrField) {
			t.Errorf("BN254: %v", err)
		}
	}
}
