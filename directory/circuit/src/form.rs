//! Linear forms with their values, and the rows of a subcircuit.

use crate::rule::Rule;
use ark_ff::PrimeField;
use ark_relations::gr1cs::{ConstraintSystemRef, LinearCombination, SynthesisError, Variable};
use std::cell::RefCell;
use std::ops::{Add, Sub};

/// A linear combination of variables. It has no value at setup.
#[derive(Clone, Debug)]
pub(crate) struct Form<F: PrimeField> {
    lc: LinearCombination<F>,
    value: Option<F>,
}

impl<F: PrimeField> Form<F> {
    pub(crate) fn new(mut lc: LinearCombination<F>, value: Option<F>) -> Self {
        // Bits of messages repeat the constant, and arkworks stores each term.
        lc.compactify();
        Self { lc, value }
    }

    pub(crate) fn zero() -> Self {
        Self { lc: LinearCombination::zero(), value: Some(F::ZERO) }
    }

    pub(crate) fn one() -> Self {
        Self { lc: Variable::One.into(), value: Some(F::ONE) }
    }

    pub(crate) fn value(&self) -> Option<F> {
        self.value
    }

    pub(crate) fn times(&self, factor: F) -> Self {
        Self { lc: &self.lc * factor, value: self.value.map(|value| value * factor) }
    }
}

impl<F: PrimeField> Add<&Form<F>> for &Form<F> {
    type Output = Form<F>;
    fn add(self, other: &Form<F>) -> Form<F> {
        let value = self.value.zip(other.value).map(|(a, b)| a + b);
        Form { lc: &self.lc + &other.lc, value }
    }
}

impl<F: PrimeField> Add<&Form<F>> for Form<F> {
    type Output = Form<F>;
    fn add(self, other: &Form<F>) -> Form<F> {
        &self + other
    }
}

impl<F: PrimeField> Sub<&Form<F>> for &Form<F> {
    type Output = Form<F>;
    fn sub(self, other: &Form<F>) -> Form<F> {
        let value = self.value.zip(other.value).map(|(a, b)| a - b);
        Form { lc: &self.lc - &other.lc, value }
    }
}

impl<F: PrimeField> Sub<&Form<F>> for Form<F> {
    type Output = Form<F>;
    fn sub(self, other: &Form<F>) -> Form<F> {
        &self - other
    }
}

/// The constraint system of a subcircuit.
#[derive(Clone, Debug)]
pub(crate) struct Rows<F: PrimeField> {
    pub(crate) cs: ConstraintSystemRef<F>,
    /// The variables of [`bit`](Self::bit) and [`choice`](Self::choice): what the prover of a step chooses, but for its messages.
    pub(crate) chosen: RefCell<Vec<Variable>>,
    /// The rule that is left out, to see what it is for.
    #[cfg(test)]
    pub(crate) without: Option<Rule>,
    /// Values of variables of a prover that lies: by the rule that they belong to, and their number.
    #[cfg(test)]
    pub(crate) lies: std::collections::BTreeMap<(Rule, usize), F>,
}

impl<F: PrimeField> Rows<F> {
    pub(crate) fn new(cs: ConstraintSystemRef<F>) -> Self {
        Self {
            cs,
            chosen: RefCell::default(),
            #[cfg(test)]
            without: None,
            #[cfg(test)]
            lies: std::collections::BTreeMap::new(),
        }
    }

    /// A variable of the prover's choice.
    pub(crate) fn variable(&self, value: Option<F>) -> Result<Form<F>, SynthesisError> {
        let variable =
            self.cs.new_witness_variable(|| value.ok_or(SynthesisError::AssignmentMissing))?;
        Ok(Form { lc: variable.into(), value })
    }

    /// A variable of the prover's choice which a rule makes what it is; the rule has others before it.
    pub(crate) fn claim(
        &self,
        rule: Rule,
        number: usize,
        value: Option<F>,
    ) -> Result<Form<F>, SynthesisError> {
        #[cfg(test)]
        // Every value that is the prover's choice can be replaced in tests, by the rule that must refuse
        // it.
        let value = self.lies.get(&(rule, number)).copied().or(value);
        let _ = (rule, number);
        self.variable(value)
    }

    /// The row `a b = c`.
    pub(crate) fn product(
        &self,
        rule: Rule,
        a: &Form<F>,
        b: &Form<F>,
        c: &Form<F>,
    ) -> Result<(), SynthesisError> {
        #[cfg(test)]
        // Tests leave out the rows of one rule and show what can be proven then; in the library, a row
        // cannot be left out.
        if self.without == Some(rule) {
            return Ok(());
        }
        let _ = rule;
        let (a, b, c) = (a.lc.clone(), b.lc.clone(), c.lc.clone());
        self.cs.enforce_r1cs_constraint(|| a, || b, || c)
    }

    /// The row `if form = 0`: where `if` is not zero, the form is.
    pub(crate) fn zero_if(
        &self,
        rule: Rule,
        flag: &Form<F>,
        form: &Form<F>,
    ) -> Result<(), SynthesisError> {
        self.product(rule, flag, form, &Form::zero())
    }

    /// A variable with the product of two forms.
    pub(crate) fn multiply(&self, a: &Form<F>, b: &Form<F>) -> Result<Form<F>, SynthesisError> {
        let c = self.variable(a.value.zip(b.value).map(|(a, b)| a * b))?;
        self.product(Rule::Definition, a, b, &c)?;
        Ok(c)
    }

    /// A variable that equals a form.
    pub(crate) fn named(&self, form: &Form<F>) -> Result<Form<F>, SynthesisError> {
        self.multiply(form, &Form::one())
    }

    /// A [`claim`](Self::claim) that rules only restrict.
    pub(crate) fn choice(
        &self,
        rule: Rule,
        number: usize,
        value: Option<F>,
    ) -> Result<Form<F>, SynthesisError> {
        let choice = self.claim(rule, number, value)?;
        self.chosen.borrow_mut().extend(choice.lc.iter().map(|(_, variable)| *variable));
        Ok(choice)
    }

    /// A choice of 0 or 1.
    pub(crate) fn bit(
        &self,
        rule: Rule,
        number: usize,
        value: Option<F>,
    ) -> Result<Form<F>, SynthesisError> {
        let bit = self.choice(rule, number, value)?;
        self.zero_if(rule, &bit, &(Form::one() - &bit))?;
        Ok(bit)
    }
}
