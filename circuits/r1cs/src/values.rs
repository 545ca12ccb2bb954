//! Values of wires on their way to a prover.

use hekaton_circuit::Fr;
use serde::{Deserialize, Serialize};
use std::fmt;

use crate::container::{FIELD, decode};
use crate::system::bytes_of;

/// Values of wires: of each, the length in bytes without leading zeros, and these bytes, little-endian.
/// Zero takes one byte, one takes two.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Values(Vec<u8>);

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values are secret.
        f.debug_struct("Values").finish_non_exhaustive()
    }
}

impl Values {
    /// Encodes values.
    pub fn encode(values: impl IntoIterator<Item = Fr>) -> Self {
        let all = values.into_iter();
        let mut out = Vec::with_capacity(2 * all.size_hint().0);
        for value in all {
            let bytes = bytes_of(&value);
            let length = FIELD - bytes.iter().rev().take_while(|byte| **byte == 0).count();
            #[allow(clippy::cast_possible_truncation, reason = "at most 32")]
            out.push(length as u8);
            out.extend_from_slice(&bytes[..length]);
        }
        Self(out)
    }

    /// Appends the values to a list; `None` if they are not `count` canonical values.
    #[must_use]
    pub fn decode_into(&self, count: usize, out: &mut Vec<Fr>) -> Option<()> {
        let mut rest = self.0.as_slice();
        for _ in 0..count {
            let (length, tail) = rest.split_first()?;
            let (bytes, tail) = tail.split_at_checked((*length).into())?;
            let mut all = [0; FIELD];
            all.get_mut(..bytes.len())?.copy_from_slice(bytes);
            // One encoding per value.
            if bytes.last() == Some(&0) {
                return None;
            }
            out.push(decode(&all)?);
            rest = tail;
        }
        rest.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{One, Zero};

    fn decoded(bytes: &[u8], count: usize) -> Option<Vec<Fr>> {
        let mut out = Vec::new();
        Values(bytes.to_vec()).decode_into(count, &mut out).map(|()| out)
    }

    #[test]
    fn values_have_one_encoding() {
        let all = [Fr::zero(), Fr::one(), Fr::from(256u64), -Fr::one()];
        let values = Values::encode(all);
        assert_eq!(values.0[..6], [0, 1, 1, 2, 0, 1]);
        assert_eq!(values.0.len(), 1 + 2 + 3 + 33);
        assert_eq!(decoded(&values.0, 4), Some(all.to_vec()));
        assert_eq!(decoded(&values.0, 3), None, "bytes left over");
        assert_eq!(decoded(&values.0, 5), None, "one too few");
        assert_eq!(decoded(&values.0[..38], 4), None, "truncated");
        assert_eq!(decoded(&[2, 1, 0], 1), None, "a leading zero");
        assert_eq!(decoded(&[33; 40], 1), None, "too long");
        let mut large = vec![32];
        large.extend([255; 32]);
        assert_eq!(decoded(&large, 1), None, "not below the modulus");
    }
}
