// Prime fields in Montgomery form, in 32-bit limbs, and Fq2. Values are always below the modulus.
#pragma once
#include "device.h"

// Sums with the carry flag. An instruction named _cc sets the flag, and one with addc, subc or madc uses it.
#if ON_DEVICE
#define FLAGGED(name, instruction)                                                                                                         \
    FN u32 name(u32 a, u32 b) {                                                                                                            \
        u32 r;                                                                                                                             \
        asm volatile(instruction " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                                               \
        return r;                                                                                                                          \
    }
#define FLAGGED_PRODUCT(name, instruction)                                                                                                 \
    FN u32 name(u32 a, u32 b, u32 c) {                                                                                                     \
        u32 r;                                                                                                                             \
        asm volatile(instruction " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));                                                   \
        return r;                                                                                                                          \
    }
FLAGGED(add_cc, "add.cc.u32")
FLAGGED(addc_cc, "addc.cc.u32")
FLAGGED(addc, "addc.u32")
FLAGGED(sub_cc, "sub.cc.u32")
FLAGGED(subc_cc, "subc.cc.u32")
FLAGGED(subc, "subc.u32")
FLAGGED_PRODUCT(mad_lo_cc, "mad.lo.cc.u32")
FLAGGED_PRODUCT(madc_lo_cc, "madc.lo.cc.u32")
FLAGGED_PRODUCT(madc_hi_cc, "madc.hi.cc.u32")
FLAGGED_PRODUCT(madc_hi, "madc.hi.u32")
#undef FLAGGED
#undef FLAGGED_PRODUCT
#else
static thread_local u32 flag;
FN u32 sum(u64 x) {
    flag = (u32)(x >> 32) & 1;
    return (u32)x;
}
FN u32 add_cc(u32 a, u32 b) { return sum((u64)a + b); }
FN u32 addc_cc(u32 a, u32 b) { return sum((u64)a + b + flag); }
FN u32 addc(u32 a, u32 b) { return a + b + flag; }
FN u32 sub_cc(u32 a, u32 b) { return sum((u64)a - b); }
FN u32 subc_cc(u32 a, u32 b) { return sum((u64)a - b - flag); }
FN u32 subc(u32 a, u32 b) { return a - b - flag; }
FN u32 low(u32 a, u32 b) { return a * b; }
FN u32 high(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
FN u32 mad_lo_cc(u32 a, u32 b, u32 c) { return add_cc(low(a, b), c); }
FN u32 madc_lo_cc(u32 a, u32 b, u32 c) { return addc_cc(low(a, b), c); }
FN u32 madc_hi_cc(u32 a, u32 b, u32 c) { return addc_cc(high(a, b), c); }
FN u32 madc_hi(u32 a, u32 b, u32 c) { return addc(high(a, b), c); }
#endif

struct FqModulus {
    static const int N = 12;
    static const u32 INVERSE = 0xfffcfffdu; // -1/p mod 2^32
    static constexpr u32 P[12] = {0xffffaaabu, 0xb9feffffu, 0xb153ffffu, 0x1eabfffeu, 0xf6b0f624u, 0x6730d2a0u,
                                  0xf38512bfu, 0x64774b84u, 0x434bacd7u, 0x4b1ba7b6u, 0x397fe69au, 0x1a0111eau};
    static constexpr u32 ONE[12] = {0x0002fffdu, 0x76090000u, 0xc40c0002u, 0xebf4000bu, 0x53c758bau, 0x5f489857u,
                                    0x70525745u, 0x77ce5853u, 0xa256ec6du, 0x5c071a97u, 0xfa80e493u, 0x15f65ec3u};
};

struct FrModulus {
    static const int N = 8;
    static const u32 INVERSE = 0xffffffffu;
    static constexpr u32 P[8] = {0x00000001u, 0xffffffffu, 0xfffe5bfeu, 0x53bda402u, 0x09a1d805u, 0x3339d808u, 0x299d7d48u, 0x73eda753u};
    static constexpr u32 ONE[8] = {0xfffffffeu, 0x00000001u, 0x00034802u, 0x5884b7fau, 0xecbc4ff5u, 0x998c4fefu, 0xacc5056fu, 0x1824b159u};
};

// acc += the sum of x[j] y 2^(32 j) over even j; leaves the carry in the flag.
template <int N> FN void add_products(u32 *acc, const u32 *x, u32 y) {
    acc[0] = mad_lo_cc(x[0], y, acc[0]);
    acc[1] = madc_hi_cc(x[0], y, acc[1]);
#pragma unroll
    for (int j = 2; j < N; j += 2) {
        acc[j] = madc_lo_cc(x[j], y, acc[j]);
        acc[j + 1] = madc_hi_cc(x[j], y, acc[j + 1]);
    }
}

// An element of a prime field: x 2^(32 N), in limbs from the lowest.
template <class Modulus> struct ALIGNED Prime {
    typedef Modulus M;
    static const int N = M::N;
    u32 v[N];
};
typedef Prime<FqModulus> Fq;
typedef Prime<FrModulus> Fr;

// a + b 2^(32 N) - P if that is not negative, else a; b is 0 or 1.
template <class M> FN Prime<M> reduced(const Prime<M> &a, u32 b) {
    const int N = M::N;
    Prime<M> less;
    less.v[0] = sub_cc(a.v[0], M::P[0]);
#pragma unroll
    for (int i = 1; i < N; i++) less.v[i] = subc_cc(a.v[i], M::P[i]);
    bool is_less = subc(b, 0) == 0;
#pragma unroll
    for (int i = 0; i < N; i++) less.v[i] = is_less ? less.v[i] : a.v[i];
    return less;
}

template <class M> FN Prime<M> operator+(const Prime<M> &a, const Prime<M> &b) {
    const int N = M::N;
    Prime<M> sum;
    sum.v[0] = add_cc(a.v[0], b.v[0]);
#pragma unroll
    for (int i = 1; i < N - 1; i++) sum.v[i] = addc_cc(a.v[i], b.v[i]);
    sum.v[N - 1] = addc(a.v[N - 1], b.v[N - 1]); // twice the modulus has 32 N bits
    return reduced(sum, 0);
}

template <class M> FN Prime<M> operator-(const Prime<M> &a, const Prime<M> &b) {
    const int N = M::N;
    Prime<M> r;
    r.v[0] = sub_cc(a.v[0], b.v[0]);
#pragma unroll
    for (int i = 1; i < N; i++) r.v[i] = subc_cc(a.v[i], b.v[i]);
    u32 mask = subc(0, 0); // all ones if a < b
    r.v[0] = add_cc(r.v[0], M::P[0] & mask);
#pragma unroll
    for (int i = 1; i < N - 1; i++) r.v[i] = addc_cc(r.v[i], M::P[i] & mask);
    r.v[N - 1] = addc(r.v[N - 1], M::P[N - 1] & mask);
    return r;
}

template <class M> FN bool is_zero(const Prime<M> &a) {
    u32 any = a.v[0];
#pragma unroll
    for (int i = 1; i < M::N; i++) any |= a.v[i];
    return any == 0;
}

template <class M> FN void set_zero(Prime<M> &a) {
#pragma unroll
    for (int i = 0; i < M::N; i++) a.v[i] = 0;
}

template <class M> FN void set_one(Prime<M> &a) {
#pragma unroll
    for (int i = 0; i < M::N; i++) a.v[i] = M::ONE[i];
}

// One row of a Montgomery product. The sum so far is even + 2^32 odd; limb 0 of even was made 0 by the row before, with the roles of the
// two exchanged. So even takes over what is left of limb 1, odd loses two limbs, and all products are added where a carry runs through
// limbs of one of the two only.
template <class M, bool FIRST> FN void row(u32 *even, u32 *odd, const u32 *x, u32 y) {
    const int N = M::N;
    if (FIRST) {
#pragma unroll
        for (int j = 0; j < N; j++) even[j] = odd[j] = 0;
        add_products<N>(odd, x + 1, y);
        add_products<N>(even, x, y);
    } else {
        even[0] = add_cc(even[0], odd[1]);
#pragma unroll
        for (int j = 0; j < N - 2; j += 2) {
            odd[j] = madc_lo_cc(x[j + 1], y, odd[j + 2]);
            odd[j + 1] = madc_hi_cc(x[j + 1], y, odd[j + 3]);
        }
        odd[N - 2] = madc_lo_cc(x[N - 1], y, 0);
        odd[N - 1] = madc_hi(x[N - 1], y, 0);
        add_products<N>(even, x, y);
        odd[N - 1] = addc(odd[N - 1], 0);
    }
    u32 factor = even[0] * M::INVERSE;
    add_products<N>(odd, M::P + 1, factor);
    add_products<N>(even, M::P, factor);
    odd[N - 1] = addc(odd[N - 1], 0);
}

template <class M> FN Prime<M> product(const Prime<M> &a, const Prime<M> &b) {
    const int N = M::N;
    u32 even[N], odd[N];
    row<M, true>(even, odd, a.v, b.v[0]);
    row<M, false>(odd, even, a.v, b.v[1]);
#pragma unroll
    for (int i = 2; i < N; i += 2) {
        row<M, false>(even, odd, a.v, b.v[i]);
        row<M, false>(odd, even, a.v, b.v[i + 1]);
    }
    Prime<M> r;
    r.v[0] = add_cc(even[0], odd[1]);
#pragma unroll
    for (int i = 1; i < N - 1; i++) r.v[i] = addc_cc(even[i], odd[i + 1]);
    r.v[N - 1] = addc(even[N - 1], 0);
    return reduced(r, 0);
}

FN Fr operator*(const Fr &a, const Fr &b) { return product(a, b); }

#ifdef INLINE_PRODUCTS
FN Fq operator*(const Fq &a, const Fq &b) { return product(a, b); }
#else
// Limb by limb, since an argument that is a structure goes through memory.
#define LIMBS(x) u32 x##0, u32 x##1, u32 x##2, u32 x##3, u32 x##4, u32 x##5, u32 x##6, u32 x##7, u32 x##8, u32 x##9, u32 x##10, u32 x##11
#define LIST(x) {x##0, x##1, x##2, x##3, x##4, x##5, x##6, x##7, x##8, x##9, x##10, x##11}
#define EACH(x) x.v[0], x.v[1], x.v[2], x.v[3], x.v[4], x.v[5], x.v[6], x.v[7], x.v[8], x.v[9], x.v[10], x.v[11]
CALLED Fq called_product(LIMBS(a), LIMBS(b)) {
    Fq a = {LIST(a)}, b = {LIST(b)};
    return product(a, b);
}
FN Fq operator*(const Fq &a, const Fq &b) { return called_product(EACH(a), EACH(b)); }
#undef LIMBS
#undef LIST
#undef EACH
#endif

template <class M> FN Prime<M> square(const Prime<M> &a) { return a * a; }

// x of x 2^(32 N).
template <class M> FN Prime<M> from_montgomery(const Prime<M> &a) {
    Prime<M> one;
    set_zero(one);
    one.v[0] = 1;
    return a * one;
}

// 1/x, or 0 of 0: x^(p - 2).
FN Fq inverse(const Fq &x) {
    Fq r;
    set_one(r);
#pragma unroll 1
    for (int limb = 11; limb >= 0; limb--) {
        u32 exponent = FqModulus::P[limb] - (limb == 0 ? 2 : 0);
#pragma unroll 1
        for (u32 bit = 0x80000000u; bit != 0; bit >>= 1) {
            r = square(r);
            if (exponent & bit) r = r * x;
        }
    }
    return r;
}

// c0 + c1 u with u^2 = -1.
struct ALIGNED Fq2 {
    Fq c0, c1;
};
FN Fq2 operator+(const Fq2 &a, const Fq2 &b) { return {a.c0 + b.c0, a.c1 + b.c1}; }
FN Fq2 operator-(const Fq2 &a, const Fq2 &b) { return {a.c0 - b.c0, a.c1 - b.c1}; }
FN Fq2 operator*(const Fq2 &a, const Fq2 &b) {
    Fq x = a.c0 * b.c0, y = a.c1 * b.c1;
    Fq both = (a.c0 + a.c1) * (b.c0 + b.c1);
    return {x - y, both - x - y};
}
FN Fq2 square(const Fq2 &a) {
    Fq half = a.c0 * a.c1;
    return {(a.c0 + a.c1) * (a.c0 - a.c1), half + half};
}
FN bool is_zero(const Fq2 &a) { return is_zero(a.c0) && is_zero(a.c1); }
FN void set_zero(Fq2 &a) {
    set_zero(a.c0);
    set_zero(a.c1);
}
FN void set_one(Fq2 &a) {
    set_one(a.c0);
    set_zero(a.c1);
}
FN Fq2 inverse(const Fq2 &a) {
    Fq zero, norm = inverse(square(a.c0) + square(a.c1));
    set_zero(zero);
    return {a.c0 * norm, (zero - a.c1) * norm};
}
