//! The file of invitations.

use super::queue::Admission;
use hekaton_ceremony::is_name;
use hekaton_terminal::exit::{self, Failure, read_limited};
use std::collections::BTreeMap;
use std::path::Path;

/// The longest file, which is enough for a hundred thousand invitations.
const LIMIT: u64 = 16 << 20;
/// The length of the shortest code, so that codes cannot be guessed.
const SHORTEST: usize = 16;

/// Reads a file with one invitation in each line: a code and, if it is for one person only, the name.
pub(crate) fn read(path: &Path) -> Result<Admission, Failure> {
    let bytes = read_limited(path, LIMIT, "the limit for invitations")?;
    parse(&String::from_utf8_lossy(&bytes))
        .map_err(|why| Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display())))
}

fn parse(text: &str) -> Result<Admission, String> {
    let mut invitations = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = |why: &str| format!("line {}: {why}", number + 1);
        let (code, name) = match line.split_once(char::is_whitespace) {
            Some((code, name)) => (code, Some(name.trim())),
            None => (line, None),
        };
        if code.len() < SHORTEST {
            return Err(at("a code needs 16 characters, for example from `openssl rand -hex 16`"));
        }
        if name.is_some_and(|name| !is_name(name)) {
            return Err(at("a name has at most 128 bytes and no invisible characters"));
        }
        if invitations.insert(Admission::digest(code), name.map(str::to_owned)).is_some() {
            return Err(at("the code is in an earlier line, too"));
        }
    }
    match invitations.is_empty() {
        true => Err("has no invitations; --open admits everybody".to_owned()),
        false => Ok(Admission::Invited(invitations)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invitations_are_lines() {
        let text =
            "# of the first week\n\n0123456789abcdef  Alice (alice.example)\n fedcba9876543210 \n";
        let Admission::Invited(read) = parse(text).unwrap() else { panic!("it has invitations") };
        let digest = Admission::digest;
        assert_eq!(read[&digest("0123456789abcdef")].as_deref(), Some("Alice (alice.example)"));
        assert_eq!(read[&digest("fedcba9876543210")], None);
        assert_eq!(read.len(), 2);
        for (text, why) in [
            ("", "no invitations"),
            ("# 0123456789abcdef", "no invitations"),
            ("short Alice", "line 1: a code needs 16"),
            ("0123456789abcdef\n0123456789abcdef Bob", "line 2: the code is in an earlier line"),
            ("0123456789abcdef A\u{200b}lice", "invisible"),
        ] {
            let told = parse(text).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }
}
