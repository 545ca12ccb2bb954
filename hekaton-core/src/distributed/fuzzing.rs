//! All messages between ranks, for fuzzing: every value that decodes has exactly one encoding.

use super::encoding::Writer;
use super::frame::{Frame, Kind};
use super::groups::{pack, report, reported, unpack};
use super::hello::Hello;
use super::jobs::{Decoder, Taken, encode_job, encode_own, encode_taken};
use super::leaders::GroupPhase;
use super::message::{Account, Answered, Begin, BlockPhase, Execute, Executed, Part, Revoke};
use crate::aggregation::block::{BlockSums, FoldingBlock, ProofCommitments, ProofVectors};
use crate::aggregation::blocks::Openings;
use crate::encoding::Reader;
use crate::events::DeviceWork;
use crate::mirage::WitnessCheck;
use crate::protocol::executed::SliceSummary;
use crate::protocol::messages::{Commitment, Job, OwnJob, ProofResponse};
use crate::randomness::InstanceRandomness;
use crate::system::Times;
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop};
use hekaton_circuit::{Closures, LookUps, Masking, PreparedCircuit, SlotAccess};
use std::ops::Range;

/// The padded number of instances, N, of the decoders.
const PADDED: usize = 4;
/// The number of types, k, of the decoders.
const TYPES: usize = 1;

/// The ranks of the group of the decoders.
const GROUP: Range<usize> = 3..6;

