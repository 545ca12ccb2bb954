// Kernels that do one operation an element: for tests against the CPU, and for measurements.
#pragma once
#include "curve.h"

enum Operation { ADD, SUBTRACT, MULTIPLY, SQUARE };

struct ElementsArguments {
    u64 a, b, result;
    u32 count, operation;
};

template <class F> FN void elements(const ElementsArguments &k) {
    const F *a = (const F *)k.a, *b = (const F *)k.b;
    F *result = (F *)k.result;
    each(k.count, [&](u32 i) INLINE {
        F x = a[i], y = b[i];
        switch (k.operation) {
        case ADD: x = x + y; break;
        case SUBTRACT: x = x - y; break;
        case MULTIPLY: x = x * y; break;
        default: x = square(x);
        }
        result[i] = x;
    });
}
KERNEL(elements_fq, ElementsArguments, 256) { elements<Fq>(k); }
KERNEL(elements_fr, ElementsArguments, 256) { elements<Fr>(k); }
KERNEL(elements_fq2, ElementsArguments, 128) { elements<Fq2>(k); }

// Replaces each element by its product with b, `operation` times: the speed of products alone.
template <class F> FN void products(const ElementsArguments &k) {
    const F *a = (const F *)k.a, *b = (const F *)k.b;
    F *result = (F *)k.result;
    each(k.count, [&](u32 i) INLINE {
        F x = a[i], y = b[i];
#pragma unroll 1
        for (u32 n = 0; n < k.operation; n++) x = x * y;
        result[i] = x;
    });
}
KERNEL(products_fq, ElementsArguments, 256) { products<Fq>(k); }
KERNEL(products_fr, ElementsArguments, 256) { products<Fr>(k); }

// result[i] = 2 a[i] + b[i] + 2 a[i] in all the ways that there are: mixed additions, doublings and additions.
template <class F> FN void points(const ElementsArguments &k) {
    const Affine<F> *a = (const Affine<F> *)k.a, *b = (const Affine<F> *)k.b;
    Point<F> *result = (Point<F> *)k.result;
    each(k.count, [&](u32 i) INLINE {
        Point<F> x, y;
        set_infinite(x);
        add(x, a[i]);
        y = doubled(x);
        add(x, b[i]);
        add(x, a[i]);
        add(x, y);
        result[i] = x;
    });
}
KERNEL(points_g1, ElementsArguments, 128) { points<Fq>(k); }
KERNEL(points_g2, ElementsArguments, 128) { points<Fq2>(k); }
