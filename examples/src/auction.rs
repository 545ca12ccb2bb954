//! A sealed-bid auction: *among these secret bids, the highest is this one, at this price.* The bids
//! stay secret; the position and the price of the winner are public. Of equal bids, the first wins.

use ark_ff::PrimeField;
use hekaton_circuit::named::{InputFile, NamedCircuit, Parameter};
use hekaton_circuit::prelude::*;
use serde::{Deserialize, Serialize};

/// Bids are below 2^BITS.
const BITS: u32 = 32;
/// The bits of a limb. Prices are checked in limbs, each by a look-up in a table of 256 rows. With limbs
/// of 16 bits there would be half as many look-ups, and 65,536 rows.
const LIMB: u32 = 8;

/// An auction with `bids` bids, of which one subcircuit reads `batch`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Auction {
    /// The number of bids.
    pub bids: usize,
    /// The number of bids per subcircuit.
    pub batch: usize,
}

/// A bid: its position among all bids, and its price.
#[derive(Clone, Debug, Slots)]
struct Bid<W> {
    position: W,
    price: W,
}

/// Constrains a price to BITS bits, by one look-up for each limb instead of one constraint for each bit.
fn check_price(subcircuit: &Subcircuit, price: &Var) -> Synthesized {
    subcircuit.range_check_limbs(LIMB, BITS / LIMB, price)
}

/// The better of two bids; the left one if they are equal. Prices must be below 2^BITS.
fn better(
    subcircuit: &Subcircuit,
    left: &Bid<Var>,
    right: &Bid<Var>,
) -> Result<Bid<Var>, SynthesisError> {
    let right_wins = Boolean::new_witness(subcircuit.cs(), || {
        Ok(right.price.value()?.into_bigint() > left.price.value()?.into_bigint())
    })?;
    // One of right - left - 1 and left - right is not negative, and the bit selects it.
    let forward = &right.price - &left.price - Fr::from(1u64);
    let backward = &left.price - &right.price;
    let distance = Var::conditionally_select(&right_wins, &forward, &backward)?;
    check_price(subcircuit, &subcircuit.mark(&distance)?)?;
    let select = |right: &Var, left: &Var| Var::conditionally_select(&right_wins, right, left);
    Ok(Bid {
        position: select(&right.position, &left.position)?,
        price: select(&right.price, &left.price)?,
    })
}

fn enforce_equal(a: &Bid<Var>, b: &Bid<Var>) -> Synthesized {
    a.position.enforce_equal(&b.position)?;
    a.price.enforce_equal(&b.price)
}

/// The best bid of a batch of secret bids, with positions from the first one on.
#[derive(Clone, Debug, PartialEq)]
struct Batch {
    size: usize,
}

impl Part for Batch {
    const NAME: &'static str = "batch";
    /// The position of the first bid of the batch.
    type Reads<W: Leaf> = W;
    type Writes<W: Leaf> = Bid<W>;
    type Private = Vec<u32>;

    fn run(&self, first: &Fr, prices: &Vec<u32>) -> Result<Bid<Fr>, CircuitError> {
        // Of equal bids, the first wins: `max_by_key` would return the last, so the order is reversed.
        let bids = prices.iter().copied().enumerate().rev();
        let (position, highest) = bids.max_by_key(|(_, price)| *price).ok_or("a batch is empty")?;
        Ok(Bid { position: *first + Fr::from(position as u64), price: Fr::from(highest) })
    }

    fn synthesize(
        &self,
        cs: Cs,
        first: &Var,
        best: &Bid<Var>,
        prices: Option<&Vec<u32>>,
    ) -> Synthesized {
        let subcircuit = Subcircuit::of(&cs)?;
        let mut found: Option<Bid<Var>> = None;
        for i in 0..self.size {
            let price = subcircuit.commit(|| {
                let price = prices.and_then(|prices| prices.get(i));
                price.map(|price| Fr::from(*price)).ok_or(SynthesisError::AssignmentMissing)
            })?;
            check_price(&subcircuit, &price)?;
            let bid = Bid { position: first + Fr::from(i as u64), price };
            found = Some(match found {
                None => bid,
                Some(best) => better(&subcircuit, &best, &bid)?,
            });
        }
        enforce_equal(&found.ok_or(SynthesisError::Unsatisfiable)?, best)
    }
}

/// The better of two bids.
#[derive(Clone, Debug, PartialEq)]
struct Merge;

impl Part for Merge {
    const NAME: &'static str = "merge";
    type Reads<W: Leaf> = [Bid<W>; 2];
    type Writes<W: Leaf> = Bid<W>;
    type Private = ();

