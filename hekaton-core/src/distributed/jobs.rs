//! Jobs in messages (docs/formats.md, "Messages between ranks"): with everything that belongs to them,
//! or, for a rank that executed them itself, only with what rank 0 alone knows.

use super::encoding::Writer;
use super::message::flag;
use crate::encoding::{DecodeError, Reader};
use crate::protocol::executed::{InstanceDigest, digest_with, instance_id as id};
use crate::protocol::messages::{Job, OwnJob};
use crate::randomness::InstanceRandomness;
use hekaton_arith::Fr;
use hekaton_circuit::{Execution, Masking, PreparedCircuit, PrivateInput};
use std::ops::Range;

/// The values of one instance's slots, masks excluded, and its private input.
pub(crate) struct Taken {
    pub(crate) values: Vec<Fr>,
    pub(crate) private: PrivateInput,
}

/// The part of an execution that a rank keeps.
pub(crate) struct Slice<'c> {
    pub(crate) range: Range<usize>,
    pub(crate) execution: Execution<'c>,
    /// The digest of each instance that was reported to rank 0.
    pub(crate) digests: Vec<InstanceDigest>,
}

impl Slice<'_> {
    /// Returns the values and the private input that a job of the slice needs.
    pub(crate) fn take(
        &self,
        circuit: &PreparedCircuit<'_>,
        instance: usize,
    ) -> Result<Taken, String> {
        let layout = circuit.layout();
        let digest = (instance.checked_sub(self.range.start))
            .and_then(|at| self.digests.get(at))
            .ok_or_else(|| outside(instance))?;
        let values = self.execution.values.slots(layout, id(instance));
        // Masks, and the keys of answers in the log, depend on the digests that were reported to rank 0. A fault
        // of this machine's memory would otherwise make every attempt fail.
        let private =
            self.execution.private_input(layout, id(instance)).map_err(|e| e.to_string())?;
        let found = digest_with(circuit, id(instance), &values, &private);
        if found.map_err(|e| e.to_string())? != *digest {
            return Err(format!(
                "the values of instance {instance} differ from those that this rank reported after the \
                 execution: its memory is faulty"
            ));
        }
        Ok(Taken { values, private })
    }
}

/// Subcircuits that a rank returns.
pub(crate) struct Returned {
    pub(crate) with_values: bool,
    pub(crate) list: Vec<(usize, Option<Taken>)>,
}

/// A job on a rank.
pub(crate) enum Task {
    /// With everything.
    Whole(Job),
    /// Its values and its private input are in the rank's own slice.
    Own(OwnJob),
}

impl Task {
    pub(crate) fn instance(&self) -> usize {
        match self {
            Self::Whole(job) => job.instance,
            Self::Own(job) => job.instance,
        }
    }

    /// The job with everything.
    pub(crate) fn into_job(
        self,
        slice: Option<&Slice<'_>>,
        circuit: &PreparedCircuit<'_>,
        masking: Masking,
    ) -> Result<Job, String> {
        let OwnJob { instance, randomness, masks } = match self {
            Self::Whole(job) => return Ok(job),
            Self::Own(job) => job,
        };
        let Taken { mut values, private } =
            slice.ok_or_else(|| outside(instance))?.take(circuit, instance)?;
        values.extend(masks);
        let layout = circuit.layout();
        let (kind, slots) =
            (layout.type_index(id(instance)), layout.accesses(id(instance), masking));
        Ok(Job { instance, kind, values, slots, private: Some(private), randomness })
    }

    /// Returns what another rank needs to do the job, without the secrets, which rank 0 knows.
    pub(crate) fn into_taken(
        self,
        slice: Option<&Slice<'_>>,
        circuit: &PreparedCircuit<'_>,
        masking: Masking,
    ) -> Result<Taken, String> {
        match self {
            Self::Whole(Job { instance, mut values, private, .. }) => {
                values.truncate(values.len() - masking.slots());
                let missing = || format!("instance {instance}: no input");
                Ok(Taken { values, private: private.ok_or_else(missing)? })
            }
            Self::Own(OwnJob { instance, .. }) => {
                slice.ok_or_else(|| outside(instance))?.take(circuit, instance)
            }
        }
    }
}

fn outside(instance: usize) -> String {
    format!("instance {instance} is not in the slice that this rank executed")
}

/// Encodes a private input with its length.
fn put_private(
    out: Writer,
    private: Option<&PrivateInput>,
    circuit: &PreparedCircuit<'_>,
) -> Result<Writer, String> {
    // A job of the commit round has no private input in circuits without buses, and an empty text there.
    let encoded = match private {
        Some(private) => circuit.encode_private(private)?,
        None => Vec::new(),
    };
    if u32::try_from(encoded.len()).is_err() {
        return Err(format!("it has {} bytes, the maximum is 4 GiB", encoded.len()));
    }
    Ok(out.bytes(&encoded))
}

