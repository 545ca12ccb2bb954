// Command evm writes the Solidity verifier that gnark exports for a small circuit, and the calldata of its call with a
// proof: the rival of scripts/demo-evm, for its table of gas. Usage: evm CONTRACT.sol CALLDATA.hex
package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"log"
	"math/big"
	"os"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/backend/groth16"
	groth16bn254 "github.com/consensys/gnark/backend/groth16/bn254"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"golang.org/x/crypto/sha3"
)

// square has two public values, as the circuit of the table: y = x^2.
type square struct {
	X frontend.Variable `gnark:",public"`
	Y frontend.Variable `gnark:",public"`
}

func (c *square) Define(api frontend.API) error {
	api.AssertIsEqual(c.Y, api.Mul(c.X, c.X))
	return nil
}

func run(contract, calldata string) error {
	system, err := frontend.Compile(ecc.BN254.ScalarField(), r1cs.NewBuilder, &square{})
	if err != nil {
		return err
	}
	proving, verifying, err := groth16.Setup(system)
	if err != nil {
		return err
	}
	witness, err := frontend.NewWitness(&square{X: 3, Y: 9}, ecc.BN254.ScalarField())
	if err != nil {
		return err
	}
	proof, err := groth16.Prove(system, proving, witness)
	if err != nil {
		return err
	}
	var source bytes.Buffer
	if err := verifying.ExportSolidity(&source); err != nil {
		return err
	}
	if err := os.WriteFile(contract, source.Bytes(), 0o644); err != nil {
		return err
	}
	hash := sha3.NewLegacyKeccak256()
	hash.Write([]byte("verifyProof(bytes,uint256[2])"))
	data := hash.Sum(nil)[:4]
	encoded := proof.(*groth16bn254.Proof).MarshalSolidity()
	// The place of the proof, the public values, and the proof with its length.
	for _, value := range []int64{96, 3, 9, int64(len(encoded))} {
		data = append(data, big.NewInt(value).FillBytes(make([]byte, 32))...)
	}
	data = append(data, encoded...)
	return os.WriteFile(calldata, []byte(hex.EncodeToString(data)+"\n"), 0o644)
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: evm CONTRACT.sol CALLDATA.hex")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}
