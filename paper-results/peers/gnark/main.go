// Proves SHA-256 of a message, or another workload with look-ups, with gnark's Groth16 on BLS12-381, and prints one line
// of JSON.
//
// Counted are the witness and the proof; the setup, whose keys nobody should trust, is not. CPU time is that of the
// process meanwhile.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"syscall"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/constraint"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/logger"
	"github.com/consensys/gnark/std/hash/sha2"
	"github.com/consensys/gnark/std/math/uints"
)

// circuit says that the public digest is that of a private message.
type circuit struct {
	Message []uints.U8
	Digest  [sha256.Size]uints.U8 `gnark:",public"`
}

func (c *circuit) Define(api frontend.API) error {
	hash, err := sha2.New(api)
	if err != nil {
		return err
	}
	hash.Write(c.Message)
	bytes, err := uints.NewBytes(api)
	if err != nil {
		return err
	}
	for i, b := range hash.Sum() {
		bytes.AssertIsEqual(c.Digest[i], b)
	}
	return nil
}

// length returns how many bytes fill this number of blocks together with their padding.
func length(blocks int) int {
	return 64*blocks - 9
}

func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}

func median(values []float64) float64 {
	sort.Float64s(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// keysOf returns the keys from an earlier run, or sets up new ones and keeps them: the setup of the commitments to what
// is looked up uses one thread, and takes minutes.
func keysOf(compiled constraint.ConstraintSystem, name, directory string) (groth16.ProvingKey, groth16.VerifyingKey, error) {
	proving, verifying := groth16.NewProvingKey(ecc.BLS12_381), groth16.NewVerifyingKey(ecc.BLS12_381)
	path := filepath.Join(directory, name)
	if file, err := os.Open(path); err == nil {
		defer file.Close()
		if _, err := verifying.UnsafeReadFrom(file); err != nil {
			return nil, nil, err
		}
		return proving, verifying, proving.ReadDump(file)
	}
	proving, verifying, err := groth16.Setup(compiled)
	if err != nil {
		return nil, nil, err
	}
	file, err := os.CreateTemp(directory, "unfinished")
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if _, err := verifying.WriteRawTo(file); err != nil {
		return nil, nil, err
	}
	if err := proving.WriteDump(file); err != nil {
		return nil, nil, err
	}
	return proving, verifying, os.Rename(file.Name(), path)
}

// longMessage returns the circuit of one message of so many blocks, and its assignment.
func longMessage(blocks int) (frontend.Circuit, frontend.Circuit) {
	message := make([]byte, length(blocks))
	for i := range message {
		message[i] = byte(i * i)
	}
	digest := sha256.Sum256(message)
	assigned := &circuit{Message: uints.NewU8Array(message)}
	copy(assigned.Digest[:], uints.NewU8Array(digest[:]))
	return &circuit{Message: make([]uints.U8, len(message))}, assigned
}

// compile returns the constraint system of a workload, and a function that makes its witness.
func compile(work workload, items int) (constraint.ConstraintSystem, func() (witness.Witness, error), error) {
	shape, assigned := work.circuit(items)
	field := ecc.BLS12_381.ScalarField()
	compiled, err := frontend.Compile(field, r1cs.NewBuilder, shape)
	return compiled, func() (witness.Witness, error) { return frontend.NewWitness(assigned, field) }, err
}

// measure proves a constraint system, and returns the medians.
func measure(
	compiled constraint.ConstraintSystem, values func() (witness.Witness, error), name string, repetitions int, directory string,
) (map[string]any, error) {
	proving, verifying, err := keysOf(compiled, name, directory)
	if err != nil {
		return nil, err
	}
	var seconds, cpuSeconds []float64
	for range repetitions {
		// Garbage of the setup is not the prover's.
		runtime.GC()
		start := time.Now()
		before, err := cpuTime()
		if err != nil {
			return nil, err
		}
		filled, err := values()
		if err != nil {
			return nil, err
		}
		proof, err := groth16.Prove(compiled, proving, filled)
		if err != nil {
			return nil, err
		}
		after, err := cpuTime()
		if err != nil {
			return nil, err
		}
		seconds = append(seconds, time.Since(start).Seconds())
		cpuSeconds = append(cpuSeconds, (after - before).Seconds())
		public, err := filled.Public()
		if err != nil {
			return nil, err
		}
		if err := groth16.Verify(proof, verifying, public); err != nil {
			return nil, fmt.Errorf("the proof was not accepted: %w", err)
		}
	}
	return map[string]any{
		"repetitions": repetitions, "constraints": compiled.GetNbConstraints(),
		"seconds": median(seconds), "cpu_seconds": median(cpuSeconds),
	}, nil
}

// proveWorkload measures a workload of gnark's own circuits.
func proveWorkload(work workload, items, cores, repetitions int, directory string) (map[string]any, error) {
	compiled, values, err := compile(work, items)
	if err != nil {
		return nil, err
	}
	found, err := measure(compiled, values, fmt.Sprintf("%d-%s", items, work.name), repetitions, directory)
	if err != nil {
		return nil, err
	}
	found[work.name], found["cores"] = items, cores
	found[work.name+"_per_core_second"] = float64(items) / found["seconds"].(float64) / float64(cores)
	found[work.name+"_per_cpu_second"] = float64(items) / found["cpu_seconds"].(float64)
	return found, nil
}

// proveImported measures an R1CS that was compiled elsewhere.
func proveImported(r1csPath, wtnsPath string, cores, repetitions int, directory string) (map[string]any, error) {
	compiled, values, err := imported(r1csPath, wtnsPath)
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile(r1csPath)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%x-imported", sha256.Sum256(source))
	found, err := measure(compiled, values, name, repetitions, directory)
	if err != nil {
		return nil, err
	}
	found["cores"] = cores
	return found, nil
}

func main() {
	blocks := flag.Int("blocks", 8, "SHA-256 blocks, padding included")
	name := flag.String("workload", "blocks", "blocks of one message, or "+names())
	items := flag.Int("items", 0, "values, accesses or messages of another workload")
	cores := flag.Int("cores", 1, "threads")
	r1csPath := flag.String("r1cs", "", "instead of a workload, an R1CS as circom writes it")
	wtnsPath := flag.String("wtns", "", "its witness")
	repetitions := flag.Int("repetitions", 3, "proofs, of which the median counts")
	directory := flag.String("keys", ".", "where keys are kept between runs")
	flag.Parse()
	work, known := find(*name)
	if *name == "blocks" {
		*items = *blocks
	}
	if *r1csPath != "" {
		known, *items = *wtnsPath != "", 1
	}
	if !known || *items < 1 || *cores < 1 || *repetitions < 1 {
		fmt.Fprintln(os.Stderr, "error: the workload must be blocks or "+names()+
			", and blocks or items, cores and repetitions at least 1; --r1cs needs --wtns")
		os.Exit(2)
	}
	logger.Disable()
	runtime.GOMAXPROCS(*cores)
	prove := func() (map[string]any, error) { return proveWorkload(work, *items, *cores, *repetitions, *directory) }
	if *r1csPath != "" {
		prove = func() (map[string]any, error) {
			return proveImported(*r1csPath, *wtnsPath, *cores, *repetitions, *directory)
		}
	}
	found, err := prove()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
