//! Fq2, Fq6 and Fq12 in lanes: `Fq2 = Fq(i)`, `i^2 = -1`; `Fq6 = Fq2(v)`, `v^3 = 1 + i`; `Fq12 =
//! Fq6(w)`, `w^2 = v`.
//!
//! # Bounds
//! Elements are multiplied by R. The result of a reduction is lifted by p and below 3 p: in a
//! product in Fq2 the first coordinate is below 2.3 p and the second below 1.3 p. Products in Fq6
//! are sums of such results, lifted by 2^3 p, and below 2^4 p. A difference `a - b + 2^K p`
//! requires b to be at most 2^K p: K = 3 where b is a result in Fq2 or the sum of two, K = 4 where
//! it is a result in Fq6, or one in Fq2 times 1 + i or twelve times a square, K = 5 for one in Fq6
//! times v, and so on. Functions in this module return values of at most 2^6 p and accept values
//! below 2^7 p, lines included (at most 2^6 p for a cyclotomic square, which adds coordinates
//! first). Sums of two such values in Fq6 or Fq12, and again in Fq2, are below 2^10 p, so products
//! have operands below 2^11 p, and wide values, which are sums of fewer than 2^5 products where
//! there are any ([`LAZY`]), are within 2^27 p^2 of zero: far from -p R = -2^35 p^2, as a lifted
//! reduction requires, and reduced to at most 1.3 p. (The square in Fq12 goes up to 2^12 p before
//! its products: 2^29 p^2, still far.) Limbs of a wide product are below 2^56 (16 parts below
//! 2^52), and limbs of their sums below 2^61.

use super::field::Fq;
use super::lane::{Lane, Mask};
use super::loose::Loose;
use super::product::{WideFq, complex_product, mul_wide, products_loose, reduce_lifted};
use super::tuning::LAZY;
use blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12};

/// Eight elements of Fq2.
#[derive(Clone, Copy)]
pub(crate) struct Fq2 {
    pub(crate) c0: Fq,
    pub(crate) c1: Fq,
}

/// Eight elements of Fq6.
#[derive(Clone, Copy)]
pub(crate) struct Fq6(pub(crate) [Fq2; 3]);

/// Eight elements of Fq12.
#[derive(Clone, Copy)]
pub(crate) struct Fq12(pub(crate) [Fq6; 2]);

/// A product in Fq2 before its reduction.
#[derive(Clone, Copy)]
struct Wide2 {
    c0: WideFq,
    c1: WideFq,
}

