//! Parts that all command lines of Hekaton share: exit codes, output, progress, signals, and other programs of the installation.

#[cfg(feature = "ceremony")]
pub mod ceremony;
pub mod exit;
pub mod installation;
pub mod manual;
pub mod options;
pub mod output;
pub mod progress;
pub mod shell;
pub mod signals;
pub mod unfinished;
