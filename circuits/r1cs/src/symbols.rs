//! circom's `.sym` files: the names of signals, one line each, as `label,wire,component,name`. Signals
//! that circom's simplification removed have wire -1.

use crate::error::{FileError, FilePosition, Problem};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The longest line that is read, in bytes.
const LONGEST: u64 = 1 << 16;

/// The most names that a message about one constraint has: a row may have thousands of terms.
const NAMED: usize = 12;

/// The names in a constraint, for messages: ", with x, y and 5 more".
pub fn with_names(names: &[String]) -> String {
    let (shown, more) = names.split_at(names.len().min(NAMED));
    match (shown, more.len()) {
        ([], _) => String::new(),
        (shown, 0) => format!(", with {}", shown.join(", ")),
        (shown, more) => format!(", with {} and {more} more", shown.join(", ")),
    }
}

/// The name of a wire in messages; "wire 3" if it has none.
pub fn label(symbols: Option<&Symbols>, wire: u32) -> String {
    let name = symbols.and_then(|symbols| symbols.name(wire));
    name.map_or_else(|| format!("wire {wire}"), str::to_owned)
}

/// The names of wires. A wire of several signals has the name of the first.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// All names, one after the other.
    text: String,
    /// The named wires in ascending order: the wire, and where its name begins and ends.
    names: Vec<(u32, u64, u64)>,
}

impl Symbols {
    /// Reads the names of a circuit's wires.
    ///
    /// # Errors
    /// If a line has another form, or names a wire that does not exist.
    pub fn read(path: &Path, wires: u32) -> Result<Self, FileError> {
        let mut symbols = Self::default();
        lines(path, |number, wire, _, name| {
            let Some(wire) = wire else { return Ok(()) };
            if wire >= wires {
                let place = FilePosition { line: Some(number), ..FilePosition::default() };
                return Err(FileError::new(path, place, Problem::OtherNames { wire, wires }));
            }
            let start = symbols.text.len() as u64;
            symbols.text.push_str(name);
            symbols.names.push((wire, start, symbols.text.len() as u64));
            Ok(())
        })?;
        // A stable sort keeps the first name of a wire first.
        symbols.names.sort_by_key(|(wire, ..)| *wire);
        symbols.names.dedup_by_key(|(wire, ..)| *wire);
        Ok(symbols)
    }

    /// The name of a wire, if it has one.
    pub fn name(&self, wire: u32) -> Option<&str> {
        let at = self.names.binary_search_by_key(&wire, |(wire, ..)| *wire).ok()?;
        let (_, start, end) = self.names[at];
        self.text.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// The named wires in ascending order, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        self.names.iter().filter_map(|(wire, start, end)| {
            let range = usize::try_from(*start).ok()?..usize::try_from(*end).ok()?;
            Some((*wire, self.text.get(range)?))
        })
    }

    /// The number of named wires.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Reports whether no wire has a name.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Calls `f` for each line of a `.sym` file with its number, the wire and the number of the component's
/// template (each `None` for -1), and the name.
pub(crate) fn lines(
    path: &Path,
    mut f: impl FnMut(u64, Option<u32>, Option<u64>, &str) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let io = |line, e: std::io::Error| {
        FileError::new(path, FilePosition { line, ..FilePosition::default() }, Problem::Io(e))
    };
    crate::container::check_regular(path)?;
    let mut reader = BufReader::new(File::open(path).map_err(|e| io(None, e))?);
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        // A file without line ends would otherwise be read into memory as one line.
        let limited = &mut std::io::Read::take(&mut reader, LONGEST);
        let read = limited.read_until(b'\n', &mut line).map_err(|e| io(Some(number), e))?;
        if read == 0 {
            break;
        }
        let fail = |problem| {
            let place = FilePosition { line: Some(number), ..FilePosition::default() };
            FileError::new(path, place, problem)
        };
        if line.len() as u64 == LONGEST && line.last() != Some(&b'\n') {
            return Err(fail(Problem::LongLine(LONGEST)));
        }
        let text = std::str::from_utf8(&line)
            .map_err(|_| fail(Problem::Line))?
            .trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            continue;
        }
        let Some((wire, template, name)) = parse(text) else { return Err(fail(Problem::Line)) };
        f(number, wire, template, name)?;
    }
    Ok(())
}

/// A wire or a template; `None` for -1.
fn number_or_none<N: std::str::FromStr>(field: &str) -> Option<Option<N>> {
    match field {
        "-1" => Some(None),
        number => Some(Some(number.parse().ok()?)),
    }
}

/// The wire of a line and the number of the template, each `None` for -1, and the name.
fn parse(line: &str) -> Option<(Option<u32>, Option<u64>, &str)> {
    let mut fields = line.splitn(4, ',');
    let _label: u64 = fields.next()?.parse().ok()?;
    let wire = number_or_none(fields.next()?)?;
    let template = number_or_none(fields.next()?)?;
    // Names are printed.
    let is_name = |name: &&str| !name.is_empty() && !name.contains(char::is_control);
    let name = fields.next().filter(is_name)?;
    Some((wire, template, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(parse("1,5,0,main.a[3].b"), Some((Some(5), Some(0), "main.a[3].b")));
        assert_eq!(parse("2,-1,17,main.c"), Some((None, Some(17), "main.c")));
        assert_eq!(parse("2,1,-1,a,b"), Some((Some(1), None, "a,b")));
        for wrong in [
            "",
            "1,2,3",
            "x,1,2,a",
            "1,-2,2,a",
            "1,2,-2,a",
            "1,1,2,",
            "1,4294967296,2,a",
            "1,1,,a",
            "1,1,1,a\u{1b}[2J",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