lanes! {
    /// Three products and two reductions: 642 multiply-adds. Requires that the product of the sums
    /// of coordinates is below 2^34 p^2; the first coordinate of the result is lifted by p.
    #[inline(never)]
    pub(crate) fn fq2_mul(a: &Fq2, b: &Fq2) -> Fq2 {
        let [c0, c1] = fq2_mul_loose(a, b);
        Fq2 { c0: c0.carried(), c1: c1.carried() }
    }

    /// Same as [`fq2_mul`], without carrying.
    #[inline]
    pub(crate) fn fq2_mul_loose(a: &Fq2, b: &Fq2) -> [Loose; 2] {
        complex_product([&a.c0, &a.c1], [&b.c0, &b.c1])
    }

    /// Two products: 514 multiply-adds. Requires an operand below 2^7 p.
    #[inline(never)]
    pub(crate) fn fq2_square(a: &Fq2) -> Fq2 {
        let [c0, c1] = fq2_square_loose(a);
        Fq2 { c0: c0.carried(), c1: c1.carried() }
    }

    /// Same as [`fq2_square`], without carrying.
    #[inline]
    pub(crate) fn fq2_square_loose(a: &Fq2) -> [Loose; 2] {
        let (sum, difference) = (a.c0.add(&a.c1), a.c0.sub::<7>(&a.c1));
        products_loose([&sum, &difference], [&a.c0.double(), &a.c1])
    }

    /// The product before its reduction: 384 multiply-adds.
    #[inline(never)]
    fn wide2(a: &Fq2, b: &Fq2) -> Wide2 {
        let [v0, v1, sums] = parts(a, b);
        Wide2 { c0: v0.sub(&v1).settled(), c1: sums.sub(&v0).sub(&v1).settled() }
    }

    /// The products of the coordinates, and of the sums of the coordinates.
    #[inline]
    fn parts(a: &Fq2, b: &Fq2) -> [WideFq; 3] {
        let (v0, v1) = (mul_wide(&a.c0, &b.c0), mul_wide(&a.c1, &b.c1));
        [v0, v1, mul_wide(&a.c0.add(&a.c1), &b.c0.add(&b.c1))]
    }

    #[inline(never)]
    fn reduce2(t: &Wide2) -> Fq2 {
        let [c0, c1] = reduce_lifted(&t.c0, &t.c1);
        Fq2 { c0, c1 }
    }

    /// Same as [`fq2_mul_loose`], not inlined.
    #[inline(never)]
    fn product2(a: &Fq2, b: &Fq2) -> Loose2 {
        let [c0, c1] = fq2_mul_loose(a, b);
        Loose2 { c0, c1 }
    }

    /// Six products in Fq2: 3,852 multiply-adds, or 3,078 with lazy reduction; the result is below
    /// 2^4 p.
    #[inline(never)]
    pub(crate) fn fq6_mul(a: &Fq6, b: &Fq6) -> Fq6 {
        let ([a0, a1, a2], [b0, b1, b2]) = (&a.0, &b.0);
        if LAZY {
            let (v0, v1, v2) = (wide2(a0, b0), wide2(a1, b1), wide2(a2, b2));
            let c0 = wide2(&a1.add(a2), &b1.add(b2)).sub(&v1).sub(&v2).times_xi().add(&v0);
            let c1 = wide2(&a0.add(a1), &b0.add(b1)).sub(&v0).sub(&v1).add(&v2.times_xi());
            let c2 = wide2(&a0.add(a2), &b0.add(b2)).sub(&v0).sub(&v2).add(&v1);
            return Fq6([reduce2(&c0), reduce2(&c1), reduce2(&c2)]);
        }
        let (v0, v1, v2) = (product2(a0, b0), product2(a1, b1), product2(a2, b2));
        let c0 = product2(&a1.add(a2), &b1.add(b2)).sub(&v1).sub(&v2).times_xi().add(&v0);
        let c1 = product2(&a0.add(a1), &b0.add(b1)).sub(&v0).sub(&v1).add(&v2.times_xi());
        let c2 = product2(&a0.add(a2), &b0.add(b2)).sub(&v0).sub(&v2).add(&v1);
        Fq6([c0.carried(), c1.carried(), c2.carried()])
    }

    /// Multiplies by `b0 + b1 v`: five products in Fq2; the result is below 2^4 p.
    #[inline(never)]
    fn fq6_mul_by_01(a: &Fq6, b0: &Fq2, b1: &Fq2) -> Fq6 {
        let [a0, a1, a2] = &a.0;
        if LAZY {
            let (v0, v1) = (wide2(a0, b0), wide2(a1, b1));
            let c0 = wide2(&a1.add(a2), b1).sub(&v1).times_xi().add(&v0);
            let c1 = wide2(&a0.add(a1), &b0.add(b1)).sub(&v0).sub(&v1);
            let c2 = wide2(&a0.add(a2), b0).sub(&v0).add(&v1);
            return Fq6([reduce2(&c0), reduce2(&c1), reduce2(&c2)]);
        }
        let (v0, v1) = (product2(a0, b0), product2(a1, b1));
        let c0 = product2(&a1.add(a2), b1).sub(&v1).times_xi().add(&v0);
        let c1 = product2(&a0.add(a1), &b0.add(b1)).sub(&v0).sub(&v1);
        let c2 = product2(&a0.add(a2), b0).sub(&v0).add(&v1);
        Fq6([c0.carried(), c1.carried(), c2.carried()])
    }

    /// Eighteen products in Fq2: 11,556 multiply-adds (9,234 with lazy reduction).
    #[inline(never)]
    pub(crate) fn fq12_mul(a: &Fq12, b: &Fq12) -> Fq12 {
        let ([a0, a1], [b0, b1]) = (&a.0, &b.0);
        let (v0, v1) = (fq6_mul(a0, b0), fq6_mul(a1, b1));
        let cross = fq6_mul(&a0.add(a1), &b0.add(b1)).sub::<4>(&v0).sub::<4>(&v1);
        Fq12([v0.add(&v1.times_v::<4>()), cross])
    }

    /// Twelve products in Fq2: 7,704 multiply-adds (6,156 with lazy reduction).
    #[inline(never)]
    pub(crate) fn fq12_square(a: &Fq12) -> Fq12 {
        let [a0, a1] = &a.0;
        let v = fq6_mul(a0, a1);
        // below 2^4 p + 2^4 p + 2^5 p
        let c0 = fq6_mul(&a0.add(a1), &a0.add(&a1.times_v::<7>())).sub::<4>(&v).sub::<5>(&v.times_v::<4>());
        Fq12([c0, v.add(&v)])
    }

    /// Multiplies by a line `b0 + b1 v + b4 v w`: 13 products in Fq2, 8,346 multiply-adds (7,314
    /// with lazy reduction).
    #[inline(never)]
    pub(crate) fn fq12_mul_by_line(a: &Fq12, [b0, b1, b4]: &[Fq2; 3]) -> Fq12 {
        let [a0, a1] = &a.0;
        let v0 = fq6_mul_by_01(a0, b0, b1);
        let [x, y, z] = &a1.0;
        let first = if LAZY { reduce2(&wide2(z, b4).times_xi()) } else { product2(z, b4).times_xi().carried() };
        let v1 = Fq6([first, fq2_mul(x, b4), fq2_mul(y, b4)]);
        let cross = fq6_mul_by_01(&a0.add(a1), b0, &b1.add(b4)).sub::<4>(&v0).sub::<4>(&v1);
        Fq12([v0.add(&v1.times_v::<4>()), cross])
    }

    /// Multiplies by two lines: six products in Fq2 for the product of the lines, which has five
    /// coordinates, and seventeen more, instead of 26 for one line after the other.
    #[inline(never)]
    pub(crate) fn fq12_mul_by_two_lines(a: &Fq12, [b0, b1, b4]: &[Fq2; 3], [c0, c1, c4]: &[Fq2; 3]) -> Fq12 {
        let (m0, m1, m4) = (product2(b0, c0), product2(b1, c1), product2(b4, c4));
        let m01 = product2(&b0.add(b1), &c0.add(c1)).sub(&m0).sub(&m1);
        let m04 = product2(&b0.add(b4), &c0.add(c4)).sub(&m0).sub(&m4);
        let m14 = product2(&b1.add(b4), &c1.add(c4)).sub(&m1).sub(&m4);
        // v^2 w^2 is v^3
        let even = Fq6([m0.add(&m4.times_xi()).carried(), m01.carried(), m1.carried()]);
        let (x, y) = (m04.carried(), m14.carried());
        let [a0, a1] = &a.0;
        let v0 = fq6_mul(a0, &even);
        // times x v + y v^2, without the factor v
        let v1 = fq6_mul_by_01(a1, &x, &y);
        let [e0, e1, e2] = &even.0;
        let cross = fq6_mul(&a0.add(a1), &Fq6([*e0, e1.add(&x), e2.add(&y)]));
        let times_v = v1.times_v::<4>();
        let [x, y, z] = &v1.0;
        let times_v2 = Fq6([y.times_xi::<4>(), z.times_xi::<4>(), *x]);
        Fq12([v0.add(&times_v2), cross.sub::<4>(&v0).sub::<5>(&times_v)])
    }

    /// The square of an element of the cyclotomic subgroup (Granger and Scott): nine squares in Fq2
    /// and a reduction of twelve coordinates, 4,818 multiply-adds.
    #[inline(never)]
    pub(crate) fn fq12_cyclotomic_square(a: &Fq12) -> Fq12 {
        let ([z0, z4, z3], [z2, z1, z5]) = (&a.0[0].0, &a.0[1].0);
        // (x + y s)^2 = x^2 + xi y^2 + 2 x y s
        let (t0, t1) = fq4_square(z0, z1);
        let (t2, t3) = fq4_square(z2, z3);
        let (t4, t5) = fq4_square(z4, z5);
        // 3 t - 2 z and 3 t + 2 z
        let low = Fq6([minus(&t0, z0), minus(&t2, z4), minus(&t4, z3)]);
        let high = Fq6([plus(&t5.times_xi::<5>(), z2), plus(&t1, z1), plus(&t3, z5)]);
        Fq12([low, high]).reduced()
    }

    #[inline(never)]
    fn fq4_square(x: &Fq2, y: &Fq2) -> (Fq2, Fq2) {
        let (xx, yy) = (fq2_square(x), fq2_square(y));
        let cross = fq2_square(&x.add(y)).sub::<3>(&xx).sub::<3>(&yy);
        (xx.add(&yy.times_xi::<3>()), cross)
    }
}

