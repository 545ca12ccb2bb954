//! The public values of a proof.

use crate::state::{digest, number};
use hekaton_circuit::{CircuitError, Fr};
use hekaton_directory::Digest;
use hekaton_standard::sha256::digest_halves;

/// The public values of an epoch: a proof has those of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// The number of the epoch.
    pub epoch: u32,
    /// The root of its tree.
    pub root: Digest,
    /// The chain up to it.
    pub chain: Digest,
}

impl Tip {
    /// The public values of a proof from one epoch to another.
    pub fn public_values(from: &Self, to: &Self) -> Vec<Fr> {
        [from, to].into_iter().flat_map(Self::fields).collect()
    }

    pub(crate) fn fields(&self) -> [Fr; 5] {
        let ([a, b], [c, d]) = (digest_halves(&self.root), digest_halves(&self.chain));
        [a, b, c, d, self.epoch.into()]
    }

    /// The epochs of a proof's public values.
    pub fn of_public_values(values: &[Fr]) -> Option<[Self; 2]> {
        let tip = |values: &[Fr]| {
            let [a, b, c, d, epoch] = values else { return None };
            // Public values come with a proof: what is not a half of a digest or a number of an epoch has
            // no text.
            let epoch = number(epoch)?.try_into().ok()?;
            let root = digest([number(a)?, number(b)?]);
            Some(Self { epoch, root, chain: digest([number(c)?, number(d)?]) })
        };
        let (from, to) = values.split_at_checked(5)?;
        Some([tip(from)?, tip(to)?])
    }

    /// The text of public values: `ROOT:CHAIN:EPOCH` of both epochs.
    pub fn show(values: &[Fr]) -> Option<String> {
        let text = |tip: Self| {
            let Self { epoch, root, chain } = tip;
            format!("{}:{}:{epoch}", hex::encode(root), hex::encode(chain))
        };
        Some(Self::of_public_values(values)?.map(text).join(","))
    }

    /// Public values from their text.
    ///
    /// # Errors
    /// If the text is not that of two epochs.
    pub fn read(text: &str) -> Result<Vec<Fr>, CircuitError> {
        let digest = |text: &str| hex::decode(text).ok()?.try_into().ok();
        let tip = |text: &str| {
            let mut fields = text.trim().split(':');
            let (root, chain) = (digest(fields.next()?)?, digest(fields.next()?)?);
            let epoch = fields.next()?.parse().ok()?;
            fields.next().is_none().then_some(Self { epoch, root, chain })
        };
        let tips = text.split_once(',').and_then(|(from, to)| Some((tip(from)?, tip(to)?)));
        let expected =
            "expected ROOT:CHAIN:EPOCH,ROOT:CHAIN:EPOCH, with digests as 64 hexadecimal digits";
        tips.map(|(from, to)| Self::public_values(&from, &to)).ok_or_else(|| expected.into())
    }
}
