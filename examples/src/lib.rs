//! Worked examples: partitioned circuits of your own. Each is a module with a circuit and its tests,
//! and a program in `src/bin/`.
//!
//! | module | what it shows |
//! |---|---|
//! | [`account`] | private inputs, and a program with a run directory and Ctrl-C around it |
//! | [`hash_chain`] | the smallest circuit with an arkworks gadget, and its program in three lines |
//! | [`matrix`] | slots as structs and vectors, wires that many parts read, padding by constants |
//! | [`auction`] | a tree of parts over any number of bids, with an input file and range look-ups |
//! | [`histogram`] | a memory that all parts read and write |
//! | [`monolith`] | an arkworks circuit in one piece, written as files for `hekaton import` |

pub mod account;
pub mod auction;
#[cfg(doctest)]
pub mod guides;
pub mod hash_chain;
pub mod histogram;
pub mod matrix;
pub mod monolith;
