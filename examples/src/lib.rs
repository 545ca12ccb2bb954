//! A statement of account, proven without revealing it: *I know a list of payments that takes this
//! opening balance to this closing balance, and the account was never overdrawn.*
//!
//! The payments are split into batches, one subcircuit each. Neighboring batches share one wire:
//! the balance between them. The payments themselves are private inputs of their batch, so only the
//! prover of that batch sees them.

#[cfg(doctest)]
pub mod guides;

use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::boolean::Boolean;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::FieldVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    Circuit, CircuitError, InstanceId, Layout, LayoutError, Subcircuit, WireId, WireValues,
};
use hekaton_core::Fr;

/// Balances and payments are below 2^BITS.
pub const BITS: u32 = 48;

/// A payment in the smallest unit of money: positive in, negative out.
pub type Payment = i64;

/// An account and what happened to it.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The balance before the first payment.
    pub opening: u64,
    /// The payments in order; their number is fixed by the circuit.
    pub payments: Vec<Payment>,
}

/// The circuit: `batches` subcircuits of `batch` payments each.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// The number of subcircuits.
    pub batches: usize,
    /// The number of payments per batch.
    pub batch: usize,
}

impl Account {
    /// The layout, and the wires of the balances in order: opening, between the batches, closing.
    fn wires(&self) -> Result<(Layout, Vec<WireId>), LayoutError> {
        let mut layout = Layout::builder();
        let kind = layout.subcircuit_type("batch", 2);
        let mut balances = vec![layout.public_input("opening balance", 0)];
        balances.extend((1..self.batches).map(|i| layout.wire("balance before batch", i as u64)));
        balances.push(layout.public_output("closing balance", 0));
        for pair in balances.windows(2) {
            let instance = layout.instance(kind);
            layout.read(instance, 0, pair[0]);
            layout.write(instance, 1, pair[1]);
        }
        Ok((layout.build()?, balances))
    }
}

impl Circuit for Account {
    type Input = Statement;
    type Trace = ();
    type Private = Vec<Payment>;

    fn layout(&self) -> Result<Layout, LayoutError> {
        Ok(self.wires()?.0)
    }

    /// The coordinator's part: adds up the payments natively.
    fn execute(&self, statement: &Statement, values: &mut WireValues) -> Result<(), CircuitError> {
        let expected = self.batches * self.batch;
        if statement.payments.len() != expected {
            return Err(format!(
                "the statement has {} payments, but the circuit is for {expected}",
                statement.payments.len()
            )
            .into());
        }
        let (_, balances) = self.wires()?;
        let mut balance = statement.opening;
        values.set(balances[0], Fr::from(balance));
        for (batch, wire) in statement.payments.chunks(self.batch).zip(&balances[1..]) {
            for payment in batch {
                balance = balance.checked_add_signed(*payment).ok_or("the account is overdrawn")?;
            }
            values.set(*wire, Fr::from(balance));
        }
        Ok(())
    }

    fn private_input(
        &self,
        statement: &Statement,
        (): &(),
        batch: InstanceId,
    ) -> Result<Vec<Payment>, CircuitError> {
        let start = batch.index() * self.batch;
        Ok(statement.payments[start..start + self.batch].to_vec())
    }

    /// The constraints of one batch. At setup, there are no payments.
    fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        payments: Option<&Vec<Payment>>,
    ) -> Result<(), SynthesisError> {
        let (opening, closing) = (subcircuit.slot(0)?, subcircuit.slot(1)?);
        let mut balance = opening.clone();
        let mut known: Option<i128> = None;
        for i in 0..self.batch {
            let payment = payments.map(|p| p[i]);
            let value = || payment.map(field).ok_or(SynthesisError::AssignmentMissing);
            balance += FpVar::new_witness(subcircuit.cs(), value)?;
            // Never overdrawn: the balance fits into BITS bits, and a negative number would not,
            // since it is close to r in the field.
            if let Some(payment) = payment {
                let before = known.map_or_else(|| low(opening), Ok)?;
                known = Some(before + i128::from(payment));
            }
            let bits: Vec<Boolean<Fr>> = (0..BITS)
                .map(|bit| {
                    let value = || {
                        known.map(|k| k >> bit & 1 == 1).ok_or(SynthesisError::AssignmentMissing)
                    };
                    Boolean::new_witness(subcircuit.cs(), value)
                })
                .collect::<Result<_, _>>()?;
            let mut sum = FpVar::zero();
            for (bit, boolean) in bits.into_iter().enumerate() {
                sum += FpVar::from(boolean) * Fr::from(1u64 << bit);
            }
            sum.enforce_equal(&balance)?;
        }
        balance.enforce_equal(closing)
    }
}

