package gnarkexport

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/consensys/gnark/constraint"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/std/hash/poseidon2"
	"github.com/consensys/gnark/std/math/bits"
)

// mostCommitted is the largest number of values that a challenge is taken from: about 12 million
// constraints. A table of gnark's uints has one more.
const mostCommitted = 1<<16 - 1

var (
	// ErrNoCommit says that a gadget needs a challenge, which NewBuilder does not give.
	ErrNoCommit = errors.New("a gadget of this circuit needs a challenge (api.Commit), as look-up tables and " +
		"emulated arithmetic do: gnarkexport.NewHashingBuilder takes it from a hash in the circuit, for about 190 " +
		"constraints for each value that is committed to")
	// ErrTooManyCommitted says that the hash for a challenge would be too large.
	ErrTooManyCommitted = errors.New("too many values are committed to: gnark's uints (and so its SHA-2, SHA-3 and " +
		"other hashes of bytes) commit to tables of 65,536 entries; use gadgets that are made of bits")
)

// NewBuilder builds circuits that can be exported: range checks are made of bits, as nobody draws a
// challenge for them. Use it in place of r1cs.NewBuilder.
func NewBuilder(field *big.Int, config frontend.CompileConfig) (frontend.Builder[constraint.U64], error) {
	inner, err := inner(field, config)
	if err != nil {
		return nil, err
	}
	return &builder{Builder: inner}, nil
}

// NewHashingBuilder is NewBuilder for circuits that call api.Commit or use gadgets that do. The challenge
// is the Poseidon2 hash of the values that are committed to, computed by constraints: whoever proves has
// chosen the values before there is a challenge, as with a commitment. That is the Fiat-Shamir heuristic,
// and it assumes that Poseidon2 over this field behaves like a random oracle there.
func NewHashingBuilder(field *big.Int, config frontend.CompileConfig) (frontend.Builder[constraint.U64], error) {
	inner, err := inner(field, config)
	if err != nil {
		return nil, err
	}
	return &builder{Builder: inner, hashes: true}, nil
}

func inner(field *big.Int, config frontend.CompileConfig) (frontend.Builder[constraint.U64], error) {
	if field.Cmp(fieldModulus()) != 0 {
		return nil, ErrField
	}
	return r1cs.NewBuilder[constraint.U64](field, config)
}

// builder is gnark's builder of R1CS with other range checks and challenges. It embeds the interface and
// not gnark's type, so that the type's own Commit, which the export could not keep, is hidden.
type builder struct {
	frontend.Builder[constraint.U64]
	hashes bool
	// commits counts the calls of Commit: no two have the same input.
	commits int
}

var (
	_ frontend.Committer    = (*builder)(nil)
	_ frontend.Rangechecker = (*builder)(nil)
)

// Check says that a variable has at most this many bits. gnark's range checks call it.
func (b *builder) Check(v frontend.Variable, width int) {
	bits.ToBinary(b, v, bits.WithNbDigits(width))
}

// Commit returns a challenge that depends on all these values.
func (b *builder) Commit(values ...frontend.Variable) (frontend.Variable, error) {
	if !b.hashes {
		return nil, ErrNoCommit
	}
	distinct, err := b.distinct(values)
	if err != nil {
		return nil, err
	}
	hasher, err := poseidon2.New(b)
	if err != nil {
		return nil, fmt.Errorf("the hash for api.Commit: %w", err)
	}
	// the number of the call and of the values come first: calls have different inputs, and none is the
	// beginning of another
	b.commits++
	hasher.Write(b.commits, len(distinct))
	hasher.Write(distinct...)
	return hasher.Sum(), nil
}

// distinct returns the values without constants, which the circuit fixes, and each combination of variables
// once.
func (b *builder) distinct(values []frontend.Variable) ([]frontend.Variable, error) {
	seen := make(map[string]struct{}, len(values))
	var distinct []frontend.Variable
	var words []uint32
	for _, value := range values {
		if _, isConstant := b.ConstantValue(value); isConstant {
			continue
		}
		words = words[:0]
		b.ToCanonicalVariable(value).Compress(&words)
		key := fmt.Sprint(words)
		if _, found := seen[key]; found {
			continue
		}
		seen[key] = struct{}{}
		distinct = append(distinct, value)
	}
	if len(distinct) > mostCommitted {
		return nil, fmt.Errorf("%w (%d values; the most are %d)", ErrTooManyCommitted, len(distinct), mostCommitted)
	}
	return distinct, nil
}
