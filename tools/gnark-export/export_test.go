package gnarkexport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark/constraint"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/frontend/cs/scs"
)

// powers says that Y = X^5 + 3 X + 7, and that X has 8 bits.
type powers struct {
	X frontend.Variable
	Y frontend.Variable `gnark:",public"`
}

func (c *powers) Define(api frontend.API) error {
	square := api.Mul(c.X, c.X)
	fifth := api.Mul(square, square, c.X)
	api.ToBinary(c.X, 8)
	api.AssertIsEqual(c.Y, api.Add(fifth, api.Mul(c.X, 3), 7))
	return nil
}

func compiled(t *testing.T, curve ecc.ID, builder frontend.NewBuilder, circuit frontend.Circuit) constraint.ConstraintSystem {
	t.Helper()
	ccs, err := frontend.Compile(curve.ScalarField(), builder, circuit)
	if err != nil {
		t.Fatal(err)
	}
	return ccs
}

// exported returns both files for X = x.
func exported(t *testing.T, x int64) (constraints, values []byte) {
	t.Helper()
	ccs := compiled(t, ecc.BLS12_381, r1cs.NewBuilder, &powers{})
	y := new(big.Int).Exp(big.NewInt(x), big.NewInt(5), nil)
	y.Add(y, big.NewInt(3*x+7))
	assignment, err := frontend.NewWitness(&powers{X: x, Y: y}, ecc.BLS12_381.ScalarField())
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

// sections reads the sections of a file in order.
func sections(t *testing.T, file []byte, magic string, version uint32) [][]byte {
	t.Helper()
	if string(file[:4]) != magic || binary.LittleEndian.Uint32(file[4:]) != version {
		t.Fatalf("begins with %x", file[:8])
	}
	count, rest := binary.LittleEndian.Uint32(file[8:]), file[12:]
	var found [][]byte
	for kind := uint32(1); kind <= count; kind++ {
		length := binary.LittleEndian.Uint64(rest[4:])
		if binary.LittleEndian.Uint32(rest) != kind || uint64(len(rest)-12) < length {
			t.Fatalf("section %d is not there", kind)
		}
		found, rest = append(found, rest[12:12+length]), rest[12+length:]
	}
	if len(rest) != 0 {
		t.Fatalf("%d bytes are left over", len(rest))
	}
	return found
}

func element(bytes []byte) fr.Element {
	var value fr.Element
	value.SetBytes(reversed(append([]byte(nil), bytes...)))
	return value
}

// falseRows counts the constraints in a file that values do not satisfy.
func falseRows(t *testing.T, constraints, values []byte) int {
	t.Helper()
	parts := sections(t, constraints, "r1cs", 1)
	z := sections(t, values, "wtns", 2)[1]
	rows := binary.LittleEndian.Uint32(parts[0][len(parts[0])-4:])
	rest, wrong := parts[1], 0
	for range rows {
		var sides [3]fr.Element
		for side := range sides {
			terms := binary.LittleEndian.Uint32(rest)
			rest = rest[4:]
			for range terms {
				wire, coefficient := binary.LittleEndian.Uint32(rest), element(rest[4:36])
				value := element(z[fieldSize*wire : fieldSize*(wire+1)])
				value.Mul(&value, &coefficient)
				sides[side].Add(&sides[side], &value)
				rest = rest[36:]
			}
		}
		sides[0].Mul(&sides[0], &sides[1])
		if !sides[0].Equal(&sides[2]) {
			wrong++
		}
	}
	if len(rest) != 0 {
		t.Fatalf("%d bytes of constraints are left over", len(rest))
	}
	return wrong
}

func TestFilesHoldForTheSolution(t *testing.T) {
	constraints, values := exported(t, 11)
	if wrong := falseRows(t, constraints, values); wrong != 0 {
		t.Fatalf("%d constraints do not hold", wrong)
	}
	// the public value is wire 1
	z := sections(t, values, "wtns", 2)[1]
	if y := element(z[32:64]); !y.Equal(new(fr.Element).SetUint64(161051 + 33 + 7)) {
		t.Fatalf("wire 1 is %s", y.String())
	}
	for wire := 1; wire < len(z)/fieldSize; wire++ {
		spoiled := append([]byte(nil), values...)
		spoiled[len(spoiled)-len(z)+fieldSize*wire] ^= 1
		if falseRows(t, constraints, spoiled) == 0 {
			t.Errorf("another value of wire %d is not noticed", wire)
		}
	}
}

// committed calls api.Commit.
type committed struct{ X frontend.Variable }

func (c *committed) Define(api frontend.API) error {
	challenge, err := api.(frontend.Committer).Commit(c.X)
	if err != nil {
		return err
	}
	api.AssertIsDifferent(challenge, c.X)
	return nil
}

func TestWhatCannotBeExportedIsRefused(t *testing.T) {
	var out bytes.Buffer
	if err := R1CS(compiled(t, ecc.BLS12_381, r1cs.NewBuilder, &committed{}), &out); !errors.Is(err, ErrCommit) {
		t.Errorf("api.Commit: %v", err)
	}
	if err := R1CS(compiled(t, ecc.BN254, r1cs.NewBuilder, &powers{}), &out); !errors.Is(err, ErrField) {
		t.Errorf("BN254: %v", err)
	}
	if err := R1CS(compiled(t, ecc.BLS12_381, scs.NewBuilder, &powers{}), &out); !errors.Is(err, ErrField) {
		t.Errorf("Plonk: %v", err)
	}
	if out.Len() != 0 {
		t.Errorf("%d bytes were written", out.Len())
	}
	assignment, err := frontend.NewWitness(&powers{X: 2, Y: 3}, ecc.BLS12_381.ScalarField())
	if err != nil {
		t.Fatal(err)
	}
	ccs := compiled(t, ecc.BLS12_381, r1cs.NewBuilder, &powers{})
	if err := Witness(ccs, assignment, &out); err == nil || !strings.Contains(err.Error(), "solving") {
		t.Errorf("a false statement: %v", err)
	}
}

// TestHekatonProves runs the program in HEKATON on the files.
func TestHekatonProves(t *testing.T) {
	program := os.Getenv("HEKATON")
	if program == "" {
		t.Skip("HEKATON is not set to the program hekaton")
	}
	gadgets, solution := files(t, NewBuilder, &ranged{}, rangedValues(1<<40-1, 5))
	emulated, product := files(t, NewHashingBuilder, &multiplied{}, multipliedValues())
	plain, values := exported(t, 11)
	for name, both := range map[string][2][]byte{
		"powers": {plain, values}, "ranges": {gadgets, solution}, "emulated": {emulated, product},
	} {
		t.Run(name, func(t *testing.T) { prove(t, program, both[0], both[1]) })
	}
}

// prove imports, sets up, proves and verifies.
func prove(t *testing.T, program string, constraints, values []byte) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	for name, bytes := range map[string][]byte{"c.r1cs": constraints, "c.wtns": values} {
		if err := os.WriteFile(at(name), bytes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{
		{"import", at("c.r1cs"), "--out", at("c.hk"), "--force"},
		{"check", at("c.hk"), at("c.wtns")},
		{"setup", at("c.hk"), "--keys", at("keys"), "--r1cs", at("c.r1cs")},
		{"prove", at("c.wtns"), "--keys", at("keys"), "--proof", at("proof"), "--public", at("public.json")},
		{"verify", at("proof"), "--key", at("keys/verifying.key"), "--public", "@" + at("public.json")},
	} {
		if out, err := exec.Command(program, arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", arguments[0], err, out)
		}
	}
}
