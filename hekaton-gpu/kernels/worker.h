// What a worker does with assignments of one type besides transforms and multi-scalar multiplications, for several assignments at once.
#pragma once
#include "field.h"

// A sparse matrix by rows. An entry is a variable and the index of a coefficient; the first two coefficients are 1 and -1.
struct Matrix {
    u64 starts, entries, coefficients;
};

struct Entry {
    u32 variable, coefficient;
};

// The product of a row with an assignment.
FN Fr row_product(const Matrix &matrix, u32 row, const Fr *z) {
    const u32 *starts = (const u32 *)matrix.starts;
    const Entry *entries = (const Entry *)matrix.entries;
    const Fr *coefficients = (const Fr *)matrix.coefficients;
    Fr sum;
    set_zero(sum);
    for (u32 n = starts[row]; n < starts[row + 1]; n++) {
        Entry entry = entries[n];
        Fr value = z[entry.variable];
        if (is_zero(value)) continue;
        if (entry.coefficient > 1) value = value * coefficients[entry.coefficient];
        sum = entry.coefficient == 1 ? sum - value : sum + value;
    }
    return sum;
}

struct RowsArguments {
    Matrix matrix;
    u64 assignments, products;
    // The number of rows, of variables, of elements of the domain, and of the latter for all assignments.
    u32 rows, variables, size, count;
};

// The products of all rows, and zeros up to the size of the domain.
KERNEL(rows, RowsArguments, 256) {
    each(k.count, [&](u32 n) INLINE {
        u32 i = n % k.size;
        Fr product;
        set_zero(product);
        if (i < k.rows) product = row_product(k.matrix, i, (const Fr *)k.assignments + (u64)(n / k.size) * k.variables);
        ((Fr *)k.products)[n] = product;
    });
}

struct CompareArguments {
    Matrix matrix;
    u64 assignments, a, b, unsatisfied;
    u32 rows, variables, size, count;
};

// The first row of each assignment where a b is not the product of the row of C.
KERNEL(compare, CompareArguments, 256) {
    each(k.count, [&](u32 n) INLINE {
        u32 i = n % k.size, assignment = n / k.size;
        if (i >= k.rows) return;
        Fr c = row_product(k.matrix, i, (const Fr *)k.assignments + (u64)assignment * k.variables);
        Fr difference = ((const Fr *)k.a)[n] * ((const Fr *)k.b)[n] - c;
        if (!is_zero(difference)) atomic_min((u32 *)k.unsatisfied + assignment, i);
    });
}

struct SelectArguments {
    // Indices of variables, or nothing: then those from `first` on.
    u64 assignments, indices, values;
    u32 variables, first, each, count;
};

// The values of some variables of each assignment.
KERNEL(select, SelectArguments, 256) {
    const u32 *indices = (const u32 *)k.indices;
    each(k.count, [&](u32 n) INLINE {
        u32 i = n % k.each, variable = indices ? indices[i] : k.first + i;
        ((Fr *)k.values)[n] = ((const Fr *)k.assignments)[(u64)(n / k.each) * k.variables + variable];
    });
}
