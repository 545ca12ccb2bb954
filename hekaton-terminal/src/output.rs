//! The output of the program: results on standard output, everything else on standard error.

use crate::exit::{self, Failure};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The name of the program, once it is known.
static PROGRAM: OnceLock<&'static str> = OnceLock::new();

/// Sets the name of the program.
pub fn set_program(name: &'static str) {
    // The first name stays: a process runs one program.
    let _ = PROGRAM.set(name);
}

/// The name of the program.
pub fn program() -> &'static str {
    PROGRAM.get().copied().unwrap_or("hekaton")
}

/// A text with the name of this program in its commands.
pub fn with_program(text: &str) -> String {
    text.replace("`hekaton ", &format!("`{} ", program()))
}

/// Starts logging to standard error, filtered by `RUST_LOG`, or by `default` where that is not set.
pub fn start_logging(default: &str) {
    let filter = |text: &str| text.parse::<Targets>();
    let default = filter(default).expect("a filter of this program");
    let filter = match std::env::var("RUST_LOG") {
        Ok(text) => filter(&text).unwrap_or_else(|error| {
            // Often it is there for another program.
            say(format_args!("warning: RUST_LOG is not used: {error}"));
            default
        }),
        Err(_) => default,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .log_internal_errors(false);
    tracing_subscriber::registry().with(filter).with(lines).init();
}

/// Reports whether a terminal interprets a character as a command, or moves the text that follows it:
/// control characters of both sets, separators of lines, and marks of direction.
fn is_command(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes characters that a terminal would interpret, except those to `keep`, in the form of JSON. Text from
/// files and from the network can then neither change the output nor look like a line of this program.
fn escape(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let escaped = |c: char| is_command(c) && !keep(c);
    if !text.contains(escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match escaped(c) {
            true => out += &format!("\\u{:04x}", c as u32),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Escapes control characters of a text that has one line: a name, a statement or a parameter from a
/// file.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// Escapes control characters of lines that are printed. All output passes through here, or through
/// [`one_line`].
pub fn printable(lines: &str) -> Cow<'_, str> {
    escape(lines, |c| c == '\n' || c == '\t')
}

/// Prints a line on standard error. Failures are ignored: a closed standard error must not end a
/// run.
pub fn say(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{}", printable(&text.to_string()));
}

/// Prints text on standard error that is not of this program and has its own ends of lines. Failures are ignored, as by [`say`].
pub fn text(text: &str) {
    let mut error = std::io::stderr();
    let _ = write!(error, "{}", printable(text)).and_then(|()| error.flush());
}

/// Prints an error.
pub fn failure(failure: &Failure, json: bool) {
    let message = with_program(&failure.message);
    if json {
        let object = json!({
            "ok": false, "exit_code": failure.code, "error": message,
            "details": failure.details,
        });
        let _ = print(&object.to_string());
    }
    say(format_args!("error: {message}"));
}

/// Prints what clap says of a command line, as JSON too if that was asked for, and returns the exit code.
/// clap reports `--help` and `--version` as errors.
pub fn command_line_error(error: &clap::Error) -> ExitCode {
    let code = if error.use_stderr() { exit::USAGE } else { exit::OK };
    if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
        let text = error.render().to_string();
        let message = text.trim_start_matches("error: ").trim_end();
        failure(&Failure::new(code, message), true);
    } else {
        // A closed pipe is no reason to fail.
        let _ = error.print();
    }
    ExitCode::from(code)
}

/// Prints the failure of a command, if it failed, and returns its exit code.
pub fn exit_code(result: Result<(), Failure>, json: bool) -> ExitCode {
    match result {
        Ok(()) => ExitCode::from(exit::OK),
        Err(why) => {
            failure(&why, json);
            ExitCode::from(why.code)
        }
    }
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", printable(text))?;
    out.flush()
}

/// Prints a result: the JSON object, or the lines for people.
///
/// A reader that closed the pipe (`| head`) is not an error; a full disk is.
pub fn result(json: bool, object: &Value, lines: &str) -> Result<(), Failure> {
    let printed = if json { print(&object.to_string()) } else { print(lines) };
    match printed {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(exit::FAILED, format!("cannot print the result: {e}")))
        }
        _ => Ok(()),
    }
}

/// Formats bytes: 12345678 as "12.3 MB".
pub fn bytes(n: u64) -> String {
    match n as f64 {
        n if n < 1e3 => format!("{n} B"),
        n if n < 1e6 => format!("{:.1} kB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n => format!("{:.2} GB", n / 1e9),
    }
}

/// Formats a count: 1234567 as "1,234,567".
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A number of things, in words: 1 as "1 part", 1234567 as "1,234,567 parts".
pub fn counted(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(n), if n == 1 { "" } else { "s" })
}

/// Formats a duration with a suitable unit.
pub fn seconds(t: Duration) -> String {
    seconds_f64(t.as_secs_f64())
}

/// Like [`seconds`], for a number of seconds.
pub fn seconds_f64(s: f64) -> String {
    match s {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 600.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// The directory that contains a file.
fn parent(path: &Path) -> &Path {
    hekaton_files::folder_of(path)
}

/// Resolves symbolic links in the part of a path that exists.
fn resolve(path: &Path) -> PathBuf {
    // Without a working directory, a relative path stays as it is.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for ancestor in absolute.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), absolute.strip_prefix(ancestor)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    absolute
}

/// Reports whether two paths refer to the same file.
pub fn same_place(a: &Path, b: &Path) -> bool {
    resolve(a) == resolve(b)
}

/// The files that an output must not overwrite.
#[derive(Debug, Default)]
pub struct Inputs<'a> {
    /// Input files.
    pub files: &'a [&'a Path],
    /// The key store, into which nothing is written.
    pub keys: Option<&'a Path>,
    /// The run directory, whose own files are not overwritten.
    pub run: Option<&'a Path>,
}

/// Reports whether a run directory keeps a file of its own under this name.
fn is_of_a_run(name: &str) -> bool {
    matches!(
        name,
        "run.json"
            | "seed"
            | "lease.json"
            | "lease.lock"
            | "events.jsonl"
            | "report.json"
            | "proof"
    ) || name.ends_with(".log")
}

/// Checks before the work, not after it, that a file can be written and does not overwrite an input, keys, or a file of
/// the run.
pub fn check_output(path: &Path, option: &str, inputs: &Inputs<'_>) -> Result<(), Failure> {
    let refuse = |why: &str| {
        Err(Failure::new(exit::BAD_FILE, format!("{option} {}: {why}", path.display())))
    };
    if path.is_dir() {
        return refuse("is a directory, expected a file");
    }
    let place = resolve(path);
    if inputs.files.iter().any(|input| resolve(input) == place) {
        return refuse("that is the input, which would be lost");
    }
    if inputs.keys.is_some_and(|keys| place.starts_with(resolve(keys))) {
        return refuse("that is inside the key store; choose another place");
    }
    let Some(name) = place.file_name().map(|name| name.to_string_lossy()) else {
        return refuse("that is not the name of a file");
    };
    if let Some(run) = inputs.run.map(resolve) {
        if place == run || (place.parent() == Some(&run) && is_of_a_run(&name)) {
            return refuse("that belongs to the run directory itself: choose another name");
        }
        if place.parent() == Some(&run) && !run.exists() {
            // The run directory will be created with the run.
            return Ok(());
        }
    }
    if place.exists() && !place.is_file() {
        return refuse("that is not a regular file");
    }
    if let Err(e) = std::fs::OpenOptions::new().append(true).open(&place)
        && e.kind() != std::io::ErrorKind::NotFound
    {
        return refuse(&format!("cannot write to it: {e}"));
    }
    let directory = parent(path);
    if !directory.is_dir() {
        return refuse(&format!(
            "the directory {} does not exist: create it first",
            directory.display()
        ));
    }
    match tempfile::NamedTempFile::new_in(directory) {
        Ok(_) => Ok(()),
        Err(e) => {
            // Without the name of the temporary file, which means nothing to the user.
            let inner = e.get_ref().and_then(std::error::Error::source);
            let why = inner.map_or_else(|| e.to_string(), ToString::to_string);
            refuse(&format!("cannot write there: {why}"))
        }
    }
}

/// Replaces a file, which all users may read. A reader sees the old content or the new one.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    hekaton_files::write_readable(path, bytes)
        .map_err(|e| Failure::new(exit::FAILED, format!("cannot write {}: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters that a terminal would take for a command are escaped, and nothing else is changed.
    #[test]
    fn commands_of_terminals_are_escaped() {
        let hostile =
            "a\u{1b}]0;title\u{7}\u{1b}[2Jb\u{9b}31m\u{7f}\u{202e}c\u{2028}\u{200f}\r\n\td";
        let shown =
            "a\\u001b]0;title\\u0007\\u001b[2Jb\\u009b31m\\u007f\\u202ec\\u2028\\u200f\\u000d";
        assert_eq!(printable(hostile), format!("{shown}\n\td"));
        assert_eq!(one_line(hostile), format!("{shown}\\u000a\\u0009d"));
        let plain = "keys für 8 Teile, \u{4e2d}\u{6587}, 12.3 MB";
        assert!(matches!(one_line(plain), Cow::Borrowed(text) if text == plain));
        // In JSON the escapes are those of JSON.
        let object = json!({ "name": hostile }).to_string();
        let read: Value = serde_json::from_str(&printable(&object)).expect("JSON");
        assert_eq!(read["name"], hostile);
        assert!(!printable(&object).contains(['\u{9b}', '\u{202e}', '\u{7f}']));
    }
}
