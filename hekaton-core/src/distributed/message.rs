//! The contents of messages between ranks: encoding, and decoding that checks everything
//! (docs/formats.md, "Messages between ranks").

use super::encoding::Writer;
use crate::aggregation::block::{BlockSums, FoldingBlock, ProofCommitments, ProofVectors, Sums};
use crate::aggregation::blocks::Openings;
use crate::encoding::{DecodeError, Reader};
use crate::events::{DeviceWork, Phase};
use crate::mirage::WitnessCheck;
use crate::protocol::answer::Answer;
use crate::protocol::executed::SliceSummary;
use crate::system::Times;
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop};
use hekaton_circuit::{LookUps, MemoryChallenges};
use std::ops::Range;

/// The start of an attempt: the settings that its jobs share. The seed of the run stays with rank 0: every job
/// carries the secrets of its own subcircuit (spec: zero-knowledge#randomness).
#[derive(Clone, Copy)]
pub(crate) struct Begin {
    pub(crate) witness_check: WitnessCheck,
}

impl Begin {
    pub(crate) fn encode(self) -> Vec<u8> {
        vec![(self.witness_check == WitnessCheck::Check).into()]
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let check = reader.array::<1>("flags")?[0];
        reader.finish()?;
        let witness_check = if check != 0 { WitnessCheck::Check } else { WitnessCheck::Skip };
        Ok(Self { witness_check })
    }
}

/// The slice of the circuit that a rank is asked to execute (spec: distributed#slices).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Execute {
    pub(crate) range: Range<usize>,
    /// The key of the balance.
    pub(crate) key: [u8; 32],
}

impl Execute {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default().count(self.range.start).count(self.range.end).0;
        out.extend(self.key);
        out
    }

    /// Decodes a slice of `n` instances.
    pub(crate) fn decode(bytes: &[u8], n: usize) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let range = reader.u32("start")? as usize..reader.u32("end")? as usize;
        if range.start > range.end || range.end > n {
            let why = format_args!("{range:?} is not a slice of {n} instances");
            return Err(reader.invalid("slice", 8, why));
        }
        let out = Self { range, key: reader.array("key")? };
        reader.finish()?;
        Ok(out)
    }
}

/// A rank's report on the execution of its slice, and the time it took.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Executed {
    pub(crate) summary: SliceSummary,
    pub(crate) times: Times,
}

impl Executed {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let SliceSummary { balance, public, digests } = &self.summary;
        let Times { seconds, cpu_seconds } = self.times;
        let mut head = Writer::default().f64(seconds).f64(cpu_seconds);
        head.0.extend(balance.to_le_bytes());
        let with_public = (public.iter())
            .fold(head.count(public.len()), |out, (place, value)| out.u32(*place).scalar(value));
        let mut out = with_public.count(digests.len()).0;
        digests.iter().for_each(|digest| out.extend(digest));
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let times =
            Times { seconds: reader.f64("seconds")?, cpu_seconds: reader.f64("CPU seconds")? };
        let balance = u128::from_le_bytes(reader.array("balance")?);
        let n = reader.count(4 + 32, "number of public values")?;
        let public = (0..n)
            .map(|_| Ok((reader.u32("place")?, reader.scalar("public value")?)))
            .collect::<Result<_, DecodeError>>()?;
        let n = reader.count(32, "number of digests")?;
        let digests = (0..n).map(|_| reader.array("digest")).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(Self { summary: SliceSummary { balance, public, digests }, times })
    }
}

/// Decodes a flag: `true` if values come with the subcircuits that a rank returns.
pub(crate) fn flag(reader: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match reader.u32("whether with values")? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(reader.invalid("whether with values", 4, format_args!("{other}"))),
    }
}

/// A request to return jobs that are not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Revoke {
    /// The maximum number.
    pub(crate) most: usize,
    /// `true` if rank 0 needs their values and private inputs.
    pub(crate) with_values: bool,
}

