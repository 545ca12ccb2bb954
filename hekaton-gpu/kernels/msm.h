// Multi-scalar multiplications of a batch of scalar vectors with the same bases, by buckets.
//
// Where there is memory, the multiples of all points for all windows are there. Then all windows share the buckets of one.
//
// Scalars are cut into signed windows (digits). For each vector and window there is a bucket for each absolute value of a digit. The indices
// of the points are sorted by bucket, by counting. What is in a bucket is cut into pieces of similar lengths, at most `length`, each of which
// one thread adds up; longer ones come first, so that the threads of a warp have the same work. As long as a bucket has several pieces,
// their sums are added up in the same way: no distribution of scalars gives a thread more than `length` additions a round.
#pragma once
#include "curve.h"

const u32 NEGATIVE = 0x80000000u;

struct DigitsArguments {
    u64 scalars, digits, counts;
    // The number of points, of scalars (in all vectors), of windows, of bits of a wide window, and of wide windows: the lowest ones. The
    // others have one bit less.
    u32 points, scalar_count, windows, bits, wide;
    // Whether the windows of a vector share buckets.
    u32 shared;
};

FN u32 window_bits(u32 window, u32 bits, u32 wide) { return window < wide ? bits : bits - 1; }

// The bucket of a digit that is not zero.
template <class Arguments> FN u32 bucket_of(const Arguments &k, u32 digit, u32 vector, u32 window) {
    u32 row = k.shared ? vector : vector * k.windows + window;
    return (row << (k.bits - 1)) + (digit & ~NEGATIVE) - 1;
}

// Cuts scalars into digits, and counts what falls into each bucket.
KERNEL(digits, DigitsArguments, 256) {
    const Fr *scalars = (const Fr *)k.scalars;
    u32 *digits = (u32 *)k.digits, *counts = (u32 *)k.counts;
    each(k.scalar_count, [&](u32 i) INLINE {
        Fr x = from_montgomery(scalars[i]), zero;
        set_zero(zero);
        // Of x and -x the smaller one has 254 bits, and few where x is small or its negative is.
        Fr minus = zero - x;
        u32 sign = 0;
        sub_cc(minus.v[0], x.v[0]);
#pragma unroll
        for (int j = 1; j < 8; j++) subc_cc(minus.v[j], x.v[j]);
        if (subc(0, 0) != 0) {
            x = minus;
            sign = NEGATIVE;
        }
        u32 vector = i / k.points, carry = 0;
        u64 buffer = 0;
        u32 filled = 0, limb = 0;
        for (u32 window = 0; window < k.windows; window++) {
            u32 bits = window_bits(window, k.bits, k.wide);
            if (filled < bits && limb < 8) {
                u32 next = x.v[0];
#pragma unroll
                for (u32 j = 1; j < 8; j++) next = limb == j ? x.v[j] : next;
                buffer |= (u64)next << filled;
                filled += 32;
                limb++;
            }
            u32 digit = ((u32)buffer & ((1u << bits) - 1)) + carry, flipped = sign;
            buffer >>= bits;
            filled = filled < bits ? 0 : filled - bits;
            carry = digit > 1u << (bits - 1);
            if (carry) {
                digit = (1u << bits) - digit;
                flipped ^= NEGATIVE;
            }
            if (digit != 0) {
                atomic_add(counts + bucket_of(k, digit, vector, window), 1);
                digit |= flipped;
            }
            digits[(u64)window * k.scalar_count + i] = digit;
        }
    });
}

// Sums of all counts before each, where a count stands for the pieces of `length` that it makes.
struct ScanArguments {
    u64 counts, totals, offsets, copy;
    u32 count, length;
};

const u32 SCAN_THREADS = 256, SCAN_EACH = 8, SCAN_BLOCK = SCAN_THREADS * SCAN_EACH;

FN u32 pieces(u32 count, u32 length) { return count / length + (count % length != 0); }

