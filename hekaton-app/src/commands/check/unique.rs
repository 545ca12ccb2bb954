//! `hekaton check --unique`: whether the values of a witness follow from the inputs.

use crate::application::Answered;
use crate::options::Unique;
use hekaton_circuit::unique::{FreeValue, Verdicts};
use hekaton_circuit::{InstanceVerdicts, show};
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::output::{count, counted};
use serde_json::{Value, json};

/// The most names of one kind that are printed without --all.
const NAMED: usize = 8;

/// Verdicts on one subject.
pub(super) struct Subject {
    /// The type and the subcircuit; `None` for a circuit in one piece.
    pub(super) name: Option<String>,
    /// The given values, in words.
    pub(super) given: String,
    pub(super) verdicts: Verdicts,
    /// Slots that are read without an effect.
    pub(super) without_effect: Vec<String>,
}

impl From<InstanceVerdicts> for Subject {
    fn from(of: InstanceVerdicts) -> Self {
        let InstanceVerdicts { instance, kind, private_inputs, verdicts, without_effect } = of;
        let name = Some(format!("type '{kind}', subcircuit {instance}"));
        let given = format!(
            "what it reads and commits to, and {}",
            counted(private_inputs as u64, "private input")
        );
        Self { name, given, verdicts, without_effect }
    }
}

impl From<Answered> for Subject {
    fn from(Answered { given, verdicts }: Answered) -> Self {
        Self { name: None, given, verdicts, without_effect: vec![] }
    }
}

/// The lines for people.
pub(super) fn lines(subjects: &[Subject], options: &Unique) -> String {
    let mut text = String::new();
    for Subject { name, given, verdicts, without_effect } in subjects {
        let Verdicts { outputs, others, free, undecided, cut_off } = verdicts;
        let ([free_outputs, free_others], [undecided_outputs, undecided_others]) =
            (verdicts.free_counts(), verdicts.undecided_counts());
        let subject = name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let determined = |all: &usize, free: usize, undecided: usize| {
            format!("{} of {}", count((all - free - undecided) as u64), count(*all as u64))
        };
        text += &format!(
            "\nunique: {subject}given {given}, {} outputs and {} other values are determined",
            determined(outputs, free_outputs, undecided_outputs),
            determined(others, free_others, undecided_others),
        );
        // Outputs that are free are in the message of the failure.
        let others: Vec<String> = free.iter().filter(|v| !v.is_output).map(shown).collect();
        text += &list("free values that change no output", &others, options.all);
        let undecided: Vec<String> = undecided.iter().map(|(name, _)| name.clone()).collect();
        text += &list("undecided", &undecided, options.all);
        text += &list("read without an effect", without_effect, options.all);
        if *cut_off {
            text += "\n  a rule was cut off, which might decide more";
        }
    }
    if !subjects.is_empty() {
        text += "\nThis is said for this input only: others may take other branches.";
    }
    text
}

fn shown(value: &FreeValue) -> String {
    format!("{} ({} or {})", value.name, show(&value.value), show(&value.other))
}

fn list(title: &str, names: &[String], all: bool) -> String {
    if names.is_empty() {
        return String::new();
    }
    let most = if all { names.len() } else { NAMED };
    let mut text = names.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(most).filter(|more| *more > 0) {
        text += &format!(", and {} more (--all lists them)", count(more as u64));
    }
    format!("\n  {title}: {text}")
}

/// The JSON form.
pub(super) fn object(subjects: &[Subject]) -> Value {
    let object = |subject: &Subject| {
        let Verdicts { outputs, others, free, undecided, cut_off } = &subject.verdicts;
        let free = free.iter().map(|value| {
            json!({
                "name": value.name, "output": value.is_output,
                "value": value.value.to_string(), "other": value.other.to_string(),
            })
        });
        let undecided =
            undecided.iter().map(|(name, output)| json!({ "name": name, "output": output }));
        json!({
            "subject": subject.name, "given": subject.given, "outputs": outputs, "others": others,
            "free": free.collect::<Vec<_>>(), "undecided": undecided.collect::<Vec<_>>(),
            "without_effect": subject.without_effect, "cut_off": cut_off,
        })
    };
    json!(subjects.iter().map(object).collect::<Vec<_>>())
}

/// The failure for an output that does not follow, or with --strict for one that is undecided.
pub(super) fn failure(subjects: &[Subject], options: &Unique) -> Result<(), Failure> {
    let details = || json!({ "unique": object(subjects) });
    let place = |subject: &Subject| {
        subject.name.as_ref().map_or_else(String::new, |name| format!(" of {name}"))
    };
    for subject in subjects {
        // Outputs come first.
        let free = &subject.verdicts.free[..subject.verdicts.free_counts()[0]];
        if let Some((first, more)) = free.split_first() {
            let more: Vec<String> = more.iter().map(shown).collect();
            let message = format!(
                "{}{} does not follow from the inputs: it is {} here and {} in a second witness, which satisfies all \
                 constraints. A prover may claim either value{}{}",
                first.name,
                place(subject),
                show(&first.value),
                show(&first.other),
                list("more outputs that do not follow", &more, options.all),
                lines(subjects, options),
            );
            return Err(Failure { code: exit::REFUSED, message, details: details() });
        }
    }
    for subject in subjects.iter().filter(|_| options.strict) {
        if let Some((name, _)) = subject.verdicts.undecided.iter().find(|(_, is_output)| *is_output)
        {
            let message = format!(
                "--strict: no rule shows that {name}{} follows from the inputs, and no second witness was found{}",
                place(subject),
                lines(subjects, options),
            );
            return Err(Failure { code: exit::REFUSED, message, details: details() });
        }
    }
    Ok(())
}