    fn run(&self, [left, right]: &[Bid<Fr>; 2], (): &()) -> Result<Bid<Fr>, CircuitError> {
        Ok(if right.price > left.price { right.clone() } else { left.clone() })
    }

    fn synthesize(
        &self,
        cs: Cs,
        [left, right]: &[Bid<Var>; 2],
        best: &Bid<Var>,
        _: Option<&()>,
    ) -> Synthesized {
        enforce_equal(&better(&Subcircuit::of(&cs)?, left, right)?, best)
    }
}

impl WiredCircuit for Auction {
    type Input = [u32];

    fn wire(&self, c: &mut Wires<[u32]>) -> Result<(), LayoutError> {
        let Self { bids, batch } = *self;
        if bids == 0 || batch == 0 {
            return Err("an auction needs at least one bid, and batches of at least one".into());
        }
        c.range(LIMB);
        let mut level = Vec::new();
        for first in (0..bids).step_by(batch) {
            let position = c.constant(first as u64);
            // The last batch is completed by bids of 0, which never win against a real one.
            level.push(c.add_with(&Batch { size: batch }, position, move |all: &[u32]| {
                let mut prices = all[first..bids.min(first + batch)].to_vec();
                prices.resize(batch, 0);
                Ok(prices)
            }));
        }
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| match pair {
                    [left, right] => c.add(&Merge, [left.clone(), right.clone()]),
                    rest => rest[0].clone(),
                })
                .collect();
        }
        c.output("winner", level[0].position);
        c.output("price", level[0].price);
        Ok(())
    }
}

impl NamedCircuit for Auction {
    const NAME: &'static str = "auction";
    const ABOUT: &'static str = "the highest of many secret bids";
    const INPUT: &'static str = "the bids as whole numbers below 2^32, separated by white space";
    const PUBLIC: &'static str = "the position of the winner, from 0, and the price";
    type Parameters = Self;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "bids",
            help: "number of bids; counted in the file, if there is one",
            default: None,
        },
        Parameter { name: "batch", help: "bids per subcircuit", default: Some("100") },
    ];
    type Opened = Vec<u32>;

    fn with(parameters: Self) -> Result<Self, CircuitError> {
        Ok(parameters)
    }

    fn fit(
        parameters: &mut hekaton_circuit::named::ParameterMap,
        input: &InputFile,
    ) -> Result<(), CircuitError> {
        let bids = input.read_text()?.split_whitespace().count();
        parameters.entry("bids".to_owned()).or_insert_with(|| bids.into());
        Ok(())
    }

    fn open(&self, input: &InputFile) -> Result<Vec<u32>, CircuitError> {
        let text = input.read_text()?;
        let bid = |word: &str| word.parse().map_err(|e| format!("bid '{word}': {e}").into());
        let bids = text.split_whitespace().map(bid).collect::<Result<Vec<u32>, CircuitError>>()?;
        match bids.len() == self.bids {
            true => Ok(bids),
            false => {
                Err(format!("{} bids, but the circuit is for {}", bids.len(), self.bids).into())
            }
        }
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes("12345 ".repeat(self.bids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::check;

    #[test]
    fn the_first_of_the_highest_bids_wins() {
        for (bids, winner) in [
            (vec![5u32], 0usize),
            (vec![0, 0, 0], 0),
            (vec![3, 9, 9, 1, 9], 1),
            (vec![1, 2, 3, 4, 5, 6, u32::MAX], 6),
            (vec![u32::MAX, 0, u32::MAX], 0),
        ] {
            let circuit = Auction { bids: bids.len(), batch: 2 };
            let report = check(&circuit, &bids[..], |_, _| {}).unwrap();
            assert_eq!(report.violations, []);
            let expected = [Fr::from(winner as u64), Fr::from(bids[winner])];
            assert_eq!(report.public_values, expected, "{bids:?}");
        }
    }

    #[test]
    fn an_input_is_read_and_counted() {
        let input = InputFile::from_bytes(*b"3 1\n4 1 5\n");
        let none = serde_json::Map::new();
        let (circuit, all) =
            hekaton_circuit::named::create::<Auction>(&none, Some(&input)).unwrap();
        assert_eq!((circuit.bids, all["bids"].as_u64()), (5, Some(5)));
        assert_eq!(circuit.open(&input).unwrap(), [3, 1, 4, 1, 5]);
        assert!(circuit.open(&InputFile::from_bytes(*b"3 1 4")).is_err());
        assert!(circuit.open(&InputFile::from_bytes(*b"3 1 4 1 -5")).is_err());
    }
}
