// Package gnarkexport writes gnark circuits over BLS12-381 as circom's .r1cs and .wtns files, which
// `hekaton import` and `hekaton prove` read. Public values are gnark's public inputs in their order.
package gnarkexport

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	cs "github.com/consensys/gnark/constraint/bls12-381"
)

// fieldSize is the number of bytes of a field element.
const fieldSize = 32

var (
	// ErrField says that a circuit is not an R1CS over the scalar field of BLS12-381.
	ErrField = errors.New("not an R1CS over BLS12-381: compile with ecc.BLS12_381.ScalarField() and r1cs.NewBuilder")
	// ErrCommit says that a circuit calls api.Commit of gnark's own builder.
	ErrCommit = errors.New("the circuit has api.Commit of gnark's builder, whose challenge comes from gnark's prover and " +
		"which no constraint binds: compile with gnarkexport.NewBuilder in place of r1cs.NewBuilder")
)

// system returns the constraints if they can be exported.
func system(ccs constraint.ConstraintSystem) (*cs.R1CS, error) {
	r1cs, ok := ccs.(*cs.R1CS)
	if !ok || r1cs.Type != constraint.SystemR1CS {
		return nil, ErrField
	}
	switch commitments := r1cs.GetCommitments().(type) {
	case nil:
	case constraint.Groth16Commitments:
		if len(commitments) > 0 {
			return nil, ErrCommit
		}
	default:
		return nil, ErrCommit
	}
	return r1cs, nil
}

// wires returns the number of wires. Wire 0 is the constant 1; public, secret and internal ones follow.
func wires(r1cs *cs.R1CS) uint32 {
	return uint32(r1cs.GetNbPublicVariables() + r1cs.GetNbSecretVariables() + r1cs.GetNbInternalVariables())
}

// R1CS writes the constraints of a circuit as an .r1cs file.
func R1CS(ccs constraint.ConstraintSystem, w io.Writer) error {
	r1cs, err := system(ccs)
	if err != nil {
		return err
	}
	count, public := wires(r1cs), uint32(r1cs.GetNbPublicVariables())-1
	header := binary.LittleEndian.AppendUint32(nil, fieldSize)
	header = append(header, modulus()...)
	for _, number := range []uint32{count, 0, public, uint32(r1cs.GetNbSecretVariables())} {
		header = binary.LittleEndian.AppendUint32(header, number)
	}
	header = binary.LittleEndian.AppendUint64(header, uint64(count))
	header = binary.LittleEndian.AppendUint32(header, uint32(r1cs.GetNbConstraints()))

	// the length of the constraints comes before them
	length := uint64(0)
	each(r1cs, func(side constraint.LinearExpression) { length += 4 + (4+fieldSize)*uint64(len(side)) })
	out := &writer{Writer: bufio.NewWriterSize(w, 1<<20)}
	out.bytes([]byte("r1cs"))
	out.u32(1)
	out.u32(3)
	out.section(1, uint64(len(header)))
	out.bytes(header)
	out.section(2, length)
	each(r1cs, func(side constraint.LinearExpression) {
		out.u32(uint32(len(side)))
		for _, term := range side {
			out.u32(term.VID)
			out.element(&r1cs.Coefficients[term.CID])
		}
	})
	out.section(3, 8*uint64(count))
	for wire := uint64(0); wire < uint64(count); wire++ {
		out.bytes(binary.LittleEndian.AppendUint64(nil, wire))
	}
	return out.end()
}

// each calls f with A, B and C of all constraints.
func each(r1cs *cs.R1CS, f func(constraint.LinearExpression)) {
	rows := r1cs.GetR1CIterator()
	for row := rows.Next(); row != nil; row = rows.Next() {
		f(row.L)
		f(row.R)
		f(row.O)
	}
}

// Witness solves a circuit and writes the values of all wires as a .wtns file.
func Witness(ccs constraint.ConstraintSystem, assignment witness.Witness, w io.Writer) error {
	r1cs, err := system(ccs)
	if err != nil {
		return err
	}
	solved, err := r1cs.Solve(assignment)
	if err != nil {
		return fmt.Errorf("solving the circuit: %w", err)
	}
	solution, ok := solved.(*cs.R1CSSolution)
	if !ok || uint32(len(solution.W)) != wires(r1cs) || !solution.W[0].IsOne() {
		return errors.New("gnark's solution has another form than expected: use the version of gnark in go.mod")
	}
	header := binary.LittleEndian.AppendUint32(nil, fieldSize)
	header = append(header, modulus()...)
	header = binary.LittleEndian.AppendUint32(header, wires(r1cs))
	out := &writer{Writer: bufio.NewWriterSize(w, 1<<20)}
	out.bytes([]byte("wtns"))
	out.u32(2)
	out.u32(2)
	out.section(1, uint64(len(header)))
	out.bytes(header)
	out.section(2, fieldSize*uint64(len(solution.W)))
	for i := range solution.W {
		out.element(&solution.W[i])
	}
	return out.end()
}

// fieldModulus returns the modulus of the field.
func fieldModulus() *big.Int {
	return fr.Modulus()
}

// modulus returns the modulus of the field, little-endian.
func modulus() []byte {
	bytes := make([]byte, fieldSize)
	fieldModulus().FillBytes(bytes)
	return reversed(bytes)
}

func reversed(bytes []byte) []byte {
	for i, j := 0, len(bytes)-1; i < j; i, j = i+1, j-1 {
		bytes[i], bytes[j] = bytes[j], bytes[i]
	}
	return bytes
}

// writer keeps the first error.
type writer struct {
	*bufio.Writer
	err error
}

func (w *writer) bytes(bytes []byte) {
	if w.err == nil {
		_, w.err = w.Write(bytes)
	}
}

func (w *writer) u32(number uint32) {
	w.bytes(binary.LittleEndian.AppendUint32(nil, number))
}

func (w *writer) section(kind uint32, length uint64) {
	w.u32(kind)
	w.bytes(binary.LittleEndian.AppendUint64(nil, length))
}

func (w *writer) element(value *fr.Element) {
	bytes := value.Bytes()
	w.bytes(reversed(bytes[:]))
}

func (w *writer) end() error {
	if w.err != nil {
		return w.err
	}
	return w.Flush()
}
