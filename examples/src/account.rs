//! A statement of account, proven without revealing it: *I know a list of payments that takes this
//! opening balance to this closing balance, and the account was never overdrawn.*
//!
//! The payments are split into batches, one subcircuit each. Neighboring batches share one wire:
//! the balance between them. The payments themselves are private inputs of their batch, so only the
//! prover of that batch sees them.

use hekaton_circuit::prelude::*;

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

/// One batch: takes the balance before its payments to the balance after them. The payments are its
/// private input.
#[derive(Clone, Debug, PartialEq)]
struct Batch {
    size: usize,
}

impl Part for Batch {
    const NAME: &'static str = "batch";
    type Reads<W: Leaf> = W;
    type Writes<W: Leaf> = W;
    type Private = Vec<Payment>;

    fn run(&self, opening: &Fr, payments: &Vec<Payment>) -> Result<Fr, CircuitError> {
        let mut balance = low(opening)?;
        for payment in payments {
            balance += i128::from(*payment);
            u64::try_from(balance).map_err(|_| "the account is overdrawn")?;
        }
        Ok(payments.iter().fold(*opening, |balance, payment| balance + field(*payment)))
    }

    fn synthesize(
        &self,
        cs: Cs,
        opening: &Var,
        closing: &Var,
        payments: Option<&Vec<Payment>>,
    ) -> Synthesized {
        let mut balance = opening.clone();
        for i in 0..self.size {
            let payment = payments.map(|p| p[i]);
            let value = || payment.map(field).ok_or(SynthesisError::AssignmentMissing);
            // What the subcircuit chooses; all else follows from it (`check --unique`).
            balance += Subcircuit::given(&cs, || Var::new_witness(cs.clone(), value))?;
            // Never overdrawn: the balance fits into BITS bits, and a negative number would not,
            // since it is close to r in the field.
            let known = balance.value().ok().and_then(|balance| low(&balance).ok());
            let bit = |bit: u32| {
                let value = || payment.map(|_| known.is_some_and(|k| k >> bit & 1 == 1));
                Boolean::new_witness(cs.clone(), || {
                    value().ok_or(SynthesisError::AssignmentMissing)
                })
            };
            let bits = (0..BITS).map(bit).collect::<Result<Vec<_>, _>>()?;
            Boolean::le_bits_to_fp(&bits)?.enforce_equal(&balance)?;
        }
        balance.enforce_equal(closing)
    }
}

impl WiredCircuit for Account {
    type Input = Statement;

    fn wire(&self, c: &mut Wires<Statement>) -> Result<(), LayoutError> {
        let Self { batches, batch } = *self;
        let mut balance = c.public_input("opening balance", 0, move |statement: &Statement| {
            match statement.payments.len() {
                found if found == batches * batch => Ok(Fr::from(statement.opening)),
                found => Err(format!(
                    "the statement has {found} payments, but the circuit is for {}",
                    batches * batch
                )
                .into()),
            }
        });
        for i in 0..batches {
            balance = c.add_with(&Batch { size: batch }, balance, move |statement: &Statement| {
                Ok(statement.payments[i * batch..][..batch].to_vec())
            });
        }
        c.output("closing balance", balance);
        Ok(())
    }
}

/// A payment as a field element.
fn field(payment: Payment) -> Fr {
    let size = Fr::from(payment.unsigned_abs());
    if payment < 0 { -size } else { size }
}

/// A balance as a number. In an honest execution it is below 2^64.
fn low(balance: &Fr) -> Result<i128, CircuitError> {
    Ok(balance.to_string().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::parts::run_and_check;
    use hekaton_circuit::{check, count};
    use hekaton_core::{LocalEngine, ProveOptions, SetupOptions, prove, setup, verify};

    const ACCOUNT: Account = Account { batches: 3, batch: 2 };

    fn statement() -> Statement {
        Statement { opening: 100, payments: vec![-100, 7, 50, -57, 1 << 40, -1] }
    }

    #[test]
    fn the_constraints_hold_and_are_counted() {
        let report = check(&ACCOUNT, &statement(), |_, _| {}).unwrap();
        assert!(report.violations.is_empty(), "{:?}", report.violations);
        assert_eq!(count(&ACCOUNT).unwrap()[0].constraints, 2 + 1 + 2 * 49 + 1);
    }

    #[test]
    fn an_overdraft_is_refused_natively_and_by_the_constraints() {
        let mut overdrawn = statement();
        overdrawn.payments[..2].copy_from_slice(&[-101, 8]);
        let error = check(&ACCOUNT, &overdrawn, |_, _| {}).unwrap_err().to_string();
        assert!(error.contains("instance 0 (type 'batch'): the account is overdrawn"), "{error}");
        // The constraints catch it, too, if the native code forgets the check.
        #[derive(Clone, PartialEq)]
        struct Careless(Batch);
        impl Part for Careless {
            const NAME: &'static str = Batch::NAME;
            type Reads<W: Leaf> = W;
            type Writes<W: Leaf> = W;
            type Private = Vec<Payment>;
            fn run(&self, opening: &Fr, payments: &Vec<Payment>) -> Result<Fr, CircuitError> {
                Ok(payments.iter().fold(*opening, |balance, payment| balance + field(*payment)))
            }
            fn synthesize(
                &self,
                cs: Cs,
                opening: &Var,
                closing: &Var,
                payments: Option<&Vec<Payment>>,
            ) -> Synthesized {
                self.0.synthesize(cs, opening, closing, payments)
            }
        }
        let careless = Careless(Batch { size: 2 });
        let (_, holds) = run_and_check(&careless, &Fr::from(100u64), &vec![-101, 8]).unwrap();
        assert!(!holds);
        let (_, holds) = run_and_check(&careless, &Fr::from(100u64), &vec![-100, 8]).unwrap();
        assert!(holds);
    }

    #[test]
    fn a_statement_is_proven() {
        let engine = LocalEngine::new(None).unwrap();
        let keys = setup(&ACCOUNT, &engine, &SetupOptions::new("account")).unwrap();
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
