//! The division of tables and memories into subcircuits.

use std::ops::Range;

/// The parts of `total` rows that instances of the same number of rows hold, at most `most` each.
pub(crate) fn parts(total: usize, most: usize) -> (usize, Vec<Range<usize>>) {
    let instances = total.div_ceil(most.max(1)).max(1);
    let rows = total.div_ceil(instances).max(1);
    (rows, (0..instances).map(|i| i * rows..(i + 1) * rows).collect())
}
