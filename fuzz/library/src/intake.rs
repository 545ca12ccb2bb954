//! Messages that nodes and others send to the intake of witnesses.

use crate::file;
use hekaton_intake::canonical::{Options, admit};
use hekaton_intake::check::{check_block, check_witness};
use hekaton_intake::codec::json::Parameters;
use hekaton_intake::codec::{Answer, Status, apis773, apis793};
use hekaton_intake::stand_in::Block;
use hekaton_witness_format::trie::{Node, Position, Trie};
use hekaton_witness_format::{ExecutionWitness, Push};
use std::sync::OnceLock;

/// The body of a push, a witness, an answer in each codec, and the parameters in JSON.
fn good() -> &'static [Vec<u8>; 5] {
    static GOOD: OnceLock<[Vec<u8>; 5]> = OnceLock::new();
    GOOD.get_or_init(|| {
        let block = Block::new(1, 2, 2_000);
        let answer = Answer {
            status: Status::Valid,
            latest_valid_hash: Some([1; 32]),
            validation_error: None,
            witness: Some(block.witness()),
            public_keys: &block.public_keys,
        };
        let (in_773, in_793) = (apis773::encode(&answer), apis793::encode(&answer));
        [block.push(), block.witness.clone(), in_773, in_793, block.parameters.encode()]
    })
}

/// Checks everything that the intake is sent: what is accepted has one encoding, and nothing panics.
pub fn intake(data: &[u8]) {
    let Some((which, data)) = data.split_first() else { return };
    let bytes = file(data, &good()[usize::from(which % 5)], &[]);
    match which % 5 {
        0 => {
            let Ok(push) = Push::decode(&bytes) else { return };
            assert_eq!(push.encode(), bytes, "a push has one encoding");
            let _ = check_block(&push.envelope, None);
            let payload = &push.envelope.payload;
            let (parent, number) = (payload.parent_hash, payload.block_number);
            let Ok(admitted) = admit(&push.witness, parent, number, Options { lenient: true })
            else {
                return;
            };
            let canonical = admitted.changed.unwrap_or_else(|| push.witness.encode());
            let canonical = ExecutionWitness::decode(&canonical).ok();
            let checked = canonical.map(|witness| check_witness(&witness, parent, number));
            assert_eq!(checked, Some(Ok(admitted.summary)), "the canonical form is accepted");
        }
        1 => {
            let Ok(witness) = ExecutionWitness::decode(&bytes) else { return };
            assert_eq!(witness.encode(), bytes, "a witness has one encoding");
            for node in witness.state.iter() {
                for trie in [Trie::Accounts, Trie::Storage] {
                    let _ = Node::read(node, Position::root(trie));
                }
            }
        }
        2 => {
            let Ok(answer) = apis773::decode(&bytes) else { return };
            assert_eq!(apis773::encode(&answer), bytes, "an answer has one encoding");
        }
        3 => {
            let Ok(answer) = apis793::decode(&bytes) else { return };
            assert_eq!(apis793::encode(&answer), bytes, "an answer has one encoding");
        }
        _ => {
            let Ok(parameters) = Parameters::decode(&bytes) else { return };
            let again = Parameters::decode(&parameters.encode());
            assert_eq!(again.ok(), Some(parameters), "what is written is read");
        }
    }
}
