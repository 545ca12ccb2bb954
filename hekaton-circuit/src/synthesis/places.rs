//! The places in an author's code at which constraints are made, for messages: the functions that were running, and the
//! tracing spans of gadgets. Recording them makes synthesis slower, so only checks and failures record.

use std::backtrace::Backtrace;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;

/// The place of a constraint of which neither a function of the author nor a span is known.
pub(crate) const UNKNOWN: &str =
    "   (unknown place: build with debug = \"line-tables-only\" to see functions and lines)";

/// The crates whose functions are not the author's: those of gadgets, of this library, and of the language.
const FOREIGN: [&str; 14] = [
    "alloc",
    "ark_crypto_primitives",
    "ark_ec",
    "ark_ff",
    "ark_r1cs_std",
    "ark_relations",
    "ark_serialize",
    "ark_std",
    "core",
    "hekaton_circuit",
    "std",
    "tracing",
    "tracing_core",
    "tracing_subscriber",
];

/// Parts of the paths of files that are not the author's: dependencies, and the standard library.
const FOREIGN_FILES: [&str; 4] = ["/registry/src/", "/git/checkouts/", "/vendor/", "/rustc/"];

/// The function that calls the author's `synthesize`: its callers are not the author's.
const OUTERMOST: &str = "call_synthesize";

/// The maximum number of functions in a message.
const SHOWN: usize = 4;

/// A running function.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    function: String,
    /// The file and the line, if the program has this debug information.
    line: Option<String>,
}

impl std::fmt::Display for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.function)?;
        self.line.as_ref().map_or(Ok(()), |line| write!(f, " ({line})"))
    }
}

/// The author's functions in the text of a backtrace, innermost first.
fn authors(backtrace: &str) -> Vec<Frame> {
    let frames = frames(backtrace);
    // The innermost frames are this file's, and so say where the files of this library are.
    let here =
        frames.iter().find_map(|frame| frame.line.as_ref()?.split_once("synthesis/places.rs"));
    let library = here.map(|(sources, _)| sources.to_owned());
    let is_own = |frame: &Frame| match &frame.line {
        // Inlined functions may have no crate in their names.
        Some(line) => {
            !FOREIGN_FILES.iter().any(|part| line.contains(part))
                && !library.as_ref().is_some_and(|library| line.starts_with(library))
        }
        None => frame.function.contains("::"),
    };
    let inside = frames.iter().take_while(|frame| !frame.function.contains(OUTERMOST));
    let own = inside.filter(|f| !FOREIGN.contains(&crate_of(&f.function)) && is_own(f));
    let shown = |frame: &Frame| Frame {
        function: short(&frame.function),
        line: frame.line.as_ref().map(|line| line.trim_start_matches("./").to_owned()),
    };
    own.map(shown).collect()
}

/// The functions in the text of a backtrace, innermost first, with file and line if they are known.
fn frames(backtrace: &str) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for line in backtrace.lines().map(str::trim) {
        match (line.split_once(": "), line.strip_prefix("at ")) {
            (Some((number, function)), _) if number.parse::<u32>().is_ok() => {
                frames.push(Frame { function: function.to_owned(), line: None });
            }
            (_, Some(place)) => {
                if let Some(frame) = frames.last_mut() {
                    // Without the column.
                    let line = place.rsplit_once(':').map_or(place, |(line, _)| line);
                    frame.line = Some(line.to_owned());
                }
            }
            _ => {}
        }
    }
    frames
}

/// The crate of a function, or of the type that it is a method of.
fn crate_of(function: &str) -> &str {
    let mut rest = function;
    while let Some(inner) = ["<", "&", "(", "[", "*", "mut ", "const ", "dyn "]
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix))
    {
        rest = inner;
    }
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(rest)
}

/// A method without its trait, and a function without its type parameters: `<a::B as c::D>::e` is `a::B::e`.
fn short(function: &str) -> String {
    let parts = function.strip_prefix('<').and_then(|rest| rest.split_once(" as "));
    match parts.and_then(|(kind, rest)| Some((kind, rest.rsplit_once(">::")?.1))) {
        Some((kind, method)) => format!("{kind}::{method}"),
        None if function.starts_with('<') => function.to_owned(),
        None => function.split('<').take(1).collect(),
    }
}

/// The innermost running function of the author, in parentheses and after a space; empty if it is not known.
pub(crate) fn asked_here() -> String {
    let frames = authors(&Backtrace::force_capture().to_string());
    frames.first().map_or_else(String::new, |frame| format!(" (asked in {frame})"))
}

