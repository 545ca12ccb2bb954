//! Names and digests.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The BLAKE3 digest of a blob or of an identity, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest of several parts, each preceded by its length.
    pub fn of_parts<'a>(context: &str, parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// The bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 16 hexadecimal digits, for names of files and keys.
    pub fn short(&self) -> String {
        hex::encode(&self.0[..8])
    }
}

impl From<blake3::Hash> for Digest {
    fn from(hash: blake3::Hash) -> Self {
        Self(*hash.as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// Why something is not a digest or a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is not {expected}")]
pub struct BadId {
    found: String,
    expected: &'static str,
}

impl BadId {
    /// Makes the error for a text. Keeps at most 100 characters of the text, because it comes from outside.
    pub fn new(found: &str, expected: &'static str) -> Self {
        Self { found: found.chars().take(100).collect(), expected }
    }
}

impl FromStr for Digest {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let mut bytes = [0; 32];
        let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        match lower && hex::decode_to_slice(text, &mut bytes).is_ok() {
            true => Ok(Self(bytes)),
            false => Err(BadId::new(text, "a digest of 64 lowercase hexadecimal digits")),
        }
    }
}

impl TryFrom<String> for Digest {
    type Error = BadId;

    fn try_from(text: String) -> Result<Self, BadId> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A name of a tenant, a chain, a block, a stage or a back-end: 1 to 80 letters, digits, `-` and `_`. It may be part of a key, of a
/// path and of a URL. Copies share their text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

impl Name {
    /// The longest name, in characters.
    pub const MAX: usize = 80;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        match (1..=Self::MAX).contains(&text.len()) && text.bytes().all(allowed) {
            true => Ok(Self(text.into())),
            false => Err(BadId::new(text, "a name of 1 to 80 letters, digits, '-' and '_'")),
        }
    }
}

impl TryFrom<String> for Name {
    type Error = BadId;

    fn try_from(text: String) -> Result<Self, BadId> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        (*name.0).to_owned()
    }
}

impl From<Digest> for Name {
    fn from(digest: Digest) -> Self {
        Self(digest.to_string().into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_digests_are_checked() {
        for bad in ["", "a.b", "a/b", "a b", "ä", "..", &"a".repeat(81)] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
        assert_eq!("0xAb-_9".parse::<Name>().unwrap().to_string(), "0xAb-_9");
        let digest = Digest::of(b"a");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for bad in [digest.to_string().to_uppercase(), "00".into(), digest.to_string() + "0"] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
        let parts = |parts: &[&[u8]]| Digest::of_parts("test", parts.iter().copied());
        assert_ne!(parts(&[b"ab", b"c"]), parts(&[b"a", b"bc"]));
    }
}