/// Computes `3 t - 2 z`, for z below 2^7 p.
#[inline(always)]
fn minus(t: &Fq2, z: &Fq2) -> Fq2 {
    t.sub::<7>(z).double().add(t)
}

/// Computes `3 t + 2 z`.
#[inline(always)]
fn plus(t: &Fq2, z: &Fq2) -> Fq2 {
    t.add(z).double().add(t)
}

/// Products in Fq2 that have not been carried, and sums of them.
#[derive(Clone, Copy)]
struct Loose2 {
    c0: Loose,
    c1: Loose,
}

impl Loose2 {
    #[inline(always)]
    fn add(&self, b: &Self) -> Self {
        Self { c0: self.c0.plus(b.c0), c1: self.c1.plus(b.c1) }
    }

    #[inline(always)]
    fn sub(&self, b: &Self) -> Self {
        Self { c0: self.c0.minus(b.c0), c1: self.c1.minus(b.c1) }
    }

    /// Multiplies by 1 + i.
    #[inline(always)]
    fn times_xi(&self) -> Self {
        Self { c0: self.c0.minus(self.c1), c1: self.c0.plus(self.c1) }
    }

    /// Carries, after adding 2^3 p.
    #[inline(always)]
    fn carried(&self) -> Fq2 {
        Fq2 { c0: self.c0.carried_from::<3>(), c1: self.c1.carried_from::<3>() }
    }
}