/// The place of a constraint.
#[derive(Debug)]
struct Place {
    backtrace: Backtrace,
    /// The spans around it, innermost first.
    spans: Vec<&'static Metadata<'static>>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let frames = authors(&self.backtrace.to_string());
        let mut lines: Vec<String> =
            frames.iter().take(SHOWN).map(|frame| format!("   in {frame}")).collect();
        // Files of gadgets are in a registry, where no author looks for a mistake.
        let is_own = |span: &Metadata<'_>| {
            !span.module_path().is_some_and(|path| FOREIGN.contains(&crate_of(path)))
        };
        let (own, gadgets): (Vec<&Metadata<'_>>, Vec<_>) =
            self.spans.iter().partition(|span| is_own(span));
        for span in own {
            let place = [span.file().map(str::to_owned), span.line().map(|line| line.to_string())];
            let place: Vec<String> = place.into_iter().flatten().collect();
            lines.push(format!("   in span {} ({})", span.name(), place.join(":")));
        }
        if !gadgets.is_empty() {
            let mut names: Vec<&str> = gadgets.iter().map(|span| span.name()).collect();
            names.dedup();
            lines.push(format!("   in gadget {}", names.join(", in ")));
        }
        match lines.is_empty() {
            true => f.write_str(UNKNOWN),
            false => f.write_str(&lines.join("\n")),
        }
    }
}

/// The constraints of a synthesis in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct Places {
    wanted: BTreeSet<usize>,
    /// The number of constraints made.
    pub(crate) made: usize,
    found: BTreeMap<usize, Place>,
    spans: Vec<&'static Metadata<'static>>,
    /// The spans that were entered and not left, as indices in `spans`.
    entered: Vec<u64>,
}

impl Places {
    /// Describes the place of a wanted constraint, by its number in the order in which they were made.
    pub(crate) fn of(&self, made: usize) -> String {
        self.found.get(&made).map_or_else(|| UNKNOWN.to_owned(), ToString::to_string)
    }
}

/// Runs a synthesis, and records the places of the constraints with the wanted numbers.
pub(crate) fn recorded<T>(
    wanted: impl IntoIterator<Item = usize>,
    synthesis: impl FnOnce() -> T,
) -> (T, Places) {
    let places = Places { wanted: wanted.into_iter().collect(), ..Places::default() };
    let recorder = Recorder(Arc::new(Mutex::new(places)));
    let places = Arc::clone(&recorder.0);
    let result = tracing::subscriber::with_default(recorder, synthesis);
    let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
    (result, std::mem::take(&mut *places))
}

/// Records places. For each constraint, arkworks asks for the current span, while the author's function that makes the
/// constraint is running.
struct Recorder(Arc<Mutex<Places>>);

impl Recorder {
    fn places(&self) -> MutexGuard<'_, Places> {
        // A panic of the author's between lock and unlock is not possible.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target() == "gr1cs"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut places = self.places();
        // Spans of one place in the source share a number: millions of them are made.
        let same = |known: &&Metadata<'_>| known.callsite() == span.metadata().callsite();
        let index = places.spans.iter().position(same).unwrap_or_else(|| {
            places.spans.push(span.metadata());
            places.spans.len() - 1
        });
        Id::from_u64(index as u64 + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.places().entered.push(span.into_u64() - 1);
    }

    fn exit(&self, span: &Id) {
        let mut places = self.places();
        let left = places.entered.iter().rposition(|entered| *entered == span.into_u64() - 1);
        if let Some(at) = left {
            places.entered.remove(at);
        }
    }

    fn current_span(&self) -> Current {
        let mut places = self.places();
        let number = places.made;
        places.made += 1;
        if places.wanted.contains(&number) {
            let entered = places.entered.iter().rev();
            let spans =
                entered.filter_map(|span| places.spans.get(usize::try_from(*span).ok()?).copied());
            let place = Place { backtrace: Backtrace::force_capture(), spans: spans.collect() };
            places.found.insert(number, place);
        }
        Current::none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_of_the_author_are_named() {
        let text = "   0: current_span
             at ./hekaton-circuit/src/synthesis/places.rs:190:20
   1: <hekaton_circuit::synthesis::places::Recorder as tracing_core::subscriber::Subscriber>::current_span
   2: {closure#0}<ark_ff::Fp<ark_ff::MontBackend>>
             at /home/a/.cargo/registry/src/index/ark-r1cs-std-0.6.0/src/fields/fp/mod.rs:1172:30
   3: <&mut ark_r1cs_std::fields::fp::FpVar<F> as powers::Helper>::help
   4: bit
             at ./hekaton-circuit/src/buses/bit.rs:19:4
   5: help<powers::Part>
             at ./src/main.rs:30:11
   6: powers::square::{{closure}}
             at ./src/main.rs:20:9
   7: core::ops::function::FnOnce::call_once
   8: <powers::Square as hekaton_circuit::parts::part::Part>::synthesize
             at ./src/main.rs:17:5
   9: <core_wallet::Part as hekaton_circuit::parts::part::Part>::synthesize
  10: hekaton_circuit::execution::prepared::PreparedCircuit::call_synthesize
  11: powers::main
";
        let frames: Vec<String> = authors(text).iter().map(ToString::to_string).collect();
        assert_eq!(
            frames,
            [
                "help (src/main.rs:30)",
                "powers::square::{{closure}} (src/main.rs:20)",
                "powers::Square::synthesize (src/main.rs:17)",
                "core_wallet::Part::synthesize"
            ]
        );
    }
}
