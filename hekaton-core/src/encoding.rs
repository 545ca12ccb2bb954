//! Reading canonical bytes from outside: every read is bounded and checked (spec:
//! verifier#encoding).

use hekaton_arith::{Fr, G1Point, G2Point, Group, Gt, PointError};

/// Why a byte string does not decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the item does.
    #[error("{what} at byte {at}: {need} bytes needed, {left} left")]
    Truncated {
        /// The item.
        what: &'static str,
        /// The offset of its first byte.
        at: usize,
        /// Its length.
        need: usize,
        /// Bytes left.
        left: usize,
    },
    /// Bytes follow the last item.
    #[error("{0} bytes follow after the end")]
    Trailing(usize),
    /// The item has a value that is not allowed.
    #[error("{what} at byte {at}: {why}")]
    Invalid {
        /// The item.
        what: &'static str,
        /// The offset of its first byte.
        at: usize,
        /// The reason it is invalid.
        why: String,
    },
}

/// A cursor over bytes from outside. It allocates nothing by a number that it has read.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Begins to read.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the next `n` bytes, of an item named `what`.
    ///
    /// # Errors
    /// If fewer are left, here and below.
    pub fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        // Compared with the remaining bytes, because `at + n` could overflow.
        let left = self.bytes.len() - self.at;
        if n > left {
            return Err(DecodeError::Truncated { what, at: self.at, need: n, left });
        }
        let out = &self.bytes[self.at..self.at + n];
        self.at += n;
        Ok(out)
    }

    /// Returns the next `N` bytes.
    ///
    /// # Errors
    /// See [`Self::take`].
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, what)?);
        Ok(out)
    }

    /// Returns a little-endian number.
    ///
    /// # Errors
    /// See [`Self::take`].
    pub fn u16(&mut self, what: &'static str) -> Result<u16, DecodeError> {
        self.array(what).map(u16::from_le_bytes)
    }

    /// Returns a little-endian number.
    ///
    /// # Errors
    /// See [`Self::take`].
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// Returns a little-endian number.
    ///
    /// # Errors
    /// See [`Self::take`].
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// The error for the item of `size` bytes that was read last.
    pub fn invalid(&self, what: &'static str, size: usize, why: impl ToString) -> DecodeError {
        DecodeError::Invalid { what, at: self.at - size, why: why.to_string() }
    }

    /// Reads a compressed point; checks that it is canonical, on the curve and in the subgroup.
    ///
    /// # Errors
    /// If it is not.
    pub fn point<G: Group>(&mut self, what: &'static str) -> Result<G, DecodeError> {
        self.point_as(what, G::from_compressed)
    }

    /// [`Self::point`] by another decoder, for example one that does not check the subgroup.
    pub(crate) fn point_as<G: Group>(
        &mut self,
        what: &'static str,
        decode: fn(&[u8]) -> Result<G, PointError>,
    ) -> Result<G, DecodeError> {
        let bytes = self.take(G::COMPRESSED, what)?;
        decode(bytes).map_err(|e| self.invalid(what, G::COMPRESSED, e))
    }

    /// Reads a length-prefixed string of at most `max` bytes.
    ///
    /// # Errors
    /// If it is longer, not UTF-8, or has control characters.
    pub fn string(&mut self, max: usize, what: &'static str) -> Result<String, DecodeError> {
        let len = self.u32(what)? as usize;
        if len > max {
            return Err(self.invalid(what, 4, format_args!("{len} bytes, expected at most {max}")));
        }
        let bytes = self.take(len, what)?;
        let text =
            String::from_utf8(bytes.to_vec()).map_err(|_| self.invalid(what, len, "not UTF-8"))?;
        // These strings are printed: nothing in them may move the cursor or start a new line.
        match text.chars().any(char::is_control) {
            true => Err(self.invalid(what, len, "control characters are not allowed")),
            false => Ok(text),
        }
    }

    /// Number of bytes not yet read.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Checks that nothing follows: every value has one encoding only.
    ///
    /// # Errors
    /// If bytes are left.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            n => Err(DecodeError::Trailing(n)),
        }
    }
}

/// Appends a length-prefixed string.
#[allow(
    clippy::cast_possible_truncation,
    reason = "strings of keys and messages are short; readers bound them"
)]
pub fn put_string(out: &mut Vec<u8>, s: &str) {
    out.extend_from_slice(&(s.len() as u32).to_le_bytes());
    out.extend_from_slice(s.as_bytes());
}

/// The encoding of a field, GT or group element in proofs, keys and the transcript.
pub(crate) trait Encode {
    fn encode(&self) -> Vec<u8>;
}

impl Encode for G1Point {
    fn encode(&self) -> Vec<u8> {
        self.to_compressed()
    }
}

impl Encode for G2Point {
    fn encode(&self) -> Vec<u8> {
        self.to_compressed()
    }
}

impl Encode for Gt {
    fn encode(&self) -> Vec<u8> {
        self.compress().to_vec()
    }
}

impl Encode for Fr {
    fn encode(&self) -> Vec<u8> {
        hekaton_arith::fr_to_bytes(self).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No read goes past the end, whatever the lengths say. Runs under Miri.
    #[test]
    fn reads_are_bounded() {
        let bytes: Vec<u8> = (0..40).collect();
        for n in 0..=bytes.len() {
            let mut reader = Reader::new(&bytes[..n]);
            let mut taken = 0;
            for size in [1, 2, 4, 8, 16] {
                match reader.take(size, "part") {
                    Ok(part) => {
                        assert_eq!(part, &bytes[taken..taken + size]);
                        taken += size;
                    }
                    Err(e) => {
                        assert_eq!(
                            e,
                            DecodeError::Truncated {
                                what: "part",
                                at: taken,
                                need: size,
                                left: n - taken
                            }
                        );
                        break;
                    }
                }
            }
            assert!(reader.take(usize::MAX, "too much").is_err());
            assert_eq!(reader.finish().is_ok(), taken == n);
        }
    }

    #[test]
    fn strings_are_checked() {
        let encode = |text: &[u8], len: u32| [&len.to_le_bytes()[..], text].concat();
        let read = |bytes: &[u8]| Reader::new(bytes).string(10, "text");
        let mut out = Vec::new();
        put_string(&mut out, "name");
        assert_eq!(read(&out).as_deref(), Ok("name"));
        assert!(matches!(read(&encode(b"name", 5)), Err(DecodeError::Truncated { .. })));
        assert!(matches!(read(&encode(b"name", u32::MAX)), Err(DecodeError::Invalid { .. })));
        assert!(matches!(read(&encode(b"n\xffme", 4)), Err(DecodeError::Invalid { .. })));
        assert!(matches!(read(&encode(b"n\x1bme", 4)), Err(DecodeError::Invalid { .. })));
    }
}
