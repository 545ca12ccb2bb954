//! The log of records over three levels of tiles.

use super::disk::Disk;
use crate::log_tiles::{LogReader, LogTiles};
use crate::rows::{self, LogKind};
use crate::{Opened, Rows, Table};
use hekaton_directory::{Frontier, Profile, Record, log};

/// Proofs hold, and the log continues from its tiles, at sizes around the ends of tiles.
#[test]
fn the_log_of_records_has_three_levels() {
    const SIZE: u32 = (1 << 16) + 600;
    let store = Disk::default().open(Opened::Again);
    let first = Record::first(&super::parameters(Profile::Compress), 0);
    let mut frontier = Frontier::default();
    let mut tiles = LogTiles::read(&*store, LogKind::Records, &first).unwrap();
    let mut roots = vec![frontier.root()];
    for epoch in 0..SIZE {
        // Entries are the bytes of rows, whatever these are.
        let bytes = epoch.to_be_bytes();
        let mut written = Rows::default();
        written.put(Table::Epoch, bytes, bytes);
        frontier.append(&[log::entry(&bytes)]);
        for (place, tile) in tiles.append(&[log::entry(&bytes)]) {
            assert_eq!(epoch % 256, 255, "only full tiles of entries change anything");
            written.put(Table::Log, rows::at_epoch(&place.encode(), epoch + 1), tile);
        }
        store.commit(written).unwrap();
        roots.push(frontier.root());
    }
    let reader = LogReader::new(&*store, LogKind::Records, SIZE);
    for end in [1, 2, 255, 256, 257, 511, 512, 65_535, 65_536, 65_537, 65_791, 65_792, SIZE] {
        let (root, size) = (&roots[end as usize], u64::from(end));
        let record = Record { epoch: end, records: *root, ..first };
        let read = LogTiles::read(&*store, LogKind::Records, &record).unwrap();
        assert_eq!(read.frontier().peaks(), reader.peaks(size).unwrap(), "{end}");
        assert_eq!(read.frontier().root(), *root);
        for place in [0, 1, end / 3, end / 2, end - 1].into_iter().filter(|place| *place < end) {
            let (old, place_of) = (&roots[place as usize], u64::from(place));
            let entry = reader.entry(place_of, size).unwrap();
            assert!(log::contains(root, size, place_of, &place.to_be_bytes(), &entry));
            let before = reader.continues(place_of, size).unwrap();
            assert!(log::continues((old, place_of), (root, size), &before), "{place} of {end}");
        }
        let damaged = Record { records: [7; 32], ..record };
        assert!(LogTiles::read(&*store, LogKind::Records, &damaged).is_err());
    }
}