// Turns values in shared memory into sums up to and including each, by threads of one block.
FN void scan_shared(u32 *values) {
    SHARED(u32, other, SCAN_THREADS);
    u32 *from = values, *to = other;
    for (u32 step = 1; step < SCAN_THREADS; step *= 2) {
        phase([&](u32 t) INLINE { to[t] = from[t] + (t >= step ? from[t - step] : 0); });
        u32 *swap = from;
        from = to;
        to = swap;
    }
    static_assert(SCAN_THREADS == 256, "after 8 steps the sums are where the values were");
}

FN u32 scan_sum(const ScanArguments &k, u32 t) {
    const u32 *counts = (const u32 *)k.counts;
    u32 sum = 0;
    for (u32 j = 0; j < SCAN_EACH; j++) {
        u32 i = block_index() * SCAN_BLOCK + t * SCAN_EACH + j;
        if (i < k.count) sum += pieces(counts[i], k.length);
    }
    return sum;
}

// The sum of each block.
KERNEL(scan_blocks, ScanArguments, SCAN_THREADS) {
    SHARED(u32, sums, SCAN_THREADS);
    phase([&](u32 t) INLINE { sums[t] = scan_sum(k, t); });
    scan_shared(sums);
    phase([&](u32 t) INLINE {
        if (t == SCAN_THREADS - 1) ((u32 *)k.totals)[block_index()] = sums[t];
    });
}

// The sums before each block, by one block, and of all of them after the last.
KERNEL(scan_totals, ScanArguments, SCAN_THREADS) {
    SHARED(u32, sums, SCAN_THREADS);
    u32 *totals = (u32 *)k.totals;
    u32 blocks = pieces(k.count, SCAN_BLOCK), share = pieces(blocks, SCAN_THREADS);
    phase([&](u32 t) INLINE {
        sums[t] = 0;
        for (u32 i = t * share; i < (t + 1) * share && i < blocks; i++) sums[t] += totals[i];
    });
    scan_shared(sums);
    phase([&](u32 t) INLINE {
        u32 before = t == 0 ? 0 : sums[t - 1];
        for (u32 i = t * share; i < (t + 1) * share && i < blocks; i++) {
            u32 total = totals[i];
            totals[i] = before;
            before += total;
        }
        if (t == SCAN_THREADS - 1) totals[blocks] = sums[t];
    });
}

// The sums before each count, and of all after the last.
KERNEL(scan_offsets, ScanArguments, SCAN_THREADS) {
    SHARED(u32, sums, SCAN_THREADS);
    const u32 *counts = (const u32 *)k.counts, *totals = (const u32 *)k.totals;
    u32 *offsets = (u32 *)k.offsets, *copy = (u32 *)k.copy;
    phase([&](u32 t) INLINE { sums[t] = scan_sum(k, t); });
    scan_shared(sums);
    phase([&](u32 t) INLINE {
        u32 before = totals[block_index()] + (t == 0 ? 0 : sums[t - 1]);
        for (u32 j = 0; j < SCAN_EACH; j++) {
            u32 i = block_index() * SCAN_BLOCK + t * SCAN_EACH + j;
            if (i >= k.count) break;
            offsets[i] = before;
            if (copy) copy[i] = before;
            before += pieces(counts[i], k.length);
            if (i == k.count - 1) offsets[k.count] = before;
        }
    });
}

struct SortArguments {
    u64 digits, cursors, sorted;
    u32 points, scalar_count, windows, bits, shared;
};

// Writes the index of each point, with the sign of its digit, to its bucket's place. The order in a bucket does not matter.
KERNEL(sort, SortArguments, 256) {
    const u32 *digits = (const u32 *)k.digits;
    u32 *cursors = (u32 *)k.cursors, *sorted = (u32 *)k.sorted;
    each(k.scalar_count, [&](u32 i) INLINE {
        u32 vector = i / k.points, point = i - vector * k.points;
        for (u32 window = 0; window < k.windows; window++) {
            u32 digit = digits[(u64)window * k.scalar_count + i];
            if (digit == 0) continue;
            u32 at = atomic_add(cursors + bucket_of(k, digit, vector, window), 1);
            sorted[at] = (k.shared ? window * k.points + point : point) | (digit & NEGATIVE);
        }
    });
}

struct Piece {
    u32 start, length, bucket, is_whole;
};

