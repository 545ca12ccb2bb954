//! All messages between ranks, for fuzzing: every value that decodes has exactly one encoding.

use super::frame::{Frame, Kind};
use super::hello::Hello;
use super::message::{Account, Answered, Begin, BlockPhase, Part};
use crate::aggregation::block::{BlockSums, FoldingBlock, ProofCommitments, ProofVectors};
use crate::aggregation::blocks::Openings;
use crate::encoding::Reader;
use crate::mirage::WitnessCheck;
use crate::protocol::messages::{Commitment, ProofResponse};
use crate::system::Times;
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop};

/// The padded number of instances, N, of the decoders.
const PADDED: usize = 4;
/// The number of types, k, of the decoders.
const TYPES: usize = 1;

/// A valid message of each kind.
pub(crate) fn good() -> Vec<Vec<u8>> {
    let (g, h, x) = (G1Point::generator(), G2Point::generator(), Fr::from(5u64));
    let miller = MillerLoop::new(&[g], &[h]);
    let proofs = ProofVectors { a: vec![g; 2], b: vec![h; 2], c: vec![g; 2], e: vec![x; 2] };
    let openings = Openings { x: vec![x; 2], x_inverse: vec![x; 2], r_inverse: x, z: x, rho: x };
    let hello = Hello { host: "node1".into(), provers: 3, facts: Vec::new(), notes: Vec::new() };
    let answer = Commitment { instance: 1, d: g };
    let folding = FoldingBlock { l: vec![g], r: vec![h], v: vec![h], w: vec![g] };
    let begin = Begin { witness_check: WitnessCheck::Check };
    let times = Times { seconds: 0.5, cpu_seconds: 0.4 };
    let contents = vec![
        hello.fact("build", "x").note("processor", "y").encode(),
        begin.encode(),
        Answered { answer, prover: 1, times }.encode(),
        Account { subcircuits: 3, busy: 1.0, idle: 0.5, cpu: 0.9, peak_memory: 7 }.encode(),
        BlockPhase::A { start: 2, end: 4, unit: 2, d: vec![g; 2] }.encode(),
        BlockPhase::B { proofs }.encode(),
        BlockPhase::C { r: x, g: x, b: x }.encode(),
        BlockPhase::D { s1: x, s2: x }.encode(),
        BlockPhase::E { s3: x, ledger: x, q: vec![h] }.encode(),
        BlockPhase::GipaRound { x: Some((x, x)) }.encode(),
        BlockPhase::F { x: None }.encode(),
        BlockPhase::G(openings).encode(),
        Part::encode(&miller),
        Part::encode(&ProofCommitments { a: miller, b: miller, c: miller, v_e: h }),
        Part::encode(&folding),
        Part::encode(&(h, g)),
    ];
    let frame = Frame { kind: Kind::Part, run: 3, content: vec![1, 2, 3] }.to_bytes();
    contents.into_iter().chain([frame]).collect()
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
    part::<MillerLoop>(bytes);
    part::<ProofCommitments>(bytes);
    part::<BlockSums>(bytes);
    part::<[MillerLoop; 6]>(bytes);
    part::<FoldingBlock>(bytes);
    part::<(G2Point, G1Point)>(bytes);
}
