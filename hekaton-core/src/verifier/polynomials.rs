//! The polynomials behind the folded keys (spec: aggregation#openings, aggregation#quotients).
//!
//! All are polynomials in Y = X^2, because the keys have even powers only.

#[cfg(feature = "prover")]
use ark_ff::AdditiveGroup;
use ark_ff::Field;
use hekaton_arith::Fr;

/// Evaluates `f_v(X) = prod_j (1 + x_j^-1 (X^2/r)^(2^(j-1)))` with factors `x_j^-1` and
/// `y = X^2/r`, or `f_w` with factors `x_j` and `y = X^2`.
pub(crate) fn fold_value(factors: &[Fr], y: Fr) -> Fr {
    // Rounds fold the least significant bit first (spec: aggregation#gipa-order), so factor j
    // belongs to bit j - 1 of the index, that is, to the power y^(2^(j-1)).
    let mut power = y;
    factors.iter().fold(Fr::ONE, |acc, x| {
        let term = acc * (Fr::ONE + *x * power);
        power.square_in_place();
        term
    })
}

/// Evaluates `f_W(X) = ((X^2/r)^n - 1) / (X^2/r - 1)`, which is n where X^2 = r; `y` is X^2/r.
pub(crate) fn geometric_value(y: Fr, n: u64) -> Fr {
    match (y - Fr::ONE).inverse() {
        Some(inverse) => (y.pow([n]) - Fr::ONE) * inverse,
        // The pole is removable: at y = 1 the sum of n powers of y is n.
        None => Fr::from(n),
    }
}

/// Returns the 2^l coefficients of [`fold_value`] in Y, where `y = scale Y`.
#[cfg(feature = "prover")]
pub(crate) fn fold_coefficients(factors: &[Fr], scale: Fr) -> Vec<Fr> {
    let mut out = vec![Fr::ONE];
    let mut power = scale;
    for x in factors {
        let factor = *x * power;
        let high: Vec<Fr> = out.iter().map(|c| *c * factor).collect();
        out.extend(high);
        power.square_in_place();
    }
    out
}

/// Returns the coefficients of X^0, X^1, .. of the quotient `(f(X) - f(z)) / (X - z)`, where
/// f(X) = F(X^2) and `coefficients` are those of F: `(X + z) Q(X^2)` with
/// `Q_(i-1) = F_i + z^2 Q_i`.
#[cfg(feature = "prover")]
pub(crate) fn quotient(coefficients: &[Fr], z: Fr) -> Vec<Fr> {
    let count = coefficients.len() - 1;
    let mut out = vec![Fr::ZERO; 2 * count];
    let square = z.square();
    let mut q = Fr::ZERO;
    // Horner's scheme from the top gives Q; X + z puts z Q_i at the even and Q_i at the odd powers
    // (spec: aggregation#quotients).
    for i in (0..count).rev() {
        q = coefficients[i + 1] + square * q;
        out[2 * i] = z * q;
        out[2 * i + 1] = q;
    }
    out
}

#[cfg(all(test, feature = "prover"))]
mod tests {
    use super::*;
    use hekaton_arith::powers;

    fn evaluate(coefficients: &[Fr], x: Fr) -> Fr {
        hekaton_arith::inner_product(coefficients, &powers(x, coefficients.len()))
    }

    #[test]
    fn coefficients_and_values_agree() {
        let (x, r) = (Fr::from(1234567u64), Fr::from(77u64));
        let factors = [3u64, 5, 8].map(Fr::from);
        let scale = r.inverse().unwrap();
        let coefficients = fold_coefficients(&factors, scale);
        assert_eq!(coefficients.len(), 8);
        assert_eq!(evaluate(&coefficients, x.square()), fold_value(&factors, x.square() * scale));
        let y = x.square() * scale;
        assert_eq!(geometric_value(y, 5), evaluate(&powers(scale, 5), x.square()));
        assert_eq!(geometric_value(Fr::ONE, 5), Fr::from(5u64));
    }

    #[test]
    fn quotients_divide() {
        let (x, z) = (Fr::from(99u64), Fr::from(41u64));
        let f: Vec<Fr> = (1..9u64).map(|i| Fr::from(i * i)).collect();
        let quotient = quotient(&f, z);
        let difference = evaluate(&f, x.square()) - evaluate(&f, z.square());
        assert_eq!(evaluate(&quotient, x) * (x - z), difference);
    }

    #[test]
    fn constants_have_an_empty_quotient() {
        assert!(quotient(&[Fr::ONE], Fr::from(3u64)).is_empty());
    }
}
