//! Parts that all command lines of Hekaton share: exit codes, output, progress and signals.

pub mod exit;
pub mod options;
pub mod output;
pub mod progress;
pub mod shell;
pub mod signals;
