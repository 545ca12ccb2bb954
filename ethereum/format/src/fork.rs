//! The fields that forks after Shanghai have added to blocks.

/// The fork of a block, with the fields that it has in addition to those of Shanghai.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fork {
    /// Shanghai, the first fork with withdrawals (EIP-4895).
    Shanghai,
    /// Cancun.
    Cancun(Cancun),
    /// Prague, and Osaka, whose blocks have the same fields: requests to the beacon chain (EIP-7685), each with its type in the first
    /// byte.
    Prague(Cancun, Vec<Vec<u8>>),
    /// Amsterdam.
    Amsterdam(Cancun, Vec<Vec<u8>>, Amsterdam),
}

/// The fields that Cancun has added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancun {
    /// The gas that its blobs use (EIP-4844).
    pub blob_gas_used: u64,
    /// The gas that blobs before it used beyond the target.
    pub excess_blob_gas: u64,
    /// The root of the beacon block before it (EIP-4788).
    pub parent_beacon_block_root: [u8; 32],
}

/// The fields that Amsterdam has added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amsterdam {
    /// The accounts and slots that it reads and writes, as EIP-7928 encodes them.
    pub block_access_list: Vec<u8>,
    /// The slot of the beacon chain (EIP-7843).
    pub slot_number: u64,
}

impl Fork {
    /// Returns the fields that Cancun has added; `None` before Cancun.
    pub fn cancun(&self) -> Option<&Cancun> {
        match self {
            Self::Shanghai => None,
            Self::Cancun(cancun) | Self::Prague(cancun, _) | Self::Amsterdam(cancun, ..) => {
                Some(cancun)
            }
        }
    }

    /// Returns the requests to the beacon chain; `None` before Prague.
    pub fn requests(&self) -> Option<&[Vec<u8>]> {
        match self {
            Self::Shanghai | Self::Cancun(_) => None,
            Self::Prague(_, requests) | Self::Amsterdam(_, requests, _) => Some(requests),
        }
    }

    /// Returns the fields that Amsterdam has added; `None` before Amsterdam.
    pub fn amsterdam(&self) -> Option<&Amsterdam> {
        match self {
            Self::Shanghai | Self::Cancun(_) | Self::Prague(..) => None,
            Self::Amsterdam(.., amsterdam) => Some(amsterdam),
        }
    }

    /// Returns the fields that forks since Shanghai have added, in words.
    pub fn fields(&self) -> &'static str {
        match self {
            Self::Shanghai => "withdrawals",
            Self::Cancun(_) => "withdrawals, blob gas and a beacon root",
            Self::Prague(..) => "withdrawals, blob gas, a beacon root and requests",
            Self::Amsterdam(..) => {
                "withdrawals, blob gas, a beacon root, requests, an access list and a slot"
            }
        }
    }

    /// Returns the names of the forks whose blocks have these fields.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Shanghai => "Shanghai",
            Self::Cancun(_) => "Cancun",
            Self::Prague(..) => "Prague and Osaka",
            Self::Amsterdam(..) => "Amsterdam",
        }
    }
}
