//! The rows of one operation of a chip, as data: setup repeats them, provers evaluate them, and the tests
//! search them for forgeries.

use crate::form::{Form, constant};
use crate::op::{Access, Op};
use crate::word::{Word, number, power};
use ark_ff::{Field, Zero};
use hekaton_circuit::Fr;

/// A table that operations ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// The numbers of as many bits.
    Range(u32),
    /// x + 2^40 y + 2^80 (x and y), of bytes.
    Logic,
    /// sh + 2^40 right, and the factor 2^sh or 2^(32 - sh).
    Powers,
    /// The rows of the program.
    Program,
}

/// A bus whose entries operations take and give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Taken {
    /// pc, and the cycle.
    State,
    /// The register plus 64 times the tick of its last access, and its value.
    Registers,
    /// The word's address plus 2^32 times the cycle of its last access, and its value.
    Memory,
}

/// A value of an operation, which is an integer.
pub(crate) type OfOp = fn(&Op) -> i128;

/// A value of an access of a precompile, which is an integer.
pub(crate) type OfAccess = fn(&Access) -> i128;

/// Values of all accesses of a precompile, which are integers.
pub(crate) type OfAccesses = fn(&[Access]) -> Vec<i128>;

/// The source of the value of a variable.
#[derive(Clone)]
pub(crate) enum Source {
    /// The operation; the variable is committed.
    Op(OfOp),
    /// The access with this number; committed, too.
    Access(usize, OfAccess),
    /// The inverse of a difference, or zero; committed, too.
    Inverse(OfOp),
    /// The value with this number of all accesses together; committed if an entry or a look-up contains it.
    Computed(usize),
    /// Two forms, whose product it is; committed if an entry or a look-up contains it.
    Product(Form, Form),
}

/// A variable of an operation.
#[derive(Clone)]
pub(crate) struct Variable {
    /// The name of the variable in the search of the tests.
    #[cfg_attr(not(test), allow(dead_code, reason = "for tests and debugging"))]
    pub(crate) name: &'static str,
    pub(crate) source: Source,
    /// `true` if it is committed to before the challenges are drawn, as everything in entries must be.
    pub(crate) committed: bool,
}

/// A row of an operation. Rows have the names that the tests of their absence use.
#[derive(Clone, Debug)]
pub(crate) enum Row {
    /// a b = c
    Product { a: Form, b: Form, c: Form },
    /// A look-up with the multiplicity of the enable bit: one row, and one for a value.
    Ask { table: Asked, key: Form, value: Form },
    /// An entry that is taken from a bus or given to it, if the operation is enabled. Its value is a
    /// form plus a constant.
    Entry { bus: Taken, key: Form, value: Form, offset: i128, gives: bool },
}

/// The rows of one operation. Variable 0 is the enable bit, whose row is not among them.
pub(crate) struct Template {
    pub(crate) word: Word,
    pub(crate) variables: Vec<Variable>,
    pub(crate) rows: Vec<(&'static str, Row)>,
    /// The variables of the words that a precompile is given, and of those that it makes.
    pub(crate) given: Vec<usize>,
    pub(crate) made: Vec<usize>,
    /// The values of all accesses together, if there are variables for them.
    compute: Option<OfAccesses>,
}

impl Template {
    /// The number of rows in the R1CS of an operation: the enable bit's, those here, and one for each of the values
    /// that are not constants.
    pub(crate) fn constraints(&self) -> usize {
        let mut values: Vec<&Form> = Vec::new();
        for (_, row) in &self.rows {
            if let Row::Ask { value, .. } | Row::Entry { value, .. } = row
                && !value.terms.is_empty()
                // Entries and look-ups with equal values share one row (`Local::value`); a constant needs
                // none.
                && !values.contains(&value)
            {
                values.push(value);
            }
        }
        1 + self.rows.len() + values.len()
    }

