//! Files of another form, and lengths that lie.

use super::*;

/// A file with two sections, as bytes.
fn file() -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&2u32.to_le_bytes());
    out.extend(padded("proving key", 32));
    let sections = [("numbers", 4096u64, vec![1u8; 24]), ("empty", 8192, vec![])];
    for (name, offset, bytes) in &sections {
        out.extend(padded(name, 24));
        out.extend_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(blake3::hash(bytes).as_bytes());
    }
    out.resize(8192, 0);
    out[4096..4120].fill(1);
    out
}

fn parse(bytes: &[u8]) -> Result<Table, KeyFileError> {
    parse_table(bytes, Path::new("test.pk"))
}

/// Runs under Miri, as all tests of this module.
#[test]
fn tables_lie_inside_their_files() {
    let good = file();
    let table = parse(&good).unwrap();
    assert_eq!((table.entries.len(), table.kind.as_str()), (2, "proving key"));
    let first = &table.entries[0];
    assert_eq!((first.name.as_str(), first.offset, first.len), ("numbers", 4096, 24));
    for cut in [0, 7, 8, 12, 47, 48, 100, 207, 208, 4096, 4119, 8191] {
        assert!(parse(&good[..cut]).is_err(), "{cut}");
    }
    // A count, an offset or a length beyond the end of the file.
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        parse(&file).map(|_| ())
    };
    assert!(matches!(changed(0, b"X"), Err(KeyFileError::Magic { .. })));
    assert!(matches!(changed(8, &[9]), Err(KeyFileError::Version { found: 9, .. })));
    assert!(changed(12, &[0xff; 4]).is_err() && changed(12, &65u32.to_le_bytes()).is_err());
    for at in [48 + 24, 48 + 32] {
        for value in [u64::MAX, u64::MAX - 4095, 1 << 63, 12_288, 8192] {
            assert!(changed(at, &value.to_le_bytes()).is_err(), "{value} at {at}");
        }
    }
    assert!(changed(48 + 24, &4097u64.to_le_bytes()).is_err(), "not aligned");
    assert!(changed(48, &[0xff]).is_err(), "a name that is not text");
}

/// A file has one form, so that its digest, which covers header and table, fixes every byte.
#[test]
fn files_of_another_form_are_refused() {
    let good = file();
    assert!(parse(&good).is_ok());
    let says = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = good.clone();
        change(&mut file);
        parse(&file).map(drop).unwrap_err().to_string()
    };
    assert!(says(&|f| f.push(0)).contains("1 bytes follow the last section"));
    assert!(says(&|f| f.extend([7; 5000])).contains("5000 bytes follow"));
    for at in [208, 4095, 4120, 8191] {
        assert!(says(&|f| f[at] = 1).contains("padding before"), "{at}");
    }
    // The names of the sections are at 48 and 128, each in an entry of 80 bytes.
    let second = says(&|f| f.copy_within(48..72, 128));
    assert!(second.contains("a second section 'numbers'"), "{second}");
    assert!(says(&|f| f[48..72].fill(0)).contains("not text padded"));
    assert!(says(&|f| f[71] = b'x').contains("not text padded"));
    assert!(says(&|f| f[50] = 0x1b).contains("not text padded"));
    assert!(says(&|f| f[88] = 1).contains("reserved bytes"));
    assert!(says(&|f| f[47] = b'x').contains("kind is not text"));
    // The second section over the first, or after a page of its own.
    for offset in [4096u64, 12_288] {
        let moved = says(&|f| {
            f[152..160].copy_from_slice(&offset.to_le_bytes());
            f.resize(16_384, 0);
        });
        assert!(moved.contains("expected them at 8192"), "{moved}");
    }
    let empty = |count: u32| [&good[..12], &count.to_le_bytes(), &good[16..48]].concat();
    assert!(parse(&empty(0)).is_ok() && parse(&[empty(0), vec![0]].concat()).is_err());
}

#[test]
fn sections_that_no_reader_uses_are_refused() {
    let mut sections = Sections::new("proving key");
    sections.push("words", vec![1u64]);
    assert!(sections.expect_only(&["words", "more"]).is_ok());
    let why = sections.expect_only(&["more"]).unwrap_err().to_string();
    assert!(why.contains("'words'") && why.contains("has no such section"), "{why}");
}

#[test]
fn sections_are_cast_only_where_they_fit() {
    let mut sections = Sections::new("proving key");
    sections.push("words", vec![1u64, 2, 3]);
    sections.push("bytes", vec![1u8, 2, 3]);
    assert_eq!(sections.get::<u64>("words").unwrap(), [1, 2, 3]);
    assert_eq!(sections.get::<[u8; 8]>("words").unwrap().len(), 3);
    assert_eq!(sections.get::<u8>("bytes").unwrap(), [1, 2, 3]);
    assert!(sections.get::<u32>("bytes").is_err(), "not a whole number");
    assert!(sections.one::<u64>("words").is_err() && sections.get::<u8>("missing").is_err());
}
