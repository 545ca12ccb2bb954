//! Rows of operations, as counted by the model; chips whose immediate is a digit of the key there have one more.

use crate::circuit::MachineCircuit;
use crate::pinned::{lines, pinned};
use crate::precompile::Precompile;
use crate::sizes::{refresh_template, template_of};
use crate::template::{Asked, Row, Taken};
use crate::{Chip, Isa, Sizes};
use ark_ff::{One, Zero};
use hekaton_circuit::prover::digest_of_types;
use hekaton_circuit::{Masking, PreparedCircuit};

/// The digests of all types, with masks and without.
fn digests(isa: Isa, sizes: Sizes) -> [String; 2] {
    let every = MachineCircuit::of_family(isa, sizes);
    let prepared = PreparedCircuit::new(&every).unwrap();
    let layout = prepared.layout();
    let types: Vec<_> = layout.type_ids().map(|kind| (kind, layout.type_name(kind))).collect();
    [Masking::Masked, Masking::Unmasked].map(|masking| {
        let of = |(kind, name)| (name, prepared.r1cs(kind, masking).unwrap().digest());
        hex::encode(digest_of_types(types.iter().copied().map(of)))
    })
}

/// Compares the lines of some sizes with the code, and all lines of these instruction sets with its digests for 2^12 and
/// 2^17 rows.
fn check(isas: &[Isa], wanted: impl Fn(usize) -> bool) {
    let mut wrong = Vec::new();
    for isa in isas {
        let [small, large] = [12, 17].map(|log| digests(*isa, Sizes { rows: 1 << log }));
        let code = format!("{}{}", &small[0][..16], &large[0][..16]);
        for line in lines().filter(|line| line.isa == isa.name()) {
            let log = line.rows.ilog2();
            let [masked, unmasked] = match log {
                12 => small.clone(),
                17 => large.clone(),
                _ if wanted(line.rows) => digests(*isa, Sizes { rows: line.rows }),
                _ if line.code == code => continue,
                _ => ["?", "?"].map(str::to_owned),
            };
            let found = line.digests.map(hex::encode);
            if (line.code, &found[0], &found[1]) != (&*code, &masked, &unmasked) {
                wrong.push(format!("{} {log} {code} {masked} {unmasked}", line.isa));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "the machine has other constraints: raise its version (`MACHINE` of hekaton-cli), and replace these lines of \
         pinned.txt by those that the ignored test prints, which computes all digests:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn rv32im_types_are_pinned() {
    check(&[Isa::Rv32im], |_| false);
}

#[test]
fn tinyram_types_are_pinned() {
    check(&[Isa::TinyRam], |_| false);
}

#[test]
#[ignore = "types of 2^20 rows take minutes"]
fn pinned_digests_are_those_of_the_code() {
    check(&[Isa::Rv32im, Isa::TinyRam], |_| true);
}

/// Both instruction sets have the same sizes, each once, and no others.
#[test]
fn every_size_is_pinned_once() {
    for isa in [Isa::Rv32im, Isa::TinyRam] {
        let rows = lines().filter(|line| line.isa == isa.name()).map(|line| line.rows);
        assert!(rows.eq((12..=20).map(|log| 1 << log)));
        assert_eq!(pinned(isa, Sizes { rows: 3 << 12 }), None);
        let first = lines().find(|line| line.isa == isa.name()).unwrap();
        assert_eq!(pinned(isa, Sizes::SMALL), Some(first.digests));
    }
    assert_eq!(lines().count(), 18);
}

#[test]
fn rows_are_pinned() {
    let rows_of = |isa: Isa| -> Vec<usize> {
        isa.chips().iter().map(|chip| template_of(*chip).constraints()).collect()
    };
    assert_eq!(
        rows_of(Isa::Rv32im),
        [
            10, 18, 23, 29, 22, 36, 30, 16, 17, 23, 11, 19, 22, 22, 31, 42, 39, 25, 32, 48, 148,
            314, 324, 470
        ]
    );
    assert_eq!(
        rows_of(Isa::TinyRam),
        [10, 13, 20, 37, 29, 33, 39, 36, 43, 21, 23, 29, 12, 10, 18, 23, 23, 30, 35, 34]
    );
    assert_eq!(refresh_template().constraints(), 5);
    assert_eq!(Precompile::ALL.map(Precompile::chip), Chip::PRECOMPILES);
    // With the function: a block by instructions is 124,000 rows.
    let calls = |sizes: Sizes| Chip::PRECOMPILES.map(|chip| sizes.constraints(chip));
    assert_eq!(
        [Sizes::LARGE, Sizes::SMALL].map(calls),
        [[5_004, 14_395, 324, 470], [8_172, 26_723, 324, 470]]
    );
}

/// The digits of fetched rows are exact, whatever values buses have: registers are apart from each other by the rises
/// of their keys, all else in a key is bounded by rows of its own, and immediates are values. A value that is known to
/// be a word only because digits are exact must bound none of them.
#[test]
fn keys_of_rows_depend_on_no_value() {
    let mut jumps = Vec::new();
    for chip in Chip::every() {
        let template = template_of(chip);
        let name = |at: usize| template.variables[at].name;
        let is_bit = |at: usize| {
            template.rows.iter().any(|(_, row)| match row {
                Row::Product { a, b, c } => {
                    let sum = a + b;
                    a.as_variable() == Some(at)
                        && c.terms.is_empty()
                        && c.constant.is_zero()
                        && sum.terms.is_empty()
                        && sum.constant.is_one()
                }
                _ => false,
            })
        };
        let mut fetches = 0;
        for (_, row) in &template.rows {
            match row {
                Row::Ask { table: Asked::Program, key, value } => {
                    fetches += 1;
                    for (at, _) in &key.terms {
                        let is_bounded = match (chip, name(*at)) {
                            (_, "pc" | "rs1" | "rs2" | "rd") => true,
                            // Its two rows say that it is 0 or 1; and the flag is, since all that is written
                            // to it is.
                            (Chip::BranchEqual, "t") | (Chip::TinyBranch, "flag") => true,
                            _ => is_bit(*at),
                        };
                        assert!(is_bounded, "{chip:?} {}", name(*at));
                    }
                    let is_imm = value.as_variable().is_some_and(|at| name(at) == "imm");
                    let is_none = value.terms.is_empty() && value.constant.is_zero();
                    assert!(is_imm || is_none, "{chip:?}");
                }
                Row::Entry { bus: Taken::State, key, gives: true, .. } => {
                    // The next instruction, or an immediate; or a place with a range.
                    let is_next = matches!(key.terms[..], [(at, factor)]
                        if factor.is_one() && (name(at) == "pc" || name(at) == "imm"));
                    if !is_next {
                        jumps.push(chip);
                    }
                }
                _ => {}
            }
        }
        assert_eq!(fetches, 1);
    }
    assert_eq!(jumps, [Chip::JumpReg, Chip::TinyJump, Chip::TinyBranchReg]);
}