impl Wide2 {
    #[inline(always)]
    fn add(&self, b: &Self) -> Self {
        Self { c0: self.c0.add(&b.c0), c1: self.c1.add(&b.c1) }
    }

    #[inline(always)]
    fn sub(&self, b: &Self) -> Self {
        Self { c0: self.c0.sub(&b.c0), c1: self.c1.sub(&b.c1) }
    }

    /// Multiplies by 1 + i.
    #[inline(always)]
    fn times_xi(&self) -> Self {
        Self { c0: self.c0.sub(&self.c1), c1: self.c0.add(&self.c1) }
    }
}

impl Fq2 {
    #[inline(always)]
    pub(crate) fn zero() -> Self {
        Self { c0: Fq::zero(), c1: Fq::zero() }
    }

    /// One, multiplied by R.
    #[inline(always)]
    pub(crate) fn unit() -> Self {
        Self { c0: Fq::one(), c1: Fq::zero() }
    }

    #[inline(always)]
    pub(crate) fn add(&self, b: &Self) -> Self {
        Self { c0: self.c0.add(&b.c0), c1: self.c1.add(&b.c1) }
    }

    #[inline(always)]
    pub(crate) fn sub<const K: usize>(&self, b: &Self) -> Self {
        Self { c0: self.c0.sub::<K>(&b.c0), c1: self.c1.sub::<K>(&b.c1) }
    }

