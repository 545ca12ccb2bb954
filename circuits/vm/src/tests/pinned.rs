//! Rows of operations, as counted by the model.

use crate::Chip;
use crate::circuit::{refresh_template, template_of};

#[test]
fn rows_are_pinned() {
    let rows = |chip| template_of(chip).constraints();
    assert_eq!(
        Chip::ALL.map(rows),
        [10, 17, 23, 29, 22, 36, 30, 16, 17, 23, 11, 18, 21, 21, 30, 41, 38, 25, 32, 48]
    );
    assert_eq!(refresh_template().constraints(), 5);
}