/// Two subcircuits of two slots, with bytes as private input.
fn with_circuit<R>(f: impl FnOnce(&PreparedCircuit<'_>) -> R) -> R {
    let circuit = Closures::<Vec<u8>>::new(
        |layout| {
            let wires =
                [layout.public_input("x", 0), layout.wire("y", 0), layout.public_output("z", 0)];
            let kind = layout.subcircuit_type("square", 2);
            for i in 0..2 {
                let instance = layout.instance(kind);
                layout.read(instance, 0, wires[i]);
                layout.write(instance, 1, wires[i + 1]);
            }
            Ok(wires.to_vec())
        },
        |_, _| Ok(()),
        |_| Ok(Vec::new()),
        |_, _| Ok(()),
    );
    f(&PreparedCircuit::new(&circuit).expect("a valid layout"))
}

/// Jobs of each kind, and subcircuits that a rank returns.
fn jobs(circuit: &PreparedCircuit<'_>) -> Vec<Vec<u8>> {
    // Two bytes, as postcard encodes them.
    let private = || circuit.decode_private(&[2, 7, 8]).expect("a valid private input");
    let x = Fr::from(5u64);
    let randomness = || InstanceRandomness::from_secret_bytes(&[9; InstanceRandomness::BYTES]);
    let slots = vec![SlotAccess::UNUSED; 4];
    let (values, private_input) = (vec![x; 4], Some(private()));
    let job = Job {
        instance: 1,
        kind: 0,
        values,
        slots,
        private: private_input,
        randomness: randomness(),
    };
    let own = OwnJob { instance: 1, randomness: randomness(), masks: vec![x; 2] };
    let taken = Taken { values: vec![x; 2], private: private() };
    let revoked = Writer::default().count(1).u32(1).count(1);
    let whole = encode_job(Writer::default(), &job, circuit).expect("bytes can be encoded").0;
    let revoked = encode_taken(revoked, &taken, circuit).expect("bytes can be encoded").0;
    vec![whole, encode_own(Writer::default(), &own).0, revoked]
}

/// A valid message of each kind.
pub(crate) fn good() -> Vec<Vec<u8>> {
    let (g, h, x) = (G1Point::generator(), G2Point::generator(), Fr::from(5u64));
    let miller = MillerLoop::new(&[g], &[h]);
    let proofs = ProofVectors { a: vec![g; 2], b: vec![h; 2], c: vec![g; 2], e: vec![x; 2] };
    let openings = Openings { x: vec![x; 2], x_inverse: vec![x; 2], r_inverse: x, z: x, rho: x };
    let (facts, notes, secrets) = (Vec::new(), Vec::new(), Vec::new());
    let hello = Hello { host: "node1".into(), provers: 3, facts, notes, secrets };
    let answer = Commitment { instance: 1, d: g, mark: [0; 32] };
    let folding = FoldingBlock { l: vec![g], r: vec![h], v: vec![h], w: vec![g] };
    let begin = Begin { witness_check: WitnessCheck::Check };
    let times = Times { seconds: 0.5, cpu_seconds: 0.4 };
    // Rows 2 and 7 of bus 1, the second one three times.
    let look_ups = LookUps::decode(&[2, 1, 2, 1, 0, 5, 3]).expect("a canonical encoding");
    let work =
        DeviceWork { batches: 2, subcircuits: 3, compute_seconds: 0.5, ..DeviceWork::default() };
    let account = Account {
        subcircuits: 3,
        busy: 1.0,
        idle: 0.5,
        cpu: 0.9,
        peak_memory: 7,
        devices: vec![("GPU 0".into(), work)],
        notices: vec!["it fell off the bus".into()],
    };
    let contents = vec![
        hello.fact("build", "x").note("processor", "y").secret("input", b"z").encode(),
        begin.encode(),
        Answered { answer, prover: 1, times, look_ups: LookUps::default() }.encode(),
        Answered { answer, prover: 1, times, look_ups }.encode(),
        account.encode(),
        BlockPhase::A { start: 2, end: 4, unit: 2, d: vec![g; 2] }.encode(),
        BlockPhase::B { proofs }.encode(),
        BlockPhase::C { r: x, memory: hekaton_circuit::MemoryChallenges::new(x, x) }.encode(),
        BlockPhase::D { s1: x, s2: x }.encode(),
        BlockPhase::E { s3: x, ledger: x, q: vec![h] }.encode(),
        BlockPhase::GipaRound { x: Some((x, x)) }.encode(),
        BlockPhase::F { x: None }.encode(),
        BlockPhase::G(openings).encode(),
        Part::encode(&miller),
        Part::encode(&ProofCommitments { a: miller, b: miller, c: miller, v_e: h }),
        Part::encode(&folding),
        Part::encode(&(h, g)),
        Execute { range: 1..3, key: [7; 32] }.encode(),
        Executed {
            summary: SliceSummary { balance: 5, public: vec![(0, x)], digests: vec![[6; 32]; 2] },
            times,
        }
        .encode(),
        Revoke { most: 3, with_values: true }.encode(),
        pack(&[(3, vec![1, 2]), (5, Vec::new())]),
        GroupPhase::new(vec![
            (3, BlockPhase::GipaRound { x: None }),
            (5, BlockPhase::F { x: None }),
        ])
        .encode(),
        report(4, "why"),
    ];
    let frame = Frame { kind: Kind::Part, run: 3, content: vec![1, 2, 3] }.to_bytes();
    contents.into_iter().chain([frame]).chain(with_circuit(jobs)).collect()
}

/// Decodes bytes as a part, whose encoding must be the same bytes.
fn part<T: Part>(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    if let Ok(value) = T::decode(&mut reader, TYPES)
        && reader.finish().is_ok()
    {
        assert_eq!(value.encode(), bytes, "one encoding");
    }
}

/// Decodes bytes as every kind of message.
pub(crate) fn decode(bytes: &[u8]) {
    if let Ok(frame) = Frame::from_bytes(bytes.to_vec()) {
        assert_eq!(frame.to_bytes(), bytes, "one encoding");
    }
    if let Ok(hello) = Hello::decode(bytes) {
        assert_eq!(Hello::decode(&hello.encode()).as_ref(), Ok(&hello));
    }
    let _ = Begin::decode(bytes);
    let _ = Account::decode(bytes);
    let _ = Answered::<Commitment>::decode(bytes);
    let _ = Answered::<ProofResponse>::decode(bytes);
    if let Ok(phase) = BlockPhase::decode(bytes, PADDED) {
        assert_eq!(BlockPhase::decode(&phase.encode(), PADDED).as_ref(), Ok(&phase));
    }
    if let Ok(execute) = Execute::decode(bytes, PADDED) {
        assert_eq!(execute.encode(), bytes, "one encoding");
        assert!(execute.range.start <= execute.range.end && execute.range.end <= PADDED);
    }
    if let Ok(executed) = Executed::decode(bytes) {
        assert_eq!(executed.encode(), bytes, "one encoding");
    }
    let _ = Revoke::decode(bytes);
    if let Ok(messages) = unpack(bytes, &GROUP) {
        assert_eq!(pack(&messages), bytes, "one encoding");
        assert!(messages.iter().all(|(rank, _)| GROUP.contains(rank)));
    }
    if let Ok(phase) = GroupPhase::decode(bytes, &GROUP) {
        assert_eq!(phase.encode(), bytes, "one encoding");
    }
    let _ = reported(bytes, &GROUP);
    with_circuit(|circuit| {
        let decoder = Decoder { circuit, masking: Masking::Masked };
        let _ = decoder.job(&mut Reader::new(bytes));
        let _ = decoder.own(&mut Reader::new(bytes));
        let _ = decoder.revoked(bytes);
    });
    part::<MillerLoop>(bytes);
    part::<ProofCommitments>(bytes);
    part::<BlockSums>(bytes);
    part::<[MillerLoop; 6]>(bytes);
    part::<FoldingBlock>(bytes);
    part::<(G2Point, G1Point)>(bytes);
}
