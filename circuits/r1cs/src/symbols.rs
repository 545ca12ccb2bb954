//! circom's `.sym` files: the names of signals, one line each, as `label,wire,component,name`. Signals
//! that circom's simplification removed have wire -1.

use crate::error::{FileError, Place, Problem};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The longest line that is read, in bytes.
const LONGEST: u64 = 1 << 16;

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
                let place = Place { line: Some(number), ..Place::default() };
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

/// Calls `f` for each line of a `.sym` file with its number, the wire (`None` for -1), the number of
/// the component's template, and the name.
pub(crate) fn lines(
    path: &Path,
    mut f: impl FnMut(u64, Option<u32>, u64, &str) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let io = |line, e: std::io::Error| {
        FileError::new(path, Place { line, ..Place::default() }, Problem::Io(e))
    };
    crate::container::check_regular(path)?;
    let mut reader = BufReader::new(File::open(path).map_err(|e| io(None, e))?);
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        let limited = &mut std::io::Read::take(&mut reader, LONGEST);
        let read = limited.read_until(b'\n', &mut line).map_err(|e| io(Some(number), e))?;
        if read == 0 {
            break;
        }
        let fail = |problem| {
            let place = Place { line: Some(number), ..Place::default() };
            FileError::new(path, place, problem)
        };
        if line.len() as u64 == LONGEST && line.last() != Some(&b'\n') {
            return Err(fail(Problem::LongLine(LONGEST)));
        }
        let text = std::str::from_utf8(&line).map_err(|_| fail(Problem::Line))?;
        let text = text.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            continue;
        }
        let Some((wire, template, name)) = parse(text) else { return Err(fail(Problem::Line)) };
        f(number, wire, template, name)?;
    }
    Ok(())
}

/// The wire of a line, `None` for -1, the number of the template, and the name.
fn parse(line: &str) -> Option<(Option<u32>, u64, &str)> {
    let mut fields = line.splitn(4, ',');
    let _label: u64 = fields.next()?.parse().ok()?;
    let wire = match fields.next()? {
        "-1" => None,
        wire => Some(wire.parse().ok()?),
    };
    let template: i64 = fields.next()?.parse().ok()?;
    // Names are printed.
    let is_name = |name: &&str| !name.is_empty() && !name.contains(char::is_control);
    let name = fields.next().filter(is_name)?;
    // No template is -1.
    Some((wire, u64::try_from(template).unwrap_or(u64::MAX), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(parse("1,5,0,main.a[3].b"), Some((Some(5), 0, "main.a[3].b")));
        assert_eq!(parse("2,-1,17,main.c"), Some((None, 17, "main.c")));
        assert_eq!(parse("2,1,-1,a,b"), Some((Some(1), u64::MAX, "a,b")));
        for wrong in [
            "",
            "1,2,3",
            "x,1,2,a",
            "1,-2,2,a",
            "1,1,2,",
            "1,4294967296,2,a",
            "1,1,,a",
            "1,1,1,a\u{1b}[2J",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