    /// The values of all variables.
    pub(crate) fn values(&self, op: &Op, accesses: &[Access]) -> Vec<Fr> {
        // What fills up a subcircuit has no accesses, and zeros in their place.
        let nothing = Access::default();
        let access = |number: &usize| accesses.get(*number).unwrap_or(&nothing);
        let computed = match self.compute {
            Some(compute) if !accesses.is_empty() => compute(accesses),
            _ => Vec::new(),
        };
        let mut values = Vec::with_capacity(self.variables.len());
        for Variable { source, .. } in &self.variables {
            values.push(match source {
                Source::Op(value) => number(value(op)),
                Source::Access(which, value) => number(value(access(which))),
                // Zero has no inverse, and its rows hold with any number: the smallest one, so that it costs nothing.
                Source::Inverse(of) => number(of(op)).inverse().unwrap_or(Fr::zero()),
                Source::Computed(which) => number(computed.get(*which).copied().unwrap_or(0)),
                Source::Product(a, b) => a.value(&values) * b.value(&values),
            });
        }
        values
    }
}

/// Collects the rows of an operation.
pub(crate) struct Builder {
    template: Template,
    /// The number of variables of all accesses together.
    computed: usize,
}

impl Builder {
    pub(crate) fn new(word: Word) -> Self {
        let (variables, rows) = (Vec::new(), Vec::new());
        let (given, made) = (Vec::new(), Vec::new());
        let template = Template { word, variables, rows, given, made, compute: None };
        let mut builder = Self { template, computed: 0 };
        // Variable 0, because synthesis allocates it first, as the multiplicity of all that follows.
        builder.commit("en", |op| i128::from(op.enabled));
        builder
    }

    pub(crate) fn finish(self) -> Template {
        let mut template = self.template;
        for (_, row) in &template.rows {
            if let Row::Ask { key, value, .. } | Row::Entry { key, value, .. } = row {
                for (variable, _) in key.terms.iter().chain(&value.terms) {
                    // Keys and values are combined with challenges that are drawn after the commitment: a
                    // variable that a prover could still choose then would forge any entry.
                    template.variables[*variable].committed = true;
                }
            }
        }
        template
    }

    pub(crate) fn word(&self) -> Word {
        self.template.word
    }

    fn variable(&mut self, name: &'static str, source: Source) -> Form {
        // Products are witnesses of the second phase unless an entry contains them: a committed value costs
        // a point in the commit round.
        let committed = !matches!(source, Source::Product(..) | Source::Computed(_));
        self.template.variables.push(Variable { name, source, committed });
        Form::variable(self.template.variables.len() - 1)
    }

    /// A committed value.
    pub(crate) fn commit(&mut self, name: &'static str, value: OfOp) -> Form {
        self.variable(name, Source::Op(value))
    }

    /// A committed value of an access of a precompile.
    pub(crate) fn commit_access(
        &mut self,
        name: &'static str,
        access: usize,
        value: OfAccess,
    ) -> Form {
        self.variable(name, Source::Access(access, value))
    }

    /// The enable bit.
    pub(crate) fn enable(&self) -> Form {
        Form::variable(0)
    }

    /// Sets the function of the values that [`computed`](Self::computed) gives variables to, in their order.
    pub(crate) fn compute(&mut self, values: OfAccesses) {
        self.template.compute = Some(values);
    }

    /// The next value of all accesses together.
    pub(crate) fn computed(&mut self, name: &'static str) -> Form {
        self.computed += 1;
        self.variable(name, Source::Computed(self.computed - 1))
    }

    /// A word that a precompile is given: what an access finds.
    pub(crate) fn given(&mut self, access: usize) -> Form {
        self.template.given.push(self.template.variables.len());
        self.commit_access("v", access, |access| access.before.into())
    }

    /// A word that a precompile makes: what an access leaves.
    pub(crate) fn made(&mut self, access: usize) -> Form {
        self.template.made.push(self.template.variables.len());
        self.commit_access("w", access, |access| access.after.into())
    }

    /// The words that a precompile is given, and those that it makes.
    pub(crate) fn words(&self) -> [Vec<Form>; 2] {
        let Template { given, made, .. } = &self.template;
        [given, made].map(|list| list.iter().copied().map(Form::variable).collect())
    }

