package main

import (
	"strings"

	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/std/hash/sha2"
	"github.com/consensys/gnark/std/hash/sha3"
	"github.com/consensys/gnark/std/lookup/logderivlookup"
	"github.com/consensys/gnark/std/math/uints"
	"github.com/consensys/gnark/std/rangecheck"
)

// workload is something to prove many times in one circuit.
type workload struct {
	name string
	// circuit returns the circuit for a number of items, and its assignment.
	circuit func(items int) (frontend.Circuit, frontend.Circuit)
}

var workloads = []workload{
	{"blocks", longMessage},
	{"range", func(items int) (frontend.Circuit, frontend.Circuit) {
		return &ranges{make([]frontend.Variable, items)}, &ranges{numbers(items, 1<<16)}
	}},
	{"memory", func(items int) (frontend.Circuit, frontend.Circuit) {
		return &reads{make([]frontend.Variable, items)}, &reads{numbers(items, cells)}
	}},
	{"keccak", func(items int) (frontend.Circuit, frontend.Circuit) { return messagesOf(items, 135, true) }},
	{"sha256", func(items int) (frontend.Circuit, frontend.Circuit) { return messagesOf(items, 55, false) }},
}

func find(name string) (workload, bool) {
	for _, work := range workloads {
		if work.name == name {
			return work, true
		}
	}
	return workload{}, false
}

// names returns the names of all workloads but the first.
func names() string {
	var list []string
	for _, work := range workloads[1:] {
		list = append(list, work.name)
	}
	return strings.Join(list, ", ")
}

// numbers returns as many numbers below a limit.
func numbers(items, limit int) []frontend.Variable {
	list := make([]frontend.Variable, items)
	for i := range list {
		list[i] = (uint64(i) * 0x9e3779b97f4a7c15 >> 40) % uint64(limit)
	}
	return list
}

// ranges says that values have 16 bits.
type ranges struct {
	Values []frontend.Variable
}

func (c *ranges) Define(api frontend.API) error {
	checker := rangecheck.New(api)
	for _, value := range c.Values {
		checker.Check(value, 16)
	}
	return nil
}

// cells is the size of the memory.
const cells = 1 << 10

// reads says that a memory was read at secret addresses; gnark has no memory that can be written. Its contents are not
// constant, as those of a memory.
type reads struct {
	Addresses []frontend.Variable
}

func (c *reads) Define(api frontend.API) error {
	memory := logderivlookup.New(api)
	for i := range cells {
		memory.Insert(api.Add(c.Addresses[i%len(c.Addresses)], i))
	}
	sum := frontend.Variable(0)
	for _, value := range memory.Lookup(c.Addresses...) {
		sum = api.Add(sum, value)
	}
	// So that what was read is in a constraint.
	api.AssertIsEqual(api.Mul(sum, sum), api.Mul(sum, sum))
	return nil
}

// messages says that digests of messages were computed.
type messages struct {
	Messages [][]uints.U8
	isKeccak bool
}

func messagesOf(items, length int, isKeccak bool) (frontend.Circuit, frontend.Circuit) {
	shape := &messages{make([][]uints.U8, items), isKeccak}
	assigned := &messages{make([][]uints.U8, items), isKeccak}
	for i := range items {
		message := make([]byte, length)
		for j := range message {
			message[j] = byte(i*i + 3*j)
		}
		shape.Messages[i] = make([]uints.U8, length)
		assigned.Messages[i] = uints.NewU8Array(message)
	}
	return shape, assigned
}

func (c *messages) Define(api frontend.API) error {
	bytes, err := uints.NewBytes(api)
	if err != nil {
		return err
	}
	for _, message := range c.Messages {
		var digest []uints.U8
		if c.isKeccak {
			hash, err := sha3.NewLegacyKeccak256(api)
			if err != nil {
				return err
			}
			hash.Write(message)
			digest = hash.Sum()
		} else {
			hash, err := sha2.New(api)
			if err != nil {
				return err
			}
			hash.Write(message)
			digest = hash.Sum()
		}
		bytes.AssertIsEqual(digest[0], digest[0])
	}
	return nil
}
