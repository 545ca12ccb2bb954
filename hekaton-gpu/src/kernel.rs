//! The kernels by name.

/// Lists all kernels, with the threads of a block (`__launch_bounds__` in their source).
macro_rules! kernels {
    ($($(#[$doc:meta])* $kernel:ident = $name:ident, $threads:literal;)*) => {
        /// A kernel of `kernels/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum Kernel { $($kernel),* }

        impl Kernel {
            /// All kernels.
            pub const ALL: &[Self] = &[$(Self::$kernel),*];

            /// Returns the name in the PTX.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kernel => stringify!($name)),* }
            }

            /// Returns the number of threads of a block.
            pub fn threads(self) -> u32 {
                match self { $(Self::$kernel => $threads),* }
            }
        }

        #[cfg(feature = "host")]
        pub(crate) mod host {
            use super::Kernel;
            use std::ffi::c_void;

            pub(crate) type Function = unsafe extern "C" fn(*const c_void, u32, u32);

            unsafe extern "C" { $(fn $name(arguments: *const c_void, blocks: u32, threads: u32);)* }

            /// Returns a kernel's function for the host.
            pub(crate) fn function(kernel: Kernel) -> Function {
                match kernel { $(Kernel::$kernel => $name),* }
            }
        }
    };
}

kernels! {
    ElementsFq = hekaton_elements_fq, 256;
    ElementsFr = hekaton_elements_fr, 256;
    ElementsFq2 = hekaton_elements_fq2, 128;
    ProductsFq = hekaton_products_fq, 256;
    ProductsFr = hekaton_products_fr, 256;
    PointsG1 = hekaton_points_g1, 128;
    PointsG2 = hekaton_points_g2, 128;
    Digits = hekaton_digits, 256;
    ScanBlocks = hekaton_scan_blocks, 256;
    ScanTotals = hekaton_scan_totals, 256;
    ScanOffsets = hekaton_scan_offsets, 256;
    Sort = hekaton_sort, 256;
    Largest = hekaton_largest, 256;
    Cut = hekaton_cut, 256;
    Places = hekaton_places, 32;
    Order = hekaton_order, 256;
    NextCounts = hekaton_next_counts, 256;
    SumPointsG1 = hekaton_sum_points_g1, 128;
    SumPointsG2 = hekaton_sum_points_g2, 128;
    SumSumsG1 = hekaton_sum_sums_g1, 128;
    SumSumsG2 = hekaton_sum_sums_g2, 128;
    MultiplesG1 = hekaton_multiples_g1, 128;
    MultiplesG2 = hekaton_multiples_g2, 128;
    WeighG1 = hekaton_weigh_g1, 128;
    WeighG2 = hekaton_weigh_g2, 128;
    TotalG1 = hekaton_total_g1, 128;
    TotalG2 = hekaton_total_g2, 64;
    TransformInverse = hekaton_transform_inverse, 256;
    TransformForward = hekaton_transform_forward, 256;
    ThirdsInverse = hekaton_thirds_inverse, 256;
    ThirdsForward = hekaton_thirds_forward, 256;
    Multiply = hekaton_multiply, 256;
    Rows = hekaton_rows, 256;
    Compare = hekaton_compare, 256;
    Select = hekaton_select, 256;
}