    #[inline(always)]
    pub(crate) fn double(&self) -> Self {
        self.add(self)
    }

    /// Multiplies by three.
    #[inline(always)]
    pub(crate) fn times_3(&self) -> Self {
        let (c0, c1) = (Loose::of(&self.c0), Loose::of(&self.c1));
        Self { c0: c0.plus(c0).plus(c0).carried(), c1: c1.plus(c1).plus(c1).carried() }
    }

    /// Multiplies by four.
    #[inline(always)]
    pub(crate) fn times_4(&self) -> Self {
        let (c0, c1) = (Loose::of(&self.c0), Loose::of(&self.c1));
        let (c0, c1) = (c0.plus(c0), c1.plus(c1));
        Self { c0: c0.plus(c0).carried(), c1: c1.plus(c1).carried() }
    }

    /// Multiplies an element below 2^K p by 1 + i.
    #[inline(always)]
    pub(crate) fn times_xi<const K: usize>(&self) -> Self {
        Self { c0: self.c0.sub::<K>(&self.c1), c1: self.c0.add(&self.c1) }
    }

    /// Multiplies by an element of Fq.
    #[inline(always)]
    pub(crate) fn scaled(&self, by: &Fq) -> Self {
        let [c0, c1] = products_loose([&self.c0, by], [&self.c1, by]);
        Self { c0: c0.carried(), c1: c1.carried() }
    }

    #[inline(always)]
    pub(crate) fn choose(&self, mask: Mask, other: &Self) -> Self {
        Self { c0: self.c0.select(mask, &other.c0), c1: self.c1.select(mask, &other.c1) }
    }

    /// Reduces to little more than p.
    #[inline(always)]
    fn reduced(&self) -> Self {
        Self { c0: self.c0.nearly_reduced(), c1: self.c1.nearly_reduced() }
    }
}

impl Fq6 {
    #[inline(always)]
    fn add(&self, b: &Self) -> Self {
        let ([a0, a1, a2], [b0, b1, b2]) = (&self.0, &b.0);
        Self([a0.add(b0), a1.add(b1), a2.add(b2)])
    }

    /// Subtracts b, which must be below 2^K p. [`Self::times_v`] has the same condition.
    #[inline(always)]
    fn sub<const K: usize>(&self, b: &Self) -> Self {
        let ([a0, a1, a2], [b0, b1, b2]) = (&self.0, &b.0);
        Self([a0.sub::<K>(b0), a1.sub::<K>(b1), a2.sub::<K>(b2)])
    }

    #[inline(always)]
    fn times_v<const K: usize>(&self) -> Self {
        Self([self.0[2].times_xi::<K>(), self.0[0], self.0[1]])
    }
}

/// The coordinates of an element of Fq12, in order.
pub(crate) fn coordinates(f: &blst_fp12) -> [[u64; 6]; 12] {
    std::array::from_fn(|i| f.fp6[i / 6].fp2[i / 2 % 3].fp[i % 2].l)
}

pub(crate) fn from_coordinates(c: &[[u64; 6]; 12]) -> blst_fp12 {
    let fp = |i: usize| blst_fp { l: c[i] };
    let fp2 = |i: usize| blst_fp2 { fp: [fp(i), fp(i + 1)] };
    let fp6 = |i: usize| blst_fp6 { fp2: [fp2(i), fp2(i + 2), fp2(i + 4)] };
    blst_fp12 { fp6: [fp6(0), fp6(6)] }
}

