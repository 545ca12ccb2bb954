//! Reading untrusted bytes.

/// Bytes that are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end in the middle of something.
    #[error("it ends in the middle of its {0}")]
    Short(&'static str),
    /// There are bytes behind the end.
    #[error("trailing bytes: {0}")]
    Trailing(usize),
    /// The format has another version.
    #[error("its format has version {found}, but this program reads version {expected}")]
    Version {
        /// The version in the bytes.
        found: u8,
        /// The version that is read here.
        expected: u8,
    },
    /// A field has a value that it cannot have.
    #[error("its {0}")]
    Field(String),
}

/// Reads the fields of an encoding in order. All errors name the field.
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Starts at the first of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Reads `count` bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`] if fewer are left.
    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(DecodeError::Short(what))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`] if fewer are left.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(DecodeError::Short(what))?;
        self.0 = rest;
        Ok(*bytes)
    }

    /// Reads a byte.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`] at the end.
    pub fn byte(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.array(what).map(|[byte]| byte)
    }

    /// Reads a big-endian number of 4 bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`] if fewer are left.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_be_bytes)
    }

    /// Reads a big-endian number of 8 bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Short`] if fewer are left.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.array(what).map(u64::from_be_bytes)
    }

    /// Reads the byte of the format's version.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Version`] unless it is `expected`.
    pub fn version(&mut self, expected: u8) -> Result<(), DecodeError> {
        match self.byte("version")? {
            found if found == expected => Ok(()),
            found => Err(DecodeError::Version { found, expected }),
        }
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Trailing`] if there are more bytes.
    pub fn end(self) -> Result<(), DecodeError> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(DecodeError::Trailing(more)),
        }
    }
}
