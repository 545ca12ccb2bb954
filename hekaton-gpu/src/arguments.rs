//! The arguments of kernels, as `kernels/` declares them.

use bytemuck::{Pod, Zeroable};

/// Declares arguments: addresses first, then numbers, padded to 8 bytes.
macro_rules! arguments {
    ($($name:ident { $($address:ident),*; $($number:ident),* $(; $pad:literal)? })*) => {$(
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
        pub(crate) struct $name {
            $(pub(crate) $address: u64,)*
            $(pub(crate) $number: u32,)*
            $(pub(crate) padding: [u32; $pad],)?
        }
    )*};
}

arguments! {
    Elements { a, b, result; count, operation }
    Digits { scalars, digits, counts; points, scalar_count, windows, bits, wide, shared }
    Scan { counts, totals, offsets, copy; count, length }
    Sort { digits, cursors, sorted; points, scalar_count, windows, bits, shared; 1 }
    Round { counts, offsets, piece_offsets, state, pieces, order; buckets, piece_count, length; 1 }
    Sum { points, sorted, pieces, order, sums, buckets; piece_count; 1 }
    Multiples { points; count, windows, bits, wide }
    Weight { buckets, sums; segments, size, each; 1 }
    Total { sums, totals; each; 1 }
    Transform { data, roots, factors; count, period, bits, top, layers; 1 }
    Thirds { data, powers; third, count }
    Product { a, b; count; 1 }
    Rows { starts, entries, coefficients, assignments, products; rows, variables, size, count }
    Compare { starts, entries, coefficients, assignments, a, b, unsatisfied; rows, variables, size, count }
    Select { assignments, indices, values; variables, first, each, count }
}
