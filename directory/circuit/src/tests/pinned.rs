//! The number of rows.

use crate::Epochs;
use hekaton_circuit::count;
use hekaton_directory::Profile;

#[test]
fn rows_are_pinned() {
    let rows = |profile, steps| {
        let circuit = Epochs { profile, steps, subcircuits: 1 };
        count(&circuit).unwrap().iter().map(|kind| kind.constraints).collect::<Vec<_>>()
    };
    let [one, two] = [1, 2].map(|steps| rows(Profile::Compress, steps));
    assert_eq!((one[0], two[0] - one[0], one[1]), (54_119, 53_743, 241));
    let [one, two] = [1, 2].map(|steps| rows(Profile::Sha256, steps));
    assert_eq!((one[0], two[0] - one[0]), (92_551, 92_175));
}
