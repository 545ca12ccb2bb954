//! Values that chips do not commit to follow from those that they do. The searches show how rows tie the committed values.

use hekaton_circuit::{CheckOptions, CheckReport, Circuit, PreparedCircuit, check_with};

/// The report on a run in which all constraints hold, all buses balance, and all else follows from what is committed: no chip has a
/// private input of its own.
pub(super) fn tied<C: Circuit>(circuit: &C, input: &C::Input) -> CheckReport {
    let prepared = PreparedCircuit::with_input(circuit, input).unwrap();
    let options = CheckOptions::new().unique(true).every(true).committed_given(true);
    let report = check_with(&prepared, &options, &mut |_, _| {}).unwrap();
    assert_eq!((&report.violations[..], &report.unbalanced[..]), (&[][..], &[][..]));
    assert_eq!(report.unique.len(), report.instances);
    for found in &report.unique {
        let free = (found.private_inputs, &found.verdicts.free[..]);
        assert_eq!(free, (0, &[][..]), "{}", found.kind);
        let undecided = &found.verdicts.undecided;
        match &found.kind[..] {
            // Their slots are public values, which the bus of the memory ties, or of no word.
            "boundary" | "public" => {
                assert!(
                    undecided.iter().all(|(name, _)| name.starts_with("slot ")),
                    "{undecided:?}"
                );
            }
            kind => assert_eq!(undecided[..], [], "{kind}"),
        }
    }
    report
}