impl Fq12 {
    #[inline(always)]
    pub(crate) fn one() -> Self {
        let mut out = Self([Fq6([Fq2::zero(); 3]); 2]);
        out.0[0].0[0] = Fq2::unit();
        out
    }

    #[inline(always)]
    fn reduced(&self) -> Self {
        let mut out = *self;
        for half in &mut out.0 {
            for x in &mut half.0 {
                *x = x.reduced();
            }
        }
        out
    }

    /// The conjugate over Fq6, which is the inverse in the target group; the element must be at
    /// most 2^6 p.
    #[inline(always)]
    pub(crate) fn conjugate(&self) -> Self {
        Self([self.0[0], Fq6([Fq2::zero(); 3]).sub::<6>(&self.0[1])])
    }

    /// Coordinate i of the twelve.
    #[inline(always)]
    pub(crate) fn coordinate(&self, i: usize) -> &Fq {
        let x = &self.0[i / 6].0[i / 2 % 3];
        if i.is_multiple_of(2) { &x.c0 } else { &x.c1 }
    }

    #[inline(always)]
    pub(crate) fn coordinate_mut(&mut self, i: usize) -> &mut Fq {
        let x = &mut self.0[i / 6].0[i / 2 % 3];
        if i.is_multiple_of(2) { &mut x.c0 } else { &mut x.c1 }
    }
}

