//! The relations that keys must satisfy, each with the name that errors have.

use std::fmt;

macro_rules! relations {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal,)*) => {
        /// A relation between elements of keys (spec: soundness#keys-verify).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Relation {
            $($(#[doc = $doc])* $name,)*
        }

        impl Relation {
            /// All relations.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }

        impl fmt::Display for Relation {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text,)* })
            }
        }
    };
}

relations! {
    /// The proving keys of a family have its types.
    Types = "the proving keys are those of the family's types",
    /// Instances, types and sizes are those of the layout that the relations are computed from.
    Layout = "the keys have the instances, types, slots, parameters and pairs of the layout",
    /// The digest of the type map is that of the aggregation key.
    TypeMap = "the verifying key has the map of instances to types",
    /// The zeroth powers are the generators.
    Generators = "the powers start with the generators",
    /// Powers of phi.
    Phi = "[phi^(i+1)]_1 = phi [phi^i]_1",
    /// Powers of psi.
    Psi = "[psi^(i+1)]_2 = psi [psi^i]_2",
    /// The commitment to St.
    CmSt = "cm_St commits to St",
    /// The commitment to Sb.
    CmSb = "cm_Sb commits to Sb",
    /// The commitment to Sg.
    CmSg = "cm_Sg commits to Sg",
    /// The commitment to ST, in circuits with buses.
    CmTags = "cm_ST commits to ST",
    /// The commitment to SV, in circuits with buses.
    CmValues = "cm_SV commits to SV",
    /// Both keys have the parts for buses, or neither has.
    Buses = "the verifying key and the aggregation key agree on buses",
    /// The commitment to gamma.
    CmGamma = "cm_gamma commits to gamma",
    /// The commitment to delta.
    CmDelta = "cm_delta commits to delta",
    /// The commitment to eta.
    CmEta = "cm_eta commits to eta",
    /// The commitment to Theta.
    CmTheta = "cm_Theta commits to Theta",
    /// With two equal ones anybody could forge, and a zero removes a term from the verification equation
    /// (spec: mirage#asserts).
    Distinct = "delta, eta and gamma of all types are distinct, and none of them or of Theta is zero",
    /// The constant of the verification equation.
    Constant = "e(alpha, beta) is that of the verifying key",
    /// Alpha and beta are shared.
    Shared = "alpha and beta are those of all types",
    /// Delta of the proving key in G2.
    Delta = "delta is that of the aggregation key",
    /// Delta in both groups.
    DeltaGroups = "delta is the same in G1 and G2",
    /// Eta in both groups.
    EtaGroups = "eta is the same in G1 and G2",
    /// The memory check is in the matrices, and no other row has its variables.
    MemoryRows = "the matrices have the rows of the memory check, and its variables in no others",
    /// The lists of variables of the queries.
    Variables = "each query has the variables of its matrix",
    /// A point at infinity would leave out a variable.
    Infinity = "no point is at infinity but those of variables in no row",
    /// The columns of C for public variables, committed ones and e.
    ColumnsC = "XQ holds the columns of C that HQ makes",
    /// The columns of B, by a product with one of A.
    ColumnsB = "BQ holds the columns of B that HQ and AQ make",
    /// The columns of A, by a product with one of B.
    ColumnsA = "AQ holds the columns of A that HQ and BQ make",
    /// Theta of a type.
    Theta = "e(K, Theta) + e(G, BQ_x) = e(AQ_u, H) for the slots and entries",
    /// The queries of committed and auxiliary variables.
    Queries = "eta DQ_j and delta LQ_j = beta a_j + alpha b_j + c_j",
    /// The part of S that g multiplies.
    Sg = "gamma Sg = beta a_g + alpha b_g",
    /// The part of S that b_T multiplies.
    Tags = "gamma ST = beta a_bT + alpha b_bT",
    /// The part of S that b multiplies: the addresses.
    Sb = "gamma Sb_i = sum_j a_ij (beta a_xj + alpha b_xj)",
    /// The part of S that b_V multiplies: the values of pairs.
    Values = "gamma SV_i = those of b_V and of the values of pairs",
    /// The part of S that no challenge multiplies: multiplicities, parameters, keys of pairs.
    St = "gamma St_i = those of 1, of multiplicities, of parameters and of the keys of pairs",
    /// IC of a family, multiplicities excepted.
    Ic = "gamma IC_j = beta a_j + alpha b_j + c_j",
    /// IC of the multiplicities of a family.
    IcMu = "e(IC_mu_j, gamma) = e(G, BQ_x_j)",
}