impl Revoke {
    pub(crate) fn encode(self) -> Vec<u8> {
        Writer::default().count(self.most).u32(self.with_values.into()).0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let most = reader.u32("how many")? as usize;
        let with_values = flag(&mut reader)?;
        reader.finish()?;
        Ok(Self { most, with_values })
    }
}

/// An answer in transit, with its prover and the time it took, and with the look-ups of the subcircuit.
pub(crate) struct Answered<A> {
    pub(crate) answer: A,
    pub(crate) prover: u32,
    pub(crate) times: Times,
    pub(crate) look_ups: LookUps,
}

impl<A: Answer> Answered<A> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Times { seconds, cpu_seconds } = self.times;
        let mut out = Writer::default().u32(self.prover).f64(seconds).f64(cpu_seconds).0;
        out.extend(self.answer.to_bytes());
        if !self.look_ups.is_empty() {
            out.extend(self.look_ups.encode());
        }
        out
    }

    /// The instance that an encoded answer is for, before anything else in it is decoded.
    pub(crate) fn instance(bytes: &[u8]) -> Result<usize, DecodeError> {
        let mut reader = Reader::new(bytes);
        reader.take(4 + 8 + 8, "prover and times")?;
        // The answer begins with it, and is below 2^32 or does not decode.
        reader.length("index of the instance")
    }

    /// Decodes an answer and checks everything except that its points are in their subgroups, which
    /// [`find_outside`](crate::protocol::answer::find_outside) does for many at once.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let prover = reader.u32("prover")?;
        let times =
            Times { seconds: reader.f64("seconds")?, cpu_seconds: reader.f64("CPU seconds")? };
        let answer = A::on_curve(reader.take(A::LEN, "answer")?)?;
        let mut look_ups = LookUps::default();
        // Only answers of the commit round contain look-ups.
        if A::PHASE == Phase::Commit && reader.left() > 0 {
            let bytes = reader.take(reader.left(), "look-ups")?;
            look_ups = LookUps::decode(bytes)
                .map_err(|why| reader.invalid("look-ups", bytes.len(), why))?;
        }
        reader.finish()?;
        Ok(Self { answer, prover, times, look_ups })
    }
}

/// A worker's account of its work since the previous request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Account {
    pub(crate) subcircuits: u64,
    pub(crate) busy: f64,
    pub(crate) idle: f64,
    pub(crate) cpu: f64,
    pub(crate) peak_memory: u64,
    /// The names of its devices, and what they did.
    pub(crate) devices: Vec<(String, DeviceWork)>,
    /// Notices for the user.
    pub(crate) notices: Vec<String>,
}

impl Account {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let out = Writer::default()
            .u64(self.subcircuits)
            .f64(self.busy)
            .f64(self.idle)
            .f64(self.cpu)
            .u64(self.peak_memory)
            .count(self.devices.len());
        let out = self.devices.iter().fold(out, |out, (name, work)| {
            out.text(name)
                .u64(work.batches)
                .u64(work.subcircuits)
                .f64(work.key_seconds)
                .f64(work.copy_seconds)
                .f64(work.compute_seconds)
                .u64(work.copied_bytes)
        });
        let out = out.count(self.notices.len());
        self.notices.iter().fold(out, |out, notice| out.text(notice)).0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let subcircuits = reader.u64("subcircuits")?;
        let (busy, idle) = (reader.f64("busy")?, reader.f64("idle")?);
        let (cpu, peak_memory) = (reader.f64("CPU seconds")?, reader.u64("memory")?);
        let device = |reader: &mut Reader<'_>| {
            let name = reader.text("the name of a device")?;
            let work = DeviceWork {
                batches: reader.u64("batches")?,
                subcircuits: reader.u64("subcircuits of a device")?,
                key_seconds: reader.f64("seconds for keys")?,
                copy_seconds: reader.f64("seconds of copies")?,
                compute_seconds: reader.f64("seconds of a device")?,
                copied_bytes: reader.u64("copied bytes")?,
            };
            Ok((name, work))
        };
        let count = reader.u32("devices")?;
        let devices = (0..count).map(|_| device(&mut reader)).collect::<Result<_, _>>()?;
        let count = reader.u32("notices")?;
        let notices = (0..count).map(|_| reader.text("a notice")).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(Self { subcircuits, busy, idle, cpu, peak_memory, devices, notices })
    }
}

