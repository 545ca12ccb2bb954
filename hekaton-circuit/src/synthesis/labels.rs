//! Labels of constraints: the tracing spans in which they were made, innermost first.

use ark_relations::gr1cs::{
    ConstraintLayer, ConstraintSystemRef, R1CS_PREDICATE_LABEL, TracingMode,
};
use hekaton_arith::Fr;
use tracing_subscriber::layer::SubscriberExt;

/// The label of a constraint that no span surrounds.
const NONE: &str = "   (no label)";

/// Runs a synthesis that records labels. It is several times as slow as one that does not.
pub(crate) fn recorded<T>(synthesis: impl FnOnce() -> T) -> T {
    let layer = ConstraintLayer::new(TracingMode::OnlyConstraints);
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, synthesis)
}

/// The label of a constraint.
pub(crate) fn label(cs: &ConstraintSystemRef<Fr>, constraint: usize) -> String {
    let trace = cs.borrow().and_then(|cs| {
        let traces = cs.predicate_traces.get(R1CS_PREDICATE_LABEL)?;
        traces.get(constraint).cloned().flatten()
    });
    match trace.map(|trace| trace.to_string()) {
        Some(text) if !text.is_empty() => text,
        _ => NONE.to_owned(),
    }
}