// A round of sums. `state` has the largest count (0), and from 1 on the numbers of pieces of each length, then their places in the order.
struct RoundArguments {
    u64 counts, offsets, piece_offsets, state, pieces, order;
    u32 buckets, piece_count, length;
};

// The largest count that is above `length`.
KERNEL(largest, RoundArguments, 256) {
    const u32 *counts = (const u32 *)k.counts;
    each(k.buckets, [&](u32 i) INLINE {
        if (counts[i] > k.length) atomic_max((u32 *)k.state, counts[i]);
    });
}

// Cuts the contents of buckets into pieces.
KERNEL(cut, RoundArguments, 256) {
    const u32 *counts = (const u32 *)k.counts, *offsets = (const u32 *)k.offsets, *firsts = (const u32 *)k.piece_offsets;
    u32 *lengths = (u32 *)k.state + 1;
    each(k.piece_count, [&](u32 i) INLINE {
        // The last bucket whose first piece is not after this one.
        u32 low = 0, high = k.buckets;
        while (high - low > 1) {
            u32 middle = low + (high - low) / 2;
            if (firsts[middle] <= i) low = middle;
            else high = middle;
        }
        u32 count = counts[low], all = pieces(count, k.length), n = i - firsts[low];
        u32 start = (u32)((u64)count * n / all), end = (u32)((u64)count * (n + 1) / all);
        ((Piece *)k.pieces)[i] = {offsets[low] + start, end - start, low, all == 1};
        atomic_add(lengths + (end - start), 1);
    });
}

// Turns the numbers of pieces of each length into places: the longest ones come first.
KERNEL(places, RoundArguments, 32) {
    u32 *lengths = (u32 *)k.state + 1;
    each(1, [&](u32) INLINE {
        u32 before = 0;
        for (u32 length = k.length; length > 0; length--) {
            u32 count = lengths[length];
            lengths[length] = before;
            before += count;
        }
    });
}

KERNEL(order, RoundArguments, 256) {
    u32 *lengths = (u32 *)k.state + 1;
    each(k.piece_count, [&](u32 i) INLINE {
        u32 length = ((const Piece *)k.pieces)[i].length;
        ((u32 *)k.order)[atomic_add(lengths + length, 1)] = i;
    });
}

// After a round: buckets that are not done have as many sums as they had pieces.
KERNEL(next_counts, RoundArguments, 256) {
    u32 *counts = (u32 *)k.counts;
    each(k.buckets, [&](u32 i) INLINE {
        u32 all = pieces(counts[i], k.length);
        counts[i] = all > 1 ? all : 0;
    });
}

struct SumArguments {
    // Points and the sorted indices, or sums of the round before and nothing.
    u64 points, sorted, pieces, order, sums, buckets;
    u32 piece_count;
};

template <class F> FN void write(const SumArguments &k, u32 i, const Piece &piece, const Point<F> &sum) {
    if (piece.is_whole) ((Point<F> *)k.buckets)[piece.bucket] = sum;
    else ((Point<F> *)k.sums)[i] = sum;
}

// Adds up the points of each piece.
template <class F> FN void sum_points(const SumArguments &k) {
    const Affine<F> *points = (const Affine<F> *)k.points;
    const u32 *sorted = (const u32 *)k.sorted;
    each(k.piece_count, [&](u32 n) INLINE {
        u32 i = ((const u32 *)k.order)[n];
        Piece piece = ((const Piece *)k.pieces)[i];
        Point<F> sum;
        set_infinite(sum);
#pragma unroll 1
        for (u32 j = 0; j < piece.length; j++) {
            u32 index = sorted[piece.start + j];
            Affine<F> point = points[index & ~NEGATIVE];
            if (index & NEGATIVE) negate(point);
            add(sum, point);
        }
        write(k, i, piece, sum);
    });
}
KERNEL(sum_points_g1, SumArguments, 128) { sum_points<Fq>(k); }
KERNEL(sum_points_g2, SumArguments, 128) { sum_points<Fq2>(k); }