/// A phase of the aggregation that a rank is asked to do (spec: distributed#phases).
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BlockPhase {
    A { start: usize, end: usize, unit: usize, d: Vec<G1Point> },
    B { proofs: ProofVectors },
    C { r: Fr, memory: MemoryChallenges },
    D { s1: Fr, s2: Fr },
    E { s3: Fr, ledger: Fr, q: Vec<G2Point> },
    GipaRound { x: Option<(Fr, Fr)> },
    F { x: Option<(Fr, Fr)> },
    G(Openings),
}

impl BlockPhase {
    /// The number of the phase in messages.
    fn number(&self) -> u32 {
        match self {
            Self::A { .. } => 0,
            Self::B { .. } => 1,
            Self::C { .. } => 2,
            Self::D { .. } => 3,
            Self::E { .. } => 4,
            Self::GipaRound { .. } => 5,
            Self::F { .. } => 6,
            Self::G(_) => 7,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let out = Writer::default().u32(self.number());
        let challenges = |out: Writer, x: &Option<(Fr, Fr)>| match x {
            Some((x, inverse)) => out.u32(1).scalar(x).scalar(inverse),
            None => out.u32(0),
        };
        let out = match self {
            Self::A { start, end, unit, d } => {
                out.u64(*start as u64).u64(*end as u64).u64(*unit as u64).points(d)
            }
            Self::B { proofs } => out
                .count(proofs.len())
                .points(&proofs.a)
                .points(&proofs.b)
                .points(&proofs.c)
                .scalars(&proofs.e),
            Self::C { r, memory: MemoryChallenges { g, b, b_t, b_v } } => {
                out.scalars(&[*r, *g, *b, *b_t, *b_v])
            }
            Self::D { s1, s2 } => out.scalars(&[*s1, *s2]),
            Self::E { s3, ledger, q } => out.scalars(&[*s3, *ledger]).count(q.len()).points(q),
            Self::GipaRound { x } | Self::F { x } => challenges(out, x),
            Self::G(o) => out.count(o.x.len()).scalars(&o.x).scalars(&o.x_inverse).scalars(&[
                o.r_inverse,
                o.z,
                o.rho,
            ]),
        };
        out.0
    }

    /// Decodes a phase. `padded` is N, the bound of all blocks.
    pub(crate) fn decode(bytes: &[u8], padded: usize) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let challenges = |reader: &mut Reader<'_>| -> Result<Option<(Fr, Fr)>, DecodeError> {
            match reader.u32("whether there is a challenge")? {
                0 => Ok(None),
                _ => Ok(Some((reader.scalar("x")?, reader.scalar("x^-1")?))),
            }
        };
        let phase = match reader.u32("phase")? {
            0 => Self::decode_a(&mut reader, padded)?,
            1 => {
                let n = reader.count(96 + 192 + 96 + 32, "number of proofs")?;
                let (a, b) = (reader.checked_points(n, "A")?, reader.checked_points(n, "B")?);
                let (c, e) = (reader.checked_points(n, "C")?, reader.scalars(n, "e")?);
                Self::B { proofs: ProofVectors { a, b, c, e } }
            }
            2 => {
                let r = reader.scalar("r")?;
                let mut next = |what| reader.scalar(what);
                let (g, b) = (next("g")?, next("b")?);
                Self::C {
                    r,
                    memory: MemoryChallenges { g, b, b_t: next("b_T")?, b_v: next("b_V")? },
                }
            }
            3 => Self::D { s1: reader.scalar("s1")?, s2: reader.scalar("s2")? },
            4 => {
                let (s3, ledger) = (reader.scalar("s3")?, reader.scalar("ledger")?);
                let n = reader.count(192, "number of types")?;
                Self::E { s3, ledger, q: reader.checked_points(n, "Q")? }
            }
            5 => Self::GipaRound { x: challenges(&mut reader)? },
            6 => Self::F { x: challenges(&mut reader)? },
            7 => Self::decode_g(&mut reader, padded)?,
            other => {
                return Err(reader.invalid("phase", 4, format_args!("unknown phase {other}")));
            }
        };
        reader.finish()?;
        Ok(phase)
    }

    fn decode_a(reader: &mut Reader<'_>, padded: usize) -> Result<Self, DecodeError> {
        let mut size = |what| reader.length(what);
        let (start, end, unit) = (size("start")?, size("end")?, size("unit")?);
        // The range indexes the key's vectors and is cut into blocks of `unit`
        // (spec: distributed#blocks): anything else would panic later or break the order of GIPA
        // rounds.
        let fits = start < end && end <= padded && unit.is_power_of_two();
        if !fits || start % unit != 0 || end % unit != 0 {
            let why = format!("{start}..{end} is not a range of blocks of {unit} in 0..{padded}");
            return Err(reader.invalid("range", 24, why));
        }
        Ok(Self::A { start, end, unit, d: reader.checked_points(end - start, "D")? })
    }

    fn decode_g(reader: &mut Reader<'_>, padded: usize) -> Result<Self, DecodeError> {
        let n = reader.count(64, "number of rounds")?;
        // The folded keys have 2^n coefficients, so a larger n would also be a request for memory.
        if n != padded.ilog2() as usize {
            return Err(reader.invalid(
                "number of rounds",
                4,
                format_args!("{n} GIPA rounds for {padded} instances"),
            ));
        }
        let (x, x_inverse) = (reader.scalars(n, "x")?, reader.scalars(n, "x^-1")?);
        let (r_inverse, z, rho) =
            (reader.scalar("r^-1")?, reader.scalar("z")?, reader.scalar("rho")?);
        Ok(Self::G(Openings { x, x_inverse, r_inverse, z, rho }))
    }
}