/// A payment as a field element.
fn field(payment: Payment) -> Fr {
    let size = Fr::from(payment.unsigned_abs());
    if payment < 0 { -size } else { size }
}

/// A balance as a number. In an honest execution it is below 2^64.
fn low(balance: &FpVar<Fr>) -> Result<i128, SynthesisError> {
    use ark_r1cs_std::GR1CSVar;
    let text = balance.value()?.to_string();
    text.parse().map_err(|_| SynthesisError::Unsatisfiable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::{check, count_constraints};
    use hekaton_core::{LocalEngine, ProveOptions, SetupOptions, prove, setup, verify};

    const ACCOUNT: Account = Account { batches: 3, batch: 2 };

    fn statement() -> Statement {
        Statement { opening: 100, payments: vec![-100, 7, 50, -57, 1 << 40, -1] }
    }

    #[test]
    fn the_constraints_hold_and_are_counted() {
        let report = check(&ACCOUNT, &statement(), |_, _| {}).unwrap();
        assert!(report.violations.is_empty(), "{:?}", report.violations);
        assert_eq!(count_constraints(&ACCOUNT).unwrap(), [2 + 1 + 2 * 49 + 1]);
    }

    #[test]
    fn an_overdraft_is_refused_natively_and_by_the_constraints() {
        let mut overdrawn = statement();
        overdrawn.payments[..2].copy_from_slice(&[-101, 8]);
        let error = check(&ACCOUNT, &overdrawn, |_, _| {}).unwrap_err().to_string();
        assert!(error.contains("overdrawn"), "{error}");
        // the constraints catch it, too, if the native code forgets the check
        struct Careless;
        impl Circuit for Careless {
            type Input = Statement;
            type Trace = ();
            type Private = Vec<Payment>;
            fn layout(&self) -> Result<Layout, LayoutError> {
                ACCOUNT.layout()
            }
            fn execute(
                &self,
                statement: &Statement,
                values: &mut WireValues,
            ) -> Result<(), CircuitError> {
                let (_, balances) = ACCOUNT.wires()?;
                let mut balance = Fr::from(statement.opening);
                values.set(balances[0], balance);
                for (batch, wire) in statement.payments.chunks(2).zip(&balances[1..]) {
                    batch.iter().for_each(|payment| balance += field(*payment));
                    values.set(*wire, balance);
                }
                Ok(())
            }
            fn private_input(
                &self,
                input: &Statement,
                t: &(),
                i: InstanceId,
            ) -> Result<Vec<Payment>, CircuitError> {
                ACCOUNT.private_input(input, t, i)
            }
            fn synthesize(
                &self,
                s: &Subcircuit,
                p: Option<&Vec<Payment>>,
            ) -> Result<(), SynthesisError> {
                ACCOUNT.synthesize(s, p)
            }
        }
        let report = check(&Careless, &overdrawn, |_, _| {}).unwrap();
        assert_eq!(report.violations.iter().map(|v| v.instance).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_statement_is_proven() {
        let keys = setup(&ACCOUNT, &SetupOptions::new("account")).unwrap();
        let engine = LocalEngine::new(None).unwrap();
        let run = prove(&ACCOUNT, &statement(), &keys, &engine, &ProveOptions::new()).unwrap();
        let public = [100u64, (1 << 40) - 1].map(Fr::from);
        assert_eq!(run.public_values, public);
        assert_eq!(verify(&keys.verifying, &public, run.proof.as_bytes()), Ok(()));
        assert!(
            verify(&keys.verifying, &[public[0], public[1] + Fr::from(1u64)], run.proof.as_bytes())
                .is_err()
        );
    }
}
