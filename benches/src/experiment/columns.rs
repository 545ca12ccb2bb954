//! The names of measured values.

/// The numbers of a row, in the order of `points.csv`.
pub(crate) const COLUMNS: [&str; 40] = [
    "subcircuits",
    "constraints",
    "cores",
    "ranks",
    // execute to aggregate; loading keys, verifying, and starting processes are not included
    "seconds",
    "load_keys_s",
    "execute_s",
    "commit_s",
    "prove_s",
    "aggregate_s",
    "constraints_per_core_second",
    "units_per_second",
    "cpu_seconds",
    "constraints_per_cpu_second",
    "prover_cpu_seconds",
    // the part of their processors that provers had while they worked, and times without what other
    // programs took of it
    "processor_share",
    "adjusted_s",
    "adjusted_aggregate_s",
    // the model's prediction next to this repetition over those times
    "model_ratio",
    "model_aggregate_ratio",
    "busy_s",
    "idle_s",
    "commit_request_bytes",
    "commit_response_bytes",
    "prove_request_bytes",
    "prove_response_bytes",
    // of the first rank that proves: the sizes of single messages follow from its sums
    "first_rank_commit_answers",
    "first_rank_commit_bytes",
    "first_rank_prove_answers",
    "first_rank_prove_bytes",
    "peak_memory_bytes",
    "key_bytes",
    "wires_per_subcircuit",
    "input_bytes_per_subcircuit",
    "proof_bytes",
    "verify_ms",
    "setup_s",
    "utilization",
    "aggregate_per_subcircuit_ms",
    "load_at_start",
];