// Adds up the sums of each piece.
template <class F> FN void sum_sums(const SumArguments &k) {
    const Point<F> *points = (const Point<F> *)k.points;
    each(k.piece_count, [&](u32 n) INLINE {
        u32 i = ((const u32 *)k.order)[n];
        Piece piece = ((const Piece *)k.pieces)[i];
        Point<F> sum = points[piece.start];
#pragma unroll 1
        for (u32 j = 1; j < piece.length; j++) {
            Point<F> point = points[piece.start + j];
            add(sum, point);
        }
        write(k, i, piece, sum);
    });
}
KERNEL(sum_sums_g1, SumArguments, 128) { sum_sums<Fq>(k); }
KERNEL(sum_sums_g2, SumArguments, 128) { sum_sums<Fq2>(k); }

struct MultiplesArguments {
    u64 points;
    u32 count, windows, bits, wide;
};

// After `count` points, writes their multiples for each further window.
template <class F> FN void multiples(const MultiplesArguments &k) {
    Affine<F> *points = (Affine<F> *)k.points;
    each(k.count, [&](u32 i) INLINE {
        Affine<F> point = points[i];
#pragma unroll 1
        for (u32 window = 1; window < k.windows; window++) {
            Point<F> multiple;
            set_infinite(multiple);
            add(multiple, point);
#pragma unroll 1
            for (u32 bit = window_bits(window - 1, k.bits, k.wide); bit > 0; bit--) double_apart(&multiple);
            point = affine(multiple);
            points[(u64)window * k.count + i] = point;
        }
    });
}
KERNEL(multiples_g1, MultiplesArguments, 128) { multiples<Fq>(k); }
KERNEL(multiples_g2, MultiplesArguments, 128) { multiples<Fq2>(k); }

struct WeightArguments {
    u64 buckets, sums;
    // The number of segments in all windows, the buckets of a segment, and the segments of a window.
    u32 segments, size, each;
};

// The sum over a segment of buckets, each times the absolute value of its digit.
template <class F> FN void weigh(const WeightArguments &k) {
    each(k.segments, [&](u32 i) INLINE {
        const Point<F> *buckets = (const Point<F> *)k.buckets + (u64)i * k.size;
        Point<F> all, sum;
        set_infinite(all);
        set_infinite(sum);
#pragma unroll 1
        for (u32 j = k.size; j > 0; j--) {
            Point<F> bucket = buckets[j - 1];
            add(all, bucket);
            add(sum, all);
        }
        // All digits are larger than `before` by what was counted.
        u32 before = i % k.each * k.size;
        Point<F> product;
        set_infinite(product);
#pragma unroll 1
        for (u32 bit = before == 0 ? 0 : NEGATIVE >> __builtin_clz(before); bit != 0; bit >>= 1) {
            double_apart(&product);
            if (before & bit) add(product, all);
        }
        add(sum, product);
        ((Point<F> *)k.sums)[i] = sum;
    });
}
KERNEL(weigh_g1, WeightArguments, 128) { weigh<Fq>(k); }
KERNEL(weigh_g2, WeightArguments, 128) { weigh<Fq2>(k); }

struct TotalArguments {
    u64 sums, totals;
    u32 each;
};

// Adds up `each` sums, in a block for each total.
template <class F, u32 THREADS> FN void total(const TotalArguments &k) {
    SHARED(Point<F>, shared, THREADS);
    const Point<F> *sums = (const Point<F> *)k.sums + (u64)block_index() * k.each;
    phase([&](u32 t) INLINE {
        Point<F> sum;
        set_infinite(sum);
#pragma unroll 1
        for (u32 i = t; i < k.each; i += THREADS) {
            Point<F> point = sums[i];
            add(sum, point);
        }
        shared[t] = sum;
    });
#pragma unroll 1
    for (u32 step = THREADS / 2; step > 0; step /= 2) {
        phase([&](u32 t) INLINE {
            if (t < step) {
                Point<F> sum = shared[t], other = shared[t + step];
                add(sum, other);
                shared[t] = sum;
            }
        });
    }
    phase([&](u32 t) INLINE {
        if (t == 0) ((Point<F> *)k.totals)[block_index()] = shared[0];
    });
}
KERNEL(total_g1, TotalArguments, 128) { total<Fq, 128>(k); }
KERNEL(total_g2, TotalArguments, 64) { total<Fq2, 64>(k); }
