//! Field elements and names as text.

use ark_ff::{AdditiveGroup, PrimeField};
use hekaton_arith::{Fr, fr_from_bytes};

/// The maximum length of a number in text form: r has 77 decimal digits. Longer texts are refused before
/// any arithmetic, so that a verifier cannot be kept busy with them.
const LONGEST: usize = 80;

/// Reports whether a text can name a subcircuit type: 1 to 64 characters from a-z, 0-9, `_` and
/// `-`. Names become file names.
pub fn is_type_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    !name.is_empty() && name.len() <= 64 && name.bytes().all(allowed)
}

/// Reports whether a text can name a public wire. Brackets belong to the number of the wire, so that two
/// wires never have the same label.
pub fn is_public_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['[', ']'])
}

/// Parses a field element: a decimal number, or a hexadecimal one that starts with `0x`, below r.
///
/// # Errors
/// If the text is not such a number.
pub fn parse_value(text: &str) -> Result<Fr, String> {
    let shown = || text.chars().take(90).collect::<String>();
    let not_below = || format!("'{}' is not below the group order r", shown());
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if digits.is_empty() || digits.len() > LONGEST || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(format!(
            "'{}' is not a decimal number, or a hexadecimal one with 0x, below the group order r",
            shown()
        ));
    }
    let digit = |c: char| c.to_digit(radix).expect("all characters were checked to be digits");
    if radix == 16 {
        let significant = digits.trim_start_matches('0');
        let mut bytes = [0; 32];
        for (i, c) in significant.chars().rev().enumerate() {
            let byte = bytes.get_mut(i / 2).ok_or_else(not_below)?;
            *byte |= (digit(c) << (4 * (i % 2))).to_le_bytes()[0];
        }
        return fr_from_bytes(&bytes).map_err(|_| not_below());
    }
    let ten = Fr::from(10u64);
    let value = digits.chars().fold(Fr::ZERO, |value, c| value * ten + Fr::from(digit(c)));
    // Reductions modulo r are refused: the value must print as it was written, up to leading zeros.
    let canonical = match digits.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    if value.into_bigint().to_string() == canonical { Ok(value) } else { Err(not_below()) }
}

/// A field element for people: small numbers and their negatives as decimal numbers, the others as
/// hexadecimal numbers.
pub fn show(value: &Fr) -> String {
    let small = |value: &Fr| {
        let limbs = value.into_bigint().0;
        (limbs[2] == 0 && limbs[3] == 0).then(|| u128::from(limbs[1]) << 64 | u128::from(limbs[0]))
    };
    // Authors think of -1, not of r - 1.
    match (small(value), small(&-*value)) {
        (Some(value), _) => value.to_string(),
        (None, Some(value)) => format!("-{value}"),
        (None, None) => {
            let limbs = value.into_bigint().0;
            format!("0x{:016x}{:016x}{:016x}{:016x}", limbs[3], limbs[2], limbs[1], limbs[0])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_value() {
        let r = "52435875175126190479447740508185965837690552500527637822603658699938581184513";
        assert_eq!(parse_value("007"), Ok(Fr::from(7u64)));
        assert_eq!(parse_value("0"), Ok(Fr::ZERO));
        assert_eq!(parse_value("0x0f"), Ok(Fr::from(15u64)));
        let largest = (-Fr::from(1u64)).into_bigint();
        assert_eq!(parse_value(&largest.to_string()), Ok(-Fr::from(1u64)));
        let hex = "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000000";
        assert_eq!(parse_value(&format!("0x{hex}")), Ok(-Fr::from(1u64)));
        for bad in ["", "-1", "1.5", "0x", "x", " 1", r, &format!("0x{}1", &hex[..63]), "9e9"] {
            assert!(parse_value(bad).is_err(), "{bad}");
        }
        assert!(parse_value(&format!("0x1{hex}")).is_err());
    }

    #[test]
    fn small_numbers_are_shown_as_decimal() {
        assert_eq!(show(&Fr::from(12u64)), "12");
        assert_eq!(show(&-Fr::from(12u64)), "-12");
        assert_eq!(show(&Fr::from(u128::MAX)), u128::MAX.to_string());
        let large = Fr::from(u128::MAX) * Fr::from(1u128 << 100);
        assert!(show(&large).starts_with("0x"), "{}", show(&large));
        assert_eq!(show(&large).len(), 66);
        assert_eq!(parse_value(&show(&large)), Ok(large));
    }
}
