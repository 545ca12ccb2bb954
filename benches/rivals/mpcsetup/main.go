// Command mpcsetup times gnark's setup ceremony on BLS12-381, on one core, and prints the seconds as JSON: a contribution to powers for N rows
// and its verification, the start of a circuit's phase of N rows, and a contribution to that. Contributions are read and written, with all checks
// of their points, as contributors and coordinators have to.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/bits"
	"os"
	"runtime"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/backend/groth16/bls12-381/mpcsetup"
	cs "github.com/consensys/gnark/constraint/bls12-381"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
)

// squarings is a circuit with one row for each squaring.
type squarings struct {
	X frontend.Variable
	Y frontend.Variable `gnark:",public"`
	n int
}

func (c *squarings) Define(api frontend.API) error {
	x := c.X
	for i := 0; i < c.n; i++ {
		x = api.Mul(x, x)
	}
	api.AssertIsEqual(x, c.Y)
	return nil
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func seconds(work func()) float64 {
	runtime.GC()
	start := time.Now()
	work()
	return time.Since(start).Seconds()
}

func main() {
	rows := flag.Uint64("rows", 1<<13, "number of rows, a power of two")
	flag.Parse()
	if bits.OnesCount64(*rows) != 1 {
		log.Fatal("--rows must be a power of two")
	}
	// The library starts as many goroutines as it likes: on one core.
	runtime.GOMAXPROCS(1)

	start := mpcsetup.NewPhase1(*rows)
	start.Contribute()
	var before, after bytes.Buffer
	must(start.WriteTo(&before))
	contribute := seconds(func() {
		var received mpcsetup.Phase1
		must(received.ReadFrom(&before))
		received.Contribute()
		must(received.WriteTo(&after))
	})
	powers := new(mpcsetup.Phase1)
	add := seconds(func() {
		must(powers.ReadFrom(&after))
		if err := start.Verify(powers); err != nil {
			log.Fatal(err)
		}
	})
	commons := powers.Seal([]byte("beacon"))

	circuit := squarings{n: int(*rows) - 2}
	system := must(frontend.Compile(ecc.BLS12_381.ScalarField(), r1cs.NewBuilder, &circuit)).(*cs.R1CS)
	var phase mpcsetup.Phase2
	begin := seconds(func() { phase.Initialize(system, &commons) })
	var sent bytes.Buffer
	before.Reset()
	must(phase.WriteTo(&before))
	second := seconds(func() {
		var received mpcsetup.Phase2
		must(received.ReadFrom(&before))
		received.Contribute()
		must(received.WriteTo(&sent))
	})
	points := len(phase.Parameters.G1.Z) + len(phase.Parameters.G1.PKK)

	found := map[string]any{
		"rows": *rows, "contribute": contribute, "add": add, "new": begin,
		"circuit_contribute": second, "circuit_points": points,
	}
	fmt.Fprintln(os.Stdout, string(must(json.Marshal(found))))
}