/// The part of a phase that a rank returns.
pub(crate) trait Part: Sized {
    fn encode(&self) -> Vec<u8>;
    /// Decodes a part. `types` is k, the number of types.
    fn decode(reader: &mut Reader<'_>, types: usize) -> Result<Self, DecodeError>;
    /// The part of all blocks together, from parts in the order of the blocks. `None` if there are
    /// none, or they do not fit.
    fn join(parts: Vec<Self>) -> Option<Self>;
}

impl Part for MillerLoop {
    fn encode(&self) -> Vec<u8> {
        self.to_bytes()
    }

    fn decode(reader: &mut Reader<'_>, _: usize) -> Result<Self, DecodeError> {
        reader.miller("product")
    }

    fn join(parts: Vec<Self>) -> Option<Self> {
        // Products of Miller loops are multiplied before the one final exponentiation
        // (spec: distributed#miller-loops).
        (!parts.is_empty()).then(|| Self::product(parts))
    }
}

impl Part for ProofCommitments {
    fn encode(&self) -> Vec<u8> {
        Writer::default().miller(&self.a).miller(&self.b).miller(&self.c).points(&[self.v_e]).0
    }

    fn decode(reader: &mut Reader<'_>, _: usize) -> Result<Self, DecodeError> {
        let (a, b, c) = (reader.miller("cm_A")?, reader.miller("cm_B")?, reader.miller("cm_C")?);
        Ok(Self { a, b, c, v_e: reader.one_point("V_e")? })
    }

    fn join(parts: Vec<Self>) -> Option<Self> {
        parts.into_iter().reduce(|a, b| a.combine(&b))
    }
}

impl Part for BlockSums {
    fn encode(&self) -> Vec<u8> {
        // Everything is per type, so the length does not depend on n (spec: distributed#phase-c).
        let points =
            |out: Writer, sums: &Sums<G1Point>| out.points(&sums.by_type).points(&[sums.plain]);
        let out = [&self.a, &self.s, &self.c, &self.d].into_iter().fold(Writer::default(), points);
        out.scalars(&self.e.by_type).scalar(&self.e.plain).points(&[self.w_r]).0
    }

