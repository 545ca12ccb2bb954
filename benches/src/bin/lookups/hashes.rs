//! Digests of messages that fill one block.

use super::parts;
use hekaton_circuit::ark::relations::gr1cs::SynthesisError;
use hekaton_circuit::{Closures, LayoutBuilder, Subcircuit};
use hekaton_standard::{Message, keccak, sha256};
use std::sync::{Arc, OnceLock};

#[derive(Clone, Copy)]
pub(crate) enum Hash {
    Keccak,
    Sha256,
}

type Bytes = Vec<Vec<u8>>;

impl Hash {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keccak => "Keccak-f",
            Self::Sha256 => "SHA-256 blocks",
        }
    }

    /// Returns the name that gnark's program has for it.
    pub(crate) fn workload(self) -> &'static str {
        match self {
            Self::Keccak => "keccak",
            Self::Sha256 => "sha256",
        }
    }

    /// The number of bytes that fill a block with their padding.
    fn bytes(self) -> usize {
        match self {
            Self::Keccak => 135,
            Self::Sha256 => 55,
        }
    }

    pub(crate) fn by_look_ups(self, items: usize) -> Closures<Bytes> {
        match self {
            Self::Keccak => {
                let tables = Arc::new(OnceLock::<keccak::Tables>::new());
                let of_layout = Arc::clone(&tables);
                let tables_of = move |layout: &mut LayoutBuilder| {
                    let pieces = keccak::Pieces::LARGE;
                    let tables =
                        keccak::Tables::new(pieces, |name, table| layout.table(name, table));
                    let _ = of_layout.set(tables);
                };
                self.messages(items, 10, tables_of, move |subcircuit, message| {
                    let known = tables.get().ok_or(SynthesisError::AssignmentMissing)?;
                    let message = Message::new().committed(subcircuit, self.bytes(), message)?;
                    let gadget = keccak::LookUps::new(subcircuit, known)?;
                    gadget.hash(message, keccak::Padding::Keccak).map(drop)
                })
            }
            Self::Sha256 => {
                let tables = Arc::new(OnceLock::<sha256::Tables>::new());
                let of_layout = Arc::clone(&tables);
                let tables_of = move |layout: &mut LayoutBuilder| {
                    let largest = sha256::Tables::LARGE;
                    let tables =
                        sha256::Tables::new(largest, |name, table| layout.table(name, table));
                    let _ = of_layout.set(tables);
                };
                self.messages(items, 25, tables_of, move |subcircuit, message| {
                    let known = tables.get().ok_or(SynthesisError::AssignmentMissing)?;
                    let message = Message::new().committed(subcircuit, self.bytes(), message)?;
                    sha256::LookUps::new(subcircuit, known)?.hash(message).map(drop)
                })
            }
        }
    }

    pub(crate) fn by_bits(self, items: usize) -> Closures<Bytes> {
        let most = match self {
            Self::Keccak => 1,
            Self::Sha256 => 5,
        };
        self.messages(
            items,
            most,
            |_| (),
            move |subcircuit, message| {
                let cs = subcircuit.cs();
                let message = Message::new().witness(&cs, self.bytes(), message)?;
                match self {
                    Self::Keccak => {
                        keccak::Bits::new(cs).hash(message, keccak::Padding::Keccak).map(drop)
                    }
                    Self::Sha256 => message.sha256(&cs).map(drop),
                }
            },
        )
    }

    /// Subcircuits that share nothing, with a message for each item.
    fn messages(
        self,
        items: usize,
        most: usize,
        tables: impl Fn(&mut LayoutBuilder) + Send + Sync + 'static,
        synthesize: impl Fn(&Subcircuit, Option<&[u8]>) -> Result<(), SynthesisError>
        + Send
        + Sync
        + 'static,
    ) -> Closures<Bytes> {
        let (parts, each) = parts(items, most);
        Closures::new(
            move |layout| {
                tables(layout);
                let kind = layout.subcircuit_type("messages", 0);
                (0..parts).for_each(|_| {
                    layout.instance(kind);
                });
                Ok(Vec::new())
            },
            |_, _| Ok(()),
            move |instance| {
                let message = |i: usize| {
                    (0..self.bytes()).map(|j| (i * i + 3 * j) as u8).collect::<Vec<u8>>()
                };
                Ok((0..each).map(|i| message(instance.index() * each + i)).collect())
            },
            move |subcircuit, messages| {
                (0..each).try_for_each(|i| {
                    let message = messages.and_then(|list: &Bytes| list.get(i));
                    synthesize(subcircuit, message.map(Vec::as_slice))
                })
            },
        )
    }
}
