// Fourier transforms over Fr of 2^k and 3 * 2^k elements, in place, of several vectors one after the other.
//
// As on the CPU, the inverse transform decimates in frequency and leaves coefficients in bit-reversed order (with 3 * 2^k elements: by their
// index modulo 3, and bit-reversed in each third), from which the forward one decimates in time. A kernel does several layers of butterflies
// on tiles in shared memory.
#pragma once
#include "field.h"

const u32 TILE = 1024, TRANSFORM_THREADS = 256;

struct TransformArguments {
    // The elements, the powers of a root of unity of order 2^bits (half of them), and what each element is multiplied by first, or nothing.
    u64 data, roots, factors;
    // The number of elements in all vectors, and how many factors there are.
    u32 count, period;
    // Binary logarithms: of a vector's size; of the distance between the two elements of the widest butterflies of this pass, plus 1; and
    // the number of layers.
    u32 bits, top, layers;
};

// A tile has 2^layers rows, as far apart as the elements of the closest butterflies, and columns that are close together.
template <bool INVERSE> FN void transform(const TransformArguments &k) {
    SHARED(Fr, tile, TILE);
    Fr *data = (Fr *)k.data;
    const Fr *roots = (const Fr *)k.roots, *factors = (const Fr *)k.factors;
    const u32 low = k.top - k.layers, columns = TILE >> k.layers, first = block_index() * columns, others = k.count >> k.layers;
    auto index = [&](u32 row, u32 column) INLINE {
        u32 other = first + column;
        return (other >> low << k.top) | (row << low) | (other & ((1u << low) - 1));
    };
    // Neighbors in memory are read by neighbors among the threads.
    auto place = [&](u32 i, u32 &row, u32 &column) INLINE {
        if (low >= 3) {
            column = i % columns;
            row = i / columns;
        } else {
            row = i & ((1u << k.layers) - 1);
            column = i >> k.layers;
        }
        return first + column < others;
    };
    phase([&](u32 t) INLINE {
        for (u32 i = t; i < TILE; i += TRANSFORM_THREADS) {
            u32 row, column;
            if (!place(i, row, column)) continue;
            u32 at = index(row, column);
            Fr x = data[at];
            if (factors) x = x * factors[at % k.period];
            tile[row * columns + column] = x;
        }
    });
    for (u32 n = 0; n < k.layers; n++) {
        // Rows at a distance of 2^layer, elements at one of 2^(low + layer).
        u32 layer = INVERSE ? k.layers - 1 - n : n;
        phase([&](u32 t) INLINE {
            for (u32 i = t; i < TILE / 2; i += TRANSFORM_THREADS) {
                u32 column = i % columns, pair = i / columns, j = pair & ((1u << layer) - 1);
                if (first + column >= others) continue;
                u32 row = (pair >> layer << (layer + 1)) + j;
                u32 exponent = (index(j, column) & ((1u << (low + layer)) - 1)) << (k.bits - 1 - low - layer);
                Fr *x = tile + row * columns + column, *y = x + (columns << layer);
                Fr a = *x, b = *y;
                if (INVERSE) {
                    *x = a + b;
                    // w^-e = -w^(N/2 - e)
                    *y = exponent == 0 ? a - b : (b - a) * roots[(1u << (k.bits - 1)) - exponent];
                } else {
                    b = b * roots[exponent];
                    *x = a + b;
                    *y = a - b;
                }
            }
        });
    }
    phase([&](u32 t) INLINE {
        for (u32 i = t; i < TILE; i += TRANSFORM_THREADS) {
            u32 row, column;
            if (place(i, row, column)) data[index(row, column)] = tile[row * columns + column];
        }
    });
}
KERNEL(transform_inverse, TransformArguments, TRANSFORM_THREADS) { transform<true>(k); }
KERNEL(transform_forward, TransformArguments, TRANSFORM_THREADS) { transform<false>(k); }

struct ThirdsArguments {
    // The elements, and 2 third powers of a root w of unity of order 3 third; third is even.
    u64 data, powers;
    // A third of a vector's elements, and that of all vectors.
    u32 third, count;
};

// One layer of radix 3 of inverse transforms: x[i + third t] to y_r[i] = w^(-i r) (the sum over t of w^(-third t r) x[i + third t]).
KERNEL(thirds_inverse, ThirdsArguments, 256) {
    const Fr *powers = (const Fr *)k.powers;
    each(k.count, [&](u32 n) INLINE {
        u32 i = n % k.third;
        Fr *x = (Fr *)k.data + (u64)(n / k.third) * 3 * k.third + i;
        Fr a = x[0], b = x[k.third], c = x[2 * k.third];
        // With v^2 + v + 1 = 0, the root of the inverse is v^2: a + v^2 b + v c = a - b - v (b - c).
        Fr d = (b - c) * powers[k.third];
        Fr y = a - b - d, z = a - c + d;
        x[0] = a + b + c;
        if (i == 0) {
            x[k.third] = y;
            x[2 * k.third] = z;
            return;
        }
        // w^-e = -w^(3 third / 2 - e) = w^(3 third - e)
        Fr zero;
        set_zero(zero);
        u32 half = k.third / 2 * 3;
        x[k.third] = (zero - y) * powers[half - i];
        x[2 * k.third] = 2 * i > k.third ? z * powers[2 * half - 2 * i] : (zero - z) * powers[half - 2 * i];
    });
}

// One layer of radix 3 of forward transforms: y_r[i] to x[i + third t] = the sum over r of w^(third t r) w^(i r) y_r[i].
KERNEL(thirds_forward, ThirdsArguments, 256) {
    const Fr *powers = (const Fr *)k.powers;
    each(k.count, [&](u32 n) INLINE {
        u32 i = n % k.third;
        Fr *x = (Fr *)k.data + (u64)(n / k.third) * 3 * k.third + i;
        Fr a = x[0], b = x[k.third] * powers[i], c = x[2 * k.third] * powers[2 * i];
        Fr d = (b - c) * powers[k.third];
        x[0] = a + b + c;
        x[k.third] = a - c + d;
        x[2 * k.third] = a - b - d;
    });
}

struct ProductArguments {
    u64 a, b;
    u32 count;
};

// a = a b, element by element.
KERNEL(multiply, ProductArguments, 256) {
    each(k.count, [&](u32 i) INLINE { ((Fr *)k.a)[i] = ((const Fr *)k.a)[i] * ((const Fr *)k.b)[i]; });
}
