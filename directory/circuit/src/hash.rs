//! The hash function of a step, and what its message is read as.

use crate::form::{Form, Rows};
use ark_ff::PrimeField;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{Fr, Subcircuit};
use hekaton_directory::Profile;
use hekaton_standard::sha256::{self, Message};

/// A message of two digests: the halves of the left one, then those of the right one, each big-endian.
pub(crate) type Block = [u128; 4];

/// The sizes of the parts of a message, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Half a digest; an index is as long.
    pub(crate) half: usize,
    /// A version.
    pub(crate) version: usize,
    /// The number of an epoch.
    pub(crate) epoch: usize,
}

/// Half a digest is below 2^128 with these.
pub(crate) const SIZES: Sizes = Sizes { half: 128, version: 32, epoch: 32 };

/// A message and its digest, as forms.
#[derive(Clone, Debug)]
pub(crate) struct Hashed<F: PrimeField> {
    /// The halves of the message.
    pub(crate) halves: [Form<F>; 4],
    /// The last bits of left and right: whether each is the digest of a leaf.
    pub(crate) is_leaf: [Form<F>; 2],
    /// The second half of a leaf's left part: its version.
    pub(crate) version: Form<F>,
    /// Its epoch.
    pub(crate) epoch: Form<F>,
    /// The bits after them.
    pub(crate) rest: Form<F>,
    /// The halves of the digest, of all bits.
    pub(crate) digest: [Form<F>; 2],
    /// The last bit of the digest.
    pub(crate) last: Form<F>,
}

/// A hash function of two digests.
pub(crate) trait Hash<F: PrimeField> {
    fn sizes(&self) -> Sizes;

    /// Allocates the bits of a message, and hashes it.
    fn hash(&self, rows: &Rows<F>, block: Option<&Block>) -> Result<Hashed<F>, SynthesisError>;
}

impl Hash<Fr> for Profile {
    fn sizes(&self) -> Sizes {
        SIZES
    }

    fn hash(&self, rows: &Rows<Fr>, block: Option<&Block>) -> Result<Hashed<Fr>, SynthesisError> {
        let bytes = block.map(|block| block.map(u128::to_be_bytes).concat());
        // Bits of the prover's choice; rules tie them to the stack, the leaf and the chain.
        let message =
            Subcircuit::given(&rows.cs, || Message::new().witness(&rows.cs, 64, bytes.as_deref()))?;
        // The bits from one place on, as a number.
        let bits = |from: usize, count: usize| {
            let value = block.map(|block| {
                let half = block[from / 128] << (from % 128);
                if count == 0 { 0 } else { half >> (128 - count) }
            });
            Ok(Form::new(message.number(from..from + count)?, value.map(Fr::from)))
        };
        let Sizes { half, version, epoch } = SIZES;
        let digest = match self {
            Self::Compress => message.compress(&rows.cs)?,
            // `check` refuses the profile full for this circuit; its hash is that of sha256.
            Self::Sha256 | Self::Full => message.clone().sha256(&rows.cs)?,
        };
        let of_half = |words: &[sha256::Word]| {
            let value = words
                .iter()
                .try_fold(0u128, |half, word| Some(half << 32 | u128::from(word.value()?)));
            Form::new(sha256::half(words), value.map(Fr::from))
        };
        let last = digest[7].value().map(|word| Fr::from(word & 1));
        Ok(Hashed {
            // Each is in several rows.
            halves: [
                rows.named(&bits(0, half)?)?,
                rows.named(&bits(half, half)?)?,
                rows.named(&bits(2 * half, half)?)?,
                rows.named(&bits(3 * half, half)?)?,
            ],
            is_leaf: [bits(2 * half - 1, 1)?, bits(4 * half - 1, 1)?],
            version: bits(half, version)?,
            epoch: bits(half + version, epoch)?,
            rest: bits(half + version + epoch, half - version - epoch)?,
            digest: [of_half(&digest[..4]), of_half(&digest[4..])],
            last: Form::new(digest[7].last_bit(), last),
        })
    }
}
