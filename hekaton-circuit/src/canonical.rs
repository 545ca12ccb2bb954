//! Serde for arkworks types in their canonical encoding: put
//! `#[serde(with = "hekaton_circuit::canonical")]` on a field of a
//! [`Circuit::Private`](crate::Circuit::Private).
//!
//! ```
//! use hekaton_circuit::Fr;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Private {
//!     #[serde(with = "hekaton_circuit::canonical")]
//!     secrets: Vec<Fr>,
//!     index: u32,
//! }
//! let private = Private { secrets: vec![Fr::from(7u64)], index: 3 };
//! let json = serde_json::to_string(&private)?;
//! let back: Private = serde_json::from_str(&json)?;
//! assert_eq!(back.secrets, private.secrets);
//! # Ok::<(), serde_json::Error>(())
//! ```

use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Serializes the canonical compressed encoding as bytes.
///
/// # Errors
/// If the value or the serializer fails.
pub fn serialize<T: CanonicalSerialize, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut bytes = Vec::with_capacity(value.compressed_size());
    value.serialize_compressed(&mut bytes).map_err(S::Error::custom)?;
    serializer.serialize_bytes(&bytes)
}

/// Deserializes and checks a value.
///
/// # Errors
/// If the bytes are not a canonical encoding, or bytes follow it.
pub fn deserialize<'de, T: CanonicalDeserialize, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    // The checked form: a private input comes from another machine, and a value that is not reduced
    // would have a second encoding.
    let bytes = Vec::<u8>::deserialize(deserializer)?;
    let mut rest = &bytes[..];
    let value = T::deserialize_compressed(&mut rest).map_err(D::Error::custom)?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(D::Error::custom(format!("{} bytes follow the value", rest.len())))
    }
}
