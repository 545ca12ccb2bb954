// SPDX-License-Identifier: MIT OR Apache-2.0
// Verifies direct proofs of Hekaton under one key (docs/spec/14-direct.md). Written by `hekaton export verifier --evm`:
// the same bytes for the same keys and version, so `--check` compares a file with the keys it was exported from.
//
// - Compile for Prague or later: `solc --optimize --via-ir --evm-version prague`. On chains without the precompiles of
//   EIP-2537, all proofs are refused.
// - A proof is not unique: anybody can change it into others of the same statement. Do not use its bytes as an identifier.
// - The contract keeps no state and does not prevent repetition. What a payment depends on (recipient, nonce, chain) must
//   be a public value or in `context`, for example keccak256(abi.encode(block.chainid, contract, caller)).
// - A point that is not in its group burns the gas that the call of a precompile was given. A revert is not evidence that a
//   proof is wrong: with too little gas, any call reverts.
// - `verify` returns nothing, and a low-level call of an address without code succeeds. Call it by its type, and compare KEY.
//@HEADER
pragma solidity ^0.8.27;

contract HekatonVerifier {
    /// The number of public values is not that of the key.
    error WrongNumberOfValues();
    /// The length of the proof is not that of the key.
    error WrongLength();
    /// A public value or a term is not below the order of the groups.
    error NotReduced();
    /// A public value or a constant hits a pole (zero denominator) of the memory check.
    error Pole();
    /// The memory check does not hold.
    error WrongSum();
    /// A point is not in its group, the call had too little gas, or the chain has no such precompile.
    error PrecompileFailed();
    /// The equations of the subcircuits do not hold.
    error WrongProof();
    //@ERRORS

    /// The order of the groups.
    uint256 private constant R = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001;
    bytes32 private constant TAG = "hekaton direct v1";
    /// The digest of the key.
    bytes32 public constant KEY = /*@KEY*/ 0;
    /// Numbers of subcircuits, types, and different points Theta.
    uint256 private constant INSTANCES = /*@INSTANCES*/ 0;
    uint256 private constant TYPES = /*@TYPES*/ 0;
    uint256 private constant THETAS = /*@THETAS*/ 0;
    /// Number of public values, and of the constants of the key, which follow them in the list of wires.
    uint256 private constant PUBLIC = /*@PUBLIC*/ 0;
    uint256 private constant CONSTANTS = /*@CONSTANTS*/ 0;
    /// Number of points in the public part S.
    uint256 private constant POINTS = /*@POINTS*/ 0;
    bool private constant BUSES = /*@BUSES*/ false;
    /// Places in the data of the key: wires first, then the types, the instances, the slots, alpha, K, the points of S,
    /// and the negated points -beta, -gamma, -delta and -eta of each type, -Theta.
    uint256 private constant OF_TYPES = /*@OF_TYPES*/ 0;
    uint256 private constant OF_INSTANCES = /*@OF_INSTANCES*/ 0;
    uint256 private constant OF_SLOTS = /*@OF_SLOTS*/ 0;
    uint256 private constant OF_POINTS = /*@OF_POINTS*/ 0;
    uint256 private constant OF_BASES = /*@OF_BASES*/ 0;
    //@DATA

    struct Challenges {
        uint256 g;
        uint256 b;
        uint256 bT;
        uint256 bV;
        uint256 r;
    }

    /// Returns if `proof` proves the public values `x` in this context, and reverts otherwise.
    function verify(uint256[] calldata x, bytes32 context, bytes calldata proof) external view {
        if (x.length != PUBLIC) revert WrongNumberOfValues();
        if (proof.length != 672 * INSTANCES) revert WrongLength();
        Challenges memory c;
        uint256 start;
        assembly {
            start := mload(0x40)
        }
        // All committed values are fixed before g and b, and all answers before r.
        bytes32 t0 = keccak256(abi.encodePacked(TAG, KEY, context, x, proof[:128 * INSTANCES]));
        bytes32 t1 = keccak256(abi.encodePacked(t0, proof[128 * INSTANCES:]));
        (c.g, c.b, c.r) = (challenge(t0, 1), challenge(t0, 2), challenge(t1, 5));
        if (BUSES) (c.bT, c.bV) = (challenge(t0, 3), challenge(t0, 4));
        // The hashed bytes are not needed again.
        assembly {
            mstore(0x40, start)
        }
        uint256 data = keyData();
        checkSum(x, proof, c, data);
        checkPairings(proof, c, data);
    }

    function challenge(bytes32 state, uint256 number) private pure returns (uint256) {
        return uint256(keccak256(abi.encode(state, number))) % R;
    }

    /// The memory check: the terms of all subcircuits and those of public wires and constants sum to zero.
    function checkSum(uint256[] calldata x, bytes calldata proof, Challenges memory c, uint256 data) private pure {
        unchecked {
            // The sum as a fraction, which needs no inverse.
            uint256 numerator = 0;
            uint256 denominator = 1;
            for (uint256 i = 0; i < PUBLIC + CONSTANTS; i++) {
                uint256 wire = word(data + 32 * i);
                uint256 value = i < PUBLIC ? x[i] : word(data + 32 * (CONSTANTS + i));
                if (value >= R) revert NotReduced();
                uint256 f = addmod(addmod(c.g, value, R), mulmod(c.b, wire >> 64, R), R);
                numerator = addmod(mulmod(numerator, f, R), mulmod(signed(wire), denominator, R), R);
                denominator = mulmod(denominator, f, R);
            }
            if (denominator == 0) revert Pole();
            uint256 terms = 0;
            for (uint256 i = 0; i < INSTANCES; i++) {
                uint256 e = term(proof, i);
                if (e >= R) revert NotReduced();
                terms = addmod(terms, e, R);
            }
            if (addmod(numerator, mulmod(denominator, terms, R), R) != 0) revert WrongSum();
        }
    }

    /// The equations of all subcircuits with the factors r^i, as one product of pairings.
    function checkPairings(bytes calldata proof, Challenges memory c, uint256 data) private view {
        unchecked {
            // Memory: factors, pairs of points of G1 and G2, and a list of points with scalars.
            uint256 factors;
            assembly {
                factors := mload(0x40)
            }
            uint256 pairs = factors + 32 * INSTANCES;
            uint256 list = pairs + 384 * (INSTANCES + 2 + 2 * TYPES + THETAS);
            uint256 total = 0;
            uint256 factor = 1;
            for (uint256 i = 0; i < INSTANCES; i++) {
                store(factors + 32 * i, factor);
                total = addmod(total, factor, R);
                factor = mulmod(factor, c.r, R);
            }
            uint256 pair = pairs;
            for (uint256 i = 0; i < INSTANCES; i++) {
                read(list, proof, 128 * INSTANCES + 384 * i, 128);
                store(list + 128, word(factors + 32 * i));
                sum(list, 1, pair);
                read(pair + 128, proof, 128 * INSTANCES + 384 * i + 128, 256);
                pair += 384;
            }
            uint256 points = data + OF_POINTS;
            uint256 bases = data + OF_BASES;
            copy(list, points, 128);
            store(list + 128, total);
            sum(list, 1, pair);
            pair += 384;
            publicPart(c, data, factors, list);
            sum(list, POINTS, pair);
            pair += 384;
            copy(pair - 384 - 384 + 128, bases, 256);
            copy(pair - 384 + 128, bases + 256, 256);
            bases += 512;
            for (uint256 kind = 0; kind < TYPES; kind++) {
                // C, then D.
                for (uint256 part = 0; part < 2; part++) {
                    uint256 start = part == 0 ? 512 * INSTANCES : 0;
                    uint256 count = 0;
                    for (uint256 i = 0; i < INSTANCES; i++) {
                        if (half(data + OF_INSTANCES + 8 * i) != kind) continue;
                        read(list + 160 * count, proof, start + 128 * i, 128);
                        store(list + 160 * count + 128, word(factors + 32 * i));
                        count++;
                    }
                    if (count != 0) {
                        sum(list, count, pair);
                        copy(pair + 128, bases, 256);
                        pair += 384;
                    }
                    bases += 256;
                }
            }
            for (uint256 theta = 0; theta < THETAS; theta++) {
                uint256 e = 0;
                for (uint256 i = 0; i < INSTANCES; i++) {
                    uint256 kind = half(data + OF_INSTANCES + 8 * i);
                    if (half(data + OF_TYPES + 16 * kind + 4) != theta) continue;
                    e = addmod(e, mulmod(word(factors + 32 * i), term(proof, i), R), R);
                }
                copy(list, points + 128, 128);
                store(list + 128, e);
                sum(list, 1, pair);
                copy(pair + 128, bases, 256);
                bases += 256;
                pair += 384;
            }
            if (!product(pairs, pair - pairs)) revert WrongProof();
        }
    }

    /// Writes the points of the public part S with their scalars to `list`.
    function publicPart(Challenges memory c, uint256 data, uint256 factors, uint256 list) private pure {
        unchecked {
            for (uint256 i = 0; i < POINTS; i++) {
                copy(list + 160 * i, data + OF_POINTS + 256 + 128 * i, 128);
                store(list + 160 * i + 128, 0);
            }
            uint256 slot = data + OF_SLOTS;
            for (uint256 i = 0; i < INSTANCES; i++) {
                uint256 factor = word(factors + 32 * i);
                uint256 instance = data + OF_INSTANCES + 8 * i;
                uint256 kind = data + OF_TYPES + 16 * half(instance);
                addTo(list, half(kind), mulmod(c.g, factor, R));
                addTo(list, half(instance + 2), factor);
                uint256 slots = half(kind + 6);
                if (slots == 0) {
                    addTo(list, half(instance + 4), mulmod(c.b, factor, R));
                } else {
                    // By columns: the points of multiplicities, then those of addresses.
                    uint256 column = half(instance + 4);
                    uint256 ofAddresses = mulmod(c.b, factor, R);
                    for (uint256 j = 0; j < slots; j++) {
                        uint256 access = word(slot) >> 128;
                        addTo(list, column + j, mulmod(signed(access), factor, R));
                        addTo(list, column + slots + j, mulmod(access >> 64, ofAddresses, R));
                        slot += 16;
                    }
                }
                if (BUSES) {
                    addTo(list, half(kind + 2), mulmod(c.bT, factor, R));
                    addTo(list, half(instance + 6), mulmod(c.bV, factor, R));
                }
            }
        }
    }

    /// Adds to the scalar of a point in a list.
    function addTo(uint256 list, uint256 point, uint256 scalar) private pure {
        assembly ("memory-safe") {
            let place := add(list, add(mul(point, 160), 128))
            mstore(place, addmod(mload(place), scalar, R))
        }
    }

    /// A signed multiplicity, in the lowest 64 bits, as a scalar.
    function signed(uint256 access) private pure returns (uint256 scalar) {
        assembly ("memory-safe") {
            scalar := signextend(7, access)
            if slt(scalar, 0) {
                scalar := add(scalar, R)
            }
        }
    }

    /// The sum of the points of a list of points and scalars. A point with the scalar 1 is not multiplied: the pairing
    /// checks its group.
    function sum(uint256 list, uint256 count, uint256 out) private view {
        bool done;
        assembly ("memory-safe") {
            switch and(eq(count, 1), eq(mload(add(list, 128)), 1))
            case 1 {
                mcopy(out, list, 128)
                done := 1
            }
            default {
                done := staticcall(gas(), 0x0c, list, mul(count, 160), out, 128)
                // Where there is no such precompile, the call succeeds and returns nothing.
                done := and(done, eq(returndatasize(), 128))
            }
        }
        if (!done) revert PrecompileFailed();
    }

    /// Whether a product of pairings is one.
    function product(uint256 pairs, uint256 length) private view returns (bool one) {
        bool done;
        assembly ("memory-safe") {
            done := staticcall(gas(), 0x0f, pairs, length, 0, 32)
            done := and(done, eq(returndatasize(), 32))
            one := eq(mload(0), 1)
        }
        if (!done) revert PrecompileFailed();
    }

    /// The term e of a subcircuit.
    function term(bytes calldata proof, uint256 i) private pure returns (uint256 e) {
        assembly ("memory-safe") {
            e := calldataload(add(proof.offset, add(mul(640, INSTANCES), mul(i, 32))))
        }
    }

    function read(uint256 to, bytes calldata proof, uint256 from, uint256 length) private pure {
        assembly ("memory-safe") {
            calldatacopy(to, add(proof.offset, from), length)
        }
    }

    function copy(uint256 to, uint256 from, uint256 length) private pure {
        assembly ("memory-safe") {
            mcopy(to, from, length)
        }
    }

    function store(uint256 to, uint256 value) private pure {
        assembly ("memory-safe") {
            mstore(to, value)
        }
    }

    function word(uint256 from) private pure returns (uint256 value) {
        assembly ("memory-safe") {
            value := mload(from)
        }
    }

    /// A number of two bytes.
    function half(uint256 from) private pure returns (uint256 value) {
        assembly ("memory-safe") {
            value := shr(240, mload(from))
        }
    }
}