lanes! {
    /// Reads one coordinate of eight elements from words times 2^384.
    #[inline(never)]
    pub(crate) fn read_coordinate(words: &[[u64; 6]; 8]) -> Fq {
        let mut columns = [Lane::splat(0); 6];
        for j in 0..6 {
            let mut column = [0; 8];
            for lane in 0..8 {
                column[lane] = words[lane][j];
            }
            columns[j] = Lane::load(&column);
        }
        Fq::from_montgomery(&columns)
    }

    /// Writes one coordinate of each lane as reduced words times 2^384.
    #[inline(never)]
    pub(crate) fn write_coordinate(x: &Fq) -> [[u64; 6]; 8] {
        let columns = x.to_montgomery();
        let mut out = [[0; 6]; 8];
        for j in 0..6 {
            let mut column = [0; 8];
            columns[j].store(&mut column);
            for lane in 0..8 {
                out[lane][j] = column[lane];
            }
        }
        out
    }

    /// Reads eight elements.
    pub(crate) fn read_fq12(elements: &[blst_fp12; 8]) -> Fq12 {
        let mut all = [[[0; 6]; 12]; 8];
        for lane in 0..8 {
            all[lane] = coordinates(&elements[lane]);
        }
        let mut out = Fq12::one();
        for i in 0..12 {
            let mut words = [[0; 6]; 8];
            for lane in 0..8 {
                words[lane] = all[lane][i];
            }
            *out.coordinate_mut(i) = read_coordinate(&words);
        }
        out
    }

    /// Writes the element of each lane.
    pub(crate) fn write_fq12(x: &Fq12) -> [blst_fp12; 8] {
        let mut all = [[[0; 6]; 12]; 8];
        for i in 0..12 {
            let words = write_coordinate(x.coordinate(i));
            for lane in 0..8 {
                all[lane][i] = words[lane];
            }
        }
        let mut out = [blst_fp12::default(); 8];
        for lane in 0..8 {
            out[lane] = from_coordinates(&all[lane]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::portable;

    /// The same element with each coordinate below `2^bits p`, by at most 3 p.
    fn lifted(x: &Fq12, bits: usize) -> Fq12 {
        lifted_some(x, bits, |_| true)
    }

    /// Same as [`lifted`], for some of the coordinates.
    fn lifted_some(x: &Fq12, bits: usize, which: impl Fn(usize) -> bool) -> Fq12 {
        let mut out = *x;
        for i in (0..12).filter(|i| which(*i)) {
            // x - 2 p + 2^bits p, for x below 2 p
            let c = out.coordinate_mut(i);
            let p = Fq::new(Fq::p(1));
            *c = match bits {
                6 => c.sub::<6>(&p),
                _ => c.sub::<7>(&p),
            };
        }
        out
    }

    #[test]
    fn the_tower_agrees_with_the_portable_one() {
        if !super::super::available() {
            return;
        }
        let g = crate::pairing(&crate::Group::generator(), &crate::Group::generator());
        let elements: [blst_fp12; 8] =
            std::array::from_fn(|i| g.mul(&crate::Fr::from(i as u64 * 77 + 1)).0);
        // SAFETY: the features are available (checked above).
        unsafe {
            let a = read_fq12(&elements);
            let mut turned = elements;
            turned.rotate_left(3);
            let b = read_fq12(&turned);
            let check = |got: Fq12, expected: &dyn Fn(&blst_fp12, &blst_fp12) -> blst_fp12| {
                for ((got, x), y) in write_fq12(&got).iter().zip(&elements).zip(&turned) {
                    assert_eq!(*got, expected(x, y));
                }
            };
            check(a, &|x, _| *x);
            check(fq12_mul(&a, &b), &portable::fp12_mul);
            check(fq12_square(&a), &|x, _| portable::fp12_mul(x, x));
            check(fq12_cyclotomic_square(&a), &|x, _| portable::fp12_cyclotomic_square(x));
            check(a.conjugate(), &|x, _| portable::fp12_conjugate(x));
            // the same numbers, as large as they may be
            let (most_a, most_b) = (lifted(&a, 7), lifted(&b, 7));
            check(most_a, &|x, _| *x);
            check(fq12_mul(&most_a, &most_b), &portable::fp12_mul);
            check(fq12_square(&most_a), &|x, _| portable::fp12_mul(x, x));
            check(fq12_cyclotomic_square(&most_a), &|x, _| portable::fp12_cyclotomic_square(x));
            // differences of coordinates, as negative and as large as they may be
            for turn in 0..2 {
                for width in [1, 2, 6] {
                    let some = |x, bits| lifted_some(x, bits, |i| i / width % 2 == turn);
                    check(fq12_mul(&some(&a, 7), &some(&b, 7)), &portable::fp12_mul);
                    check(fq12_square(&some(&a, 7)), &|x, _| portable::fp12_mul(x, x));
                    check(fq12_cyclotomic_square(&some(&a, 6)), &|x, _| {
                        portable::fp12_cyclotomic_square(x)
                    });
                }
            }
            check(lifted(&a, 6).conjugate(), &|x, _| portable::fp12_conjugate(x));
            // a line is an element with three nonzero coordinates in Fq2
            let mut sparse = Fq12::one();
            let line = [b.0[0].0[0], b.0[1].0[2], b.0[0].0[1]];
            (sparse.0[0].0[0], sparse.0[0].0[1], sparse.0[1].0[1]) = (line[0], line[1], line[2]);
            let expected = write_fq12(&fq12_mul(&a, &sparse));
            assert_eq!(write_fq12(&fq12_mul_by_line(&a, &line)), expected);
            let other = [a.0[1].0[0], b.0[0].0[2], a.0[0].0[2]];
            let twice = write_fq12(&fq12_mul_by_line(&fq12_mul_by_line(&a, &line), &other));
            assert_eq!(write_fq12(&fq12_mul_by_two_lines(&a, &line, &other)), twice);
            let line = [most_b.0[0].0[0], most_b.0[1].0[2], most_b.0[0].0[1]];
            let other = [most_a.0[1].0[0], most_b.0[0].0[2], most_a.0[0].0[2]];
            assert_eq!(write_fq12(&fq12_mul_by_line(&most_a, &line)), expected);
            assert_eq!(write_fq12(&fq12_mul_by_two_lines(&most_a, &line, &other)), twice);
        }
    }
}