    fn decode(reader: &mut Reader<'_>, types: usize) -> Result<Self, DecodeError> {
        let mut points = |what| -> Result<Sums<G1Point>, DecodeError> {
            Ok(Sums { by_type: reader.points(types, what)?, plain: reader.one_point(what)? })
        };
        let (a, s, c, d) = (
            points("sums of A")?,
            points("sums of S")?,
            points("sums of C")?,
            points("sums of D")?,
        );
        let e = Sums {
            by_type: reader.scalars(types, "sums of e")?,
            plain: reader.scalar("sum of e")?,
        };
        Ok(Self { a, s, c, d, e, w_r: reader.one_point("W_r")? })
    }

    fn join(parts: Vec<Self>) -> Option<Self> {
        parts.into_iter().reduce(|a, b| a.add(&b))
    }
}

impl Part for [MillerLoop; 6] {
    fn encode(&self) -> Vec<u8> {
        self.iter().fold(Writer::default(), Writer::miller).0
    }

    fn decode(reader: &mut Reader<'_>, _: usize) -> Result<Self, DecodeError> {
        // In the order of the transcript: T_L, T_R, U_L, U_R, Z_L, Z_R
        // (spec: verifier#round-challenges).
        let mut out = [MillerLoop::one(); 6];
        for product in &mut out {
            *product = reader.miller("product of a round")?;
        }
        Ok(out)
    }

    fn join(parts: Vec<Self>) -> Option<Self> {
        let product = |i| MillerLoop::product(parts.iter().map(|part| part[i]));
        (!parts.is_empty()).then(|| std::array::from_fn(product))
    }
}

/// The answer to the start of phase E: the number of GIPA rounds that the rank does alone.
impl Part for u32 {
    fn encode(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }

    fn decode(reader: &mut Reader<'_>, _: usize) -> Result<Self, DecodeError> {
        reader.u32("number of rounds")
    }

    fn join(parts: Vec<Self>) -> Option<Self> {
        let first = parts.first().copied()?;
        parts.iter().all(|part| *part == first).then_some(first)
    }
}

impl Part for FoldingBlock {
    fn encode(&self) -> Vec<u8> {
        let out = Writer::default().count(self.len());
        out.points(&self.l).points(&self.r).points(&self.v).points(&self.w).0
    }

    fn decode(reader: &mut Reader<'_>, _: usize) -> Result<Self, DecodeError> {
        let n = reader.count(576, "number of elements")?;
        let (l, r) = (reader.points(n, "L")?, reader.points(n, "R")?);
        Ok(Self { l, r, v: reader.points(n, "v")?, w: reader.points(n, "w")? })
    }

    fn join(parts: Vec<Self>) -> Option<Self> {
        (!parts.is_empty()).then(|| Self::join(parts))
    }
}

impl Part for (G2Point, G1Point) {
    fn encode(&self) -> Vec<u8> {
        Writer::default().points(&[self.0]).points(&[self.1]).0
    }

    fn decode(reader: &mut Reader<'_>, _: usize) -> Result<Self, DecodeError> {
        Ok((reader.one_point("pi_v")?, reader.one_point("pi_w")?))
    }

    fn join(parts: Vec<Self>) -> Option<Self> {
        let (v, w): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        (!v.is_empty()).then(|| (G2Point::sum(&v), G1Point::sum(&w)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short_where_they_can_be() {
        for length in [0, 1, 254, 255, 256, 70_000] {
            let bytes = vec![7u8; length];
            let out = Writer::default().bytes(&bytes).0;
            assert_eq!(out.len(), length + if length < 255 { 1 } else { 5 });
            let mut reader = Reader::new(&out);
            assert_eq!(reader.bytes("bytes"), Ok(&bytes[..]));
            assert!(Reader::new(&out[..out.len() - 1]).bytes("bytes").is_err());
        }
    }
}
