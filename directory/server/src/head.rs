//! The head of a directory: the last commit that is on the disk, and the last signed record.

use hekaton_directory::Digest;
/// The length of a head in a row.
pub(crate) const LENGTH: usize = 44;

/// The last commit of which everything is on the disk, and the last record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the commit.
    pub commit: u64,
    /// The last epoch.
    pub epoch: u32,
    /// The digest of its record.
    pub record: Digest,
}

impl Head {
    /// The row of a head in a database.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(LENGTH);
        row.extend(self.commit.to_be_bytes());
        row.extend(self.epoch.to_be_bytes());
        row.extend(self.record);
        row
    }
}
