//! The division of tables and memories into subcircuits.

use std::ops::Range;

/// Cuts `total` rows into parts of equal length, at most `most` each. The last part may end after
/// `total`: all instances of a type have the same constraints.
pub(crate) fn parts(total: usize, most: usize) -> (usize, Vec<Range<usize>>) {
    let instances = total.div_ceil(most.max(1)).max(1);
    // Spread evenly: full parts and a short last one would need the same domain, and the last instance
    // would hold more repeated rows.
    let rows = total.div_ceil(instances).max(1);
    (rows, (0..instances).map(|i| i * rows..(i + 1) * rows).collect())
}
