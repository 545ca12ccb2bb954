//! Subcircuits that exchange values over buses.

use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::{AllocatedFp, FpVar};
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    BusId, Circuit, CircuitError, Fr, InstanceId, LayoutBuilder, LayoutError, Subcircuit, TypeId,
    WireId, WireValues,
};

/// Shelves add secret values under their numbers to a bus, and tills take them in an order of the
/// prover's choice. Each till looks a price up in a list that the keys fix.
///
/// Shelf i adds two values to the bus and publishes their sum; till i takes two, u0 and u1, looks up the price p
/// of an article, and publishes `u0 + 2 u1 + p`.
#[derive(Clone, Copy, Debug)]
pub struct Shop {
    /// The number of shelves, and of tills.
    pub tills: usize,
    /// The price of article 0; article i costs i^2 more.
    pub price: u64,
}

/// The number of articles in the list.
const ARTICLES: usize = 4;

/// The input of a [`Shop`].
#[derive(Clone, Debug)]
pub struct Shopping {
    /// The values on the shelves, two on each.
    pub values: Vec<u64>,
    /// The numbers of the values that the tills take, two each: a permutation.
    pub order: Vec<usize>,
    /// The article of each till.
    pub articles: Vec<u64>,
}

impl Shopping {
    /// Values and an order without a pattern.
    pub fn new(tills: usize) -> Self {
        let count = 2 * tills as u64;
        let order = (0..2 * tills).rev().collect();
        let articles = (0..tills as u64).map(|i| i * i % ARTICLES as u64).collect();
        Self { values: (0..count).map(|i| 1_000 + 7 * i * i).collect(), order, articles }
    }
}

/// The types, wires and buses of a [`Shop`].
#[derive(Debug)]
pub struct ShopPlan {
    /// The types: shelves, tills, and the list of prices.
    pub types: [TypeId; 3],
    /// The buses: of goods, and of prices.
    pub buses: [BusId; 2],
    sums: Vec<WireId>,
    totals: Vec<WireId>,
}

impl Shop {
    /// A shop with prices from 7.
    pub fn new(tills: usize) -> Self {
        Self { tills, price: 7 }
    }

    /// The price of an article.
    pub fn price(&self, article: u64) -> u64 {
        self.price + article * article
    }
}

impl Circuit for Shop {
    type Input = Shopping;
    type Plan = ShopPlan;
    type Trace = ();
    type Private = Vec<u64>;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<ShopPlan, LayoutError> {
        let types = [("shelf", 1), ("till", 1), ("prices", 0)]
            .map(|(name, slots)| layout.subcircuit_type(name, slots));
        let buses = ["goods", "prices"].map(|name| layout.bus(name));
        layout.parameters(types[0], 1);
        layout.pairs(types[2], ARTICLES);
        let (mut sums, mut totals) = (Vec::new(), Vec::new());
        for i in 0..self.tills {
            for (kind, wires, name) in
                [(types[0], &mut sums, "sum"), (types[1], &mut totals, "total")]
            {
                let instance = layout.instance(kind);
                let wire = layout.public_output(name, i as u64);
                layout.write(instance, 0, wire);
                wires.push(wire);
                if kind == types[0] {
                    layout.set_parameter(instance, 0, Fr::from(2 * i as u64));
                }
            }
        }
        let list = layout.instance(types[2]);
        for (index, article) in (0..ARTICLES).zip(0u64..) {
            let price = Fr::from(self.price(article));
            layout.set_pair(list, index, Fr::from(article), price);
        }
        Ok(ShopPlan { types, buses, sums, totals })
    }

    fn execute(
        &self,
        plan: &ShopPlan,
        input: &Shopping,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        for i in 0..self.tills {
            let sum = input.values[2 * i] + input.values[2 * i + 1];
            let [a, b] = [0, 1].map(|j| input.values[input.order[2 * i + j]]);
            values.set(plan.sums[i], Fr::from(sum));
            let total = a + 2 * b + self.price(input.articles[i]);
            values.set(plan.totals[i], Fr::from(total));
        }
        Ok(())
    }

    fn private_input(
        &self,
        _: &ShopPlan,
        input: &Shopping,
        (): &(),
        instance: InstanceId,
    ) -> Result<Vec<u64>, CircuitError> {
        let (till, rest) = (instance.index() / 2, instance.index() % 2);
        if till == self.tills {
            let asked = |article| input.articles.iter().filter(|a| **a == article).count() as u64;
            return Ok((0..ARTICLES as u64).map(asked).collect());
        }
        if rest == 0 {
            return Ok(input.values[2 * till..2 * till + 2].to_vec());
        }
        let article = input.articles[till];
        let of = |j: usize| input.order[2 * till + j];
        let [a, b] = [of(0), of(1)];
        let taken = [a as u64, input.values[a], b as u64, input.values[b]];
        Ok([&taken[..], &[article, self.price(article), 1]].concat())
    }

    fn synthesize(
        &self,
        plan: &ShopPlan,
        subcircuit: &Subcircuit,
        private: Option<&Vec<u64>>,
    ) -> Result<(), SynthesisError> {
        let mark = |index: usize| {
            subcircuit.commit(|| {
                let value = private.and_then(|list| list.get(index));
                value.map(|value| Fr::from(*value)).ok_or(SynthesisError::AssignmentMissing)
            })
        };
        let one = FpVar::one();
        let minus_one = FpVar::constant(-Fr::from(1u64));
        let [goods, prices] = [subcircuit.bus(plan.buses[0])?, subcircuit.bus(plan.buses[1])?];
        if subcircuit.kind() == plan.types[0] {
            let (a, b) = (mark(0)?, mark(1)?);
            let base = subcircuit.parameter(0)?;
            goods.add(base, &a, &one)?;
            goods.add(&(base + &one), &b, &one)?;
            (a + b).enforce_equal(subcircuit.slot(0)?)
        } else if subcircuit.kind() == plan.types[1] {
            let [key_a, a, key_b, b, article, price, open] = [0, 1, 2, 3, 4, 5, 6].map(mark);
            let (open, a, b, price) = (open?, a?, b?, price?);
            // The till may be closed: then it takes only one value.
            (&open * &open).enforce_equal(&open)?;
            goods.add(&key_a?, &a, &minus_one)?;
            goods.add(&key_b?, &b, &open.negate()?)?;
            prices.add(&article?, &price, &minus_one)?;
            // A variable that is neither marked nor a slot: both would be committed, and tests need a column of each kind.
            let variable = subcircuit.cs().new_witness_variable(|| {
                let b = private.and_then(|list| list.get(3));
                b.map(|b| Fr::from(2 * b)).ok_or(SynthesisError::AssignmentMissing)
            })?;
            let value = private.and_then(|list| list.get(3)).map(|b| Fr::from(2 * b));
            let double = FpVar::Var(AllocatedFp::new(value, variable, subcircuit.cs()));
            (&b + &b).enforce_equal(&double)?;
            (a + double + price).enforce_equal(subcircuit.slot(0)?)
        } else {
            for article in 0..ARTICLES {
                prices.add_pair(article, &mark(article)?)?;
            }
            Ok(())
        }
    }
}