/// Encodes a job: the instance, its secrets, the values of its slots, and its private input. The
/// rest follows from the layout.
pub(crate) fn encode_job(
    out: Writer,
    job: &Job,
    circuit: &PreparedCircuit<'_>,
) -> Result<Writer, String> {
    let mut head = out.count(job.instance);
    head.0.extend_from_slice(job.randomness.secret_bytes());
    put_private(head.scalars(&job.values), job.private.as_ref(), circuit)
}

/// Encodes a job for a rank that has its values.
pub(crate) fn encode_own(out: Writer, job: &OwnJob) -> Writer {
    let mut head = out.count(job.instance);
    head.0.extend_from_slice(job.randomness.secret_bytes());
    head.scalars(&job.masks)
}

/// Encodes what another rank needs to do a job.
pub(crate) fn encode_taken(
    out: Writer,
    taken: &Taken,
    circuit: &PreparedCircuit<'_>,
) -> Result<Writer, String> {
    put_private(out.scalars(&taken.values), Some(&taken.private), circuit)
}

/// Decodes jobs. Types, addresses and multiplicities come from this rank's own layout, never from
/// the message.
pub(crate) struct Decoder<'a> {
    pub(crate) circuit: &'a PreparedCircuit<'a>,
    pub(crate) masking: Masking,
}

impl Decoder<'_> {
    /// The index of an instance of the layout.
    pub(crate) fn instance(&self, reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
        let instance = reader.u32("index of the instance")? as usize;
        if instance >= self.circuit.layout().instances() {
            let why = format_args!("the layout has no instance {instance}");
            return Err(reader.invalid("index of the instance", 4, why));
        }
        Ok(instance)
    }

    fn head(&self, reader: &mut Reader<'_>) -> Result<(usize, InstanceRandomness), DecodeError> {
        let instance = self.instance(reader)?;
        let secret = reader.array::<{ InstanceRandomness::BYTES }>("randomness")?;
        Ok((instance, InstanceRandomness::from_secret_bytes(&secret)))
    }

    fn private(
        &self,
        reader: &mut Reader<'_>,
        instance: usize,
    ) -> Result<PrivateInput, DecodeError> {
        let bytes = reader.bytes("private input")?;
        let length = bytes.len();
        let private = self.circuit.decode_private_of(id(instance), bytes);
        private.map_err(|why| reader.invalid("private input", length, why))
    }

    /// [`encode_job`]
    pub(crate) fn job(&self, reader: &mut Reader<'_>) -> Result<Task, DecodeError> {
        let (instance, randomness) = self.head(reader)?;
        let layout = self.circuit.layout();
        let (kind, slots) =
            (layout.type_index(id(instance)), layout.accesses(id(instance), self.masking));
        let values = reader.scalars(slots.len(), "value of a shared wire")?;
        let private = Some(self.private(reader, instance)?);
        Ok(Task::Whole(Job { instance, kind, values, slots, private, randomness }))
    }

    /// [`encode_own`]
    pub(crate) fn own(&self, reader: &mut Reader<'_>) -> Result<Task, DecodeError> {
        let (instance, randomness) = self.head(reader)?;
        let masks = reader.scalars(self.masking.slots(), "mask")?;
        Ok(Task::Own(OwnJob { instance, randomness, masks }))
    }

    /// The subcircuits that a rank returns, with their values if it was asked for them.
    pub(crate) fn revoked(&self, content: &[u8]) -> Result<Returned, DecodeError> {
        let mut reader = Reader::new(content);
        let n = reader.count(4, "how many")?;
        let with_values = flag(&mut reader)?;
        let mut list = Vec::with_capacity(n);
        for _ in 0..n {
            let instance = self.instance(&mut reader)?;
            let taken = with_values.then(|| self.taken(&mut reader, instance)).transpose()?;
            list.push((instance, taken));
        }
        reader.finish()?;
        Ok(Returned { with_values, list })
    }

    /// [`encode_taken`] of this instance
    pub(crate) fn taken(
        &self,
        reader: &mut Reader<'_>,
        instance: usize,
    ) -> Result<Taken, DecodeError> {
        let layout = self.circuit.layout();
        let slots = layout.slots(layout.type_of(id(instance)));
        let values = reader.scalars(slots, "value of a shared wire")?;
        Ok(Taken { values, private: self.private(reader, instance)? })
    }
}