    /// A committed value, the inverse of what is not zero.
    pub(crate) fn commit_inverse(&mut self, name: &'static str, of: OfOp) -> Form {
        self.variable(name, Source::Inverse(of))
    }

    /// A committed value that is 0 or 1.
    pub(crate) fn bit(&mut self, name: &'static str, row: &'static str, value: OfOp) -> Form {
        let bit = self.commit(name, value);
        self.row(row, &bit, &(constant(1) - &bit), &constant(0));
        bit
    }

    fn push(&mut self, name: &'static str, row: Row) {
        self.template.rows.push((name, row));
    }

    /// a b = c
    pub(crate) fn row(&mut self, name: &'static str, a: &Form, b: &Form, c: &Form) {
        self.push(name, Row::Product { a: a.clone(), b: b.clone(), c: c.clone() });
    }

    /// A variable that is the product of two forms.
    pub(crate) fn product(&mut self, name: &'static str, a: &Form, b: &Form) -> Form {
        let product = self.variable("product", Source::Product(a.clone(), b.clone()));
        self.row(name, a, b, &product);
        product
    }

    /// `otherwise`, or `chosen` if `bit` is 1.
    pub(crate) fn select(&mut self, bit: &Form, chosen: &Form, otherwise: &Form) -> Form {
        otherwise + self.product("select", bit, &(chosen - otherwise))
    }

    /// Asks a table for a key with a value.
    pub(crate) fn ask(&mut self, name: &'static str, table: Asked, key: &Form, value: &Form) {
        self.push(name, Row::Ask { table, key: key.clone(), value: value.clone() });
    }

    /// A form has as many bits.
    pub(crate) fn range(&mut self, name: &'static str, bits: u32, form: &Form) {
        self.ask(name, Asked::Range(bits), form, &constant(0));
    }

    /// Returns what is left of a form without its lower bits, divided by two to the power of their number. It is an
    /// integer if the form minus `low` is a multiple of that power, and otherwise a fraction, which is in no range.
    pub(crate) fn rest(&self, form: &Form, low: &Form, bits: u32) -> Form {
        // A field division and not a shift: if the division leaves a remainder, the result is a fraction,
        // far above every range.
        (form - low) * power(bits).inverse().expect("a power of two is not zero modulo r")
    }

    /// A form is a word; `low` is its lower limb, which becomes a committed value.
    pub(crate) fn word_range(
        &mut self,
        name: &'static str,
        form: &Form,
        label: &'static str,
        low: OfOp,
    ) -> Form {
        let limb = self.word().limb();
        let low = self.commit(label, low);
        self.range(name, limb, &low);
        let high = self.rest(form, &low, limb);
        self.range(name, limb, &high);
        low
    }

    /// The upper bit of a form that is known to be a word.
    pub(crate) fn sign(
        &mut self,
        form: &Form,
        labels: [&'static str; 2],
        low: OfOp,
        sign: OfOp,
    ) -> Form {
        let limb = self.word().limb();
        let bit = self.bit(labels[1], "sign bit", sign);
        let low = self.commit(labels[0], low);
        self.range("sign", limb, &low);
        // The upper limb without its upper bit has one bit less; with the wrong sign, it is negative or has
        // 16 bits.
        let high = self.rest(form, &low, limb) - &bit * power(limb - 1);
        self.range("sign", limb - 1, &high);
        bit
    }

    /// Takes an entry, and gives another one in its place.
    pub(crate) fn take(&mut self, name: &'static str, bus: Taken, key: &Form, value: &Form) {
        self.entry(name, bus, key, value, 0, false);
    }

    /// Gives an entry.
    pub(crate) fn give(&mut self, name: &'static str, bus: Taken, key: &Form, value: &Form) {
        self.entry(name, bus, key, value, 0, true);
    }

    /// Takes or gives an entry whose value is a form plus a constant.
    pub(crate) fn entry(
        &mut self,
        name: &'static str,
        bus: Taken,
        key: &Form,
        value: &Form,
        offset: i128,
        gives: bool,
    ) {
        let (key, value) = (key.clone(), value.clone());
        self.push(name, Row::Entry { bus, key, value, offset, gives });
    }
}
