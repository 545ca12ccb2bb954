// Points of G1 (over Fq) and G2 (over Fq2), with formulas of the Explicit-Formulas Database for short Weierstrass curves with a = 0.
#pragma once
#include "field.h"

// An affine point; all zeros is the point at infinity.
template <class F> struct ALIGNED Affine {
    F x, y;
};

// x = X/ZZ and y = Y/ZZZ with ZZ^3 = ZZZ^2; ZZ = 0 is the point at infinity.
template <class F> struct ALIGNED Point {
    F x, y, zz, zzz;
};

template <class F> FN bool is_infinite(const Affine<F> &p) { return is_zero(p.x) && is_zero(p.y); }
template <class F> FN bool is_infinite(const Point<F> &p) { return is_zero(p.zz); }

template <class F> FN void set_infinite(Point<F> &p) {
    set_zero(p.x);
    set_zero(p.y);
    set_zero(p.zz);
    set_zero(p.zzz);
}

template <class F> FN void negate(Affine<F> &p) {
    F zero;
    set_zero(zero);
    p.y = zero - p.y;
}

// dbl-2008-s-1. No point has the order 2.
template <class F> FN Point<F> doubled(const Point<F> &p) {
    Point<F> r;
    F u = p.y + p.y, v = square(u), w = u * v, s = p.x * v;
    F m = square(p.x);
    m = m + m + m;
    r.x = square(m) - s - s;
    r.y = m * (s - r.x) - w * p.y;
    r.zz = v * p.zz;
    r.zzz = w * p.zzz;
    return r;
}

// The same as a function that is called, for where it is rare, so that it takes no registers from what is not.
template <class F> CALLED void double_apart(Point<F> *p) { *p = doubled(*p); }
template <class F> FN void double_rarely(Point<F> &p) {
    Point<F> copy = p;
    double_apart(&copy);
    p = copy;
}

// madd-2008-s: a + b.
template <class F> FN void add(Point<F> &a, const Affine<F> &b) {
    if (is_infinite(b)) return;
    if (is_infinite(a)) {
        a.x = b.x;
        a.y = b.y;
        set_one(a.zz);
        set_one(a.zzz);
        return;
    }
    F p = b.x * a.zz - a.x, r = b.y * a.zzz - a.y;
    if (is_zero(p)) {
        if (is_zero(r)) double_rarely(a);
        else set_infinite(a);
        return;
    }
    F pp = square(p);
    a.zz = a.zz * pp;
    F q = a.x * pp;
    p = p * pp;
    a.zzz = a.zzz * p;
    a.x = square(r) - p - q - q;
    a.y = r * (q - a.x) - a.y * p;
}

// add-2008-s: a + b.
template <class F> CALLED void add_apart(Point<F> *sum, const Point<F> *other) {
    Point<F> a = *sum, b = *other;
    if (is_infinite(b)) return;
    if (is_infinite(a)) {
        *sum = b;
        return;
    }
    F u = a.x * b.zz, p = b.x * a.zz - u;
    F s = a.y * b.zzz, r = b.y * a.zzz - s;
    if (is_zero(p)) {
        if (is_zero(r)) double_apart(sum);
        else set_infinite(*sum);
        return;
    }
    F pp = square(p);
    a.zz = a.zz * b.zz * pp;
    F q = u * pp;
    p = p * pp;
    a.zzz = a.zzz * b.zzz * p;
    a.x = square(r) - p - q - q;
    a.y = r * (q - a.x) - s * p;
    *sum = a;
}
template <class F> FN void add(Point<F> &a, const Point<F> &b) { add_apart(&a, &b); }

// The same point in affine coordinates; infinity is all zeros, as 0 has the inverse 0.
template <class F> FN Affine<F> affine(const Point<F> &p) {
    F both = inverse(p.zz * p.zzz);
    return {p.x * (both * p.zzz), p.y * (both * p.zz)};
}
