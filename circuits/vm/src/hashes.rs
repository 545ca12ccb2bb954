//! The rows of precompiles: those of the call, and what the function makes of its words (spec:
//! machine#precompiles).

use crate::op::{Access, Op};
use crate::precompile::Precompile;
use crate::rows::{Buses, Placed};
use crate::sizes::template_of;
use crate::tables::PrecompileTables;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::Subcircuit;
use hekaton_standard::{keccak, sha256};

impl Precompile {
    /// Adds the rows of an operation; at setup there is no operation.
    pub(crate) fn synthesize(
        self,
        subcircuit: &Subcircuit,
        buses: &Buses,
        op: Option<(&Op, &[Access])>,
    ) -> Result<(), SynthesisError> {
        let Placed { enable, given, made } =
            template_of(self.chip()).synthesize(subcircuit, buses, op)?;
        let wrong = SynthesisError::Unsatisfiable;
        // TinyRAM's layouts have none.
        let PrecompileTables { sha256, keccak } = buses.precompiles.as_ref().ok_or(wrong)?;
        let other = |_| SynthesisError::Unsatisfiable;
        match self {
            Self::Sha256 => {
                // The order of `Call`: words that change come first.
                let (state, block) = given.split_at(8);
                let [before, after] = [state, &made].map(|words| words.try_into().map_err(other));
                sha256::LookUps::new(subcircuit, sha256)?.enabled_by(&enable).compress_words(
                    before?,
                    block.try_into().map_err(other)?,
                    after?,
                )
            }
            Self::Keccak => {
                let [given, made] =
                    [&given[..], &made].map(|words| words.try_into().map_err(other));
                let gadget = keccak::LookUps::new(subcircuit, keccak)?.enabled_by(&enable);
                gadget.permute_words(given?, made?)
            }
            Self::MulMod256 | Self::MulMod384 => Ok(()),
        }
    }
}
