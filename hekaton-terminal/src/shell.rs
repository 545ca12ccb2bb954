//! Words of commands that are shown to people, quoted for a shell, so that the commands can be pasted.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Reports whether no shell treats a byte in a special way, at any position in a word.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./:,@+".contains(&byte)
}

/// A text as one word of a command.
pub fn word(text: &str) -> Cow<'_, str> {
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(quoted(text.as_bytes())),
    }
}

/// A path as one word of a command, which no program parses as an option.
pub fn path(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let prefix: &[u8] = if bytes.starts_with(b"-") { b"./" } else { b"" };
    let all = [prefix, bytes].concat();
    match std::str::from_utf8(&all) {
        Ok(text) => word(text).into_owned(),
        Err(_) => quoted(&all),
    }
}

/// Quotes a word: in the form of POSIX, or with escapes if a terminal could not show it as it is.
fn quoted(bytes: &[u8]) -> String {
    let text = OsStr::from_bytes(bytes).to_string_lossy();
    if std::str::from_utf8(bytes).is_ok() && !text.contains(char::is_control) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let escape = |byte: &u8| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        // $'..' is not in POSIX, but bash, zsh and ksh have it, and nothing in POSIX fits on one line.
        byte => format!("\\x{byte:02x}"),
    };
    format!("$'{}'", bytes.iter().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Returns what bash makes of a word.
    fn read_back(word: &str) -> Vec<u8> {
        let output =
            Command::new("bash").args(["-c", &format!("printf %s {word}")]).output().unwrap();
        assert!(output.status.success(), "{word}");
        output.stdout
    }

    #[test]
    fn words_are_read_back_by_a_shell() {
        assert_eq!(word("keys/verifying.key"), "keys/verifying.key");
        for text in [
            "a b",
            "",
            "it's",
            "$HOME",
            "~",
            "a*",
            "!x",
            "`ls`",
            "a;b",
            "\"q\"",
            r"back\slash",
            "a=b",
            "new\nline",
            "tab\t'",
            "é ü",
            "[\"1\",\"2\"]",
            "#x",
        ] {
            assert_eq!(read_back(&word(text)), text.as_bytes(), "{text:?}");
            assert!(!word(text).contains('\n'), "{text:?}");
        }
    }

    #[test]
    fn paths_are_read_back_by_a_shell() {
        assert_eq!(path(Path::new("-rf")), "./-rf");
        let bytes = b"not utf-8 \xff\x80.proof";
        let found = read_back(&path(Path::new(OsStr::from_bytes(bytes))));
        assert_eq!(found, bytes);
    }
}
