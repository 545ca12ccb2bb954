//! SSZ as slices into the message: nothing is copied, and nothing is allocated before it has been checked.
//!
//! [Simple Serialize](https://github.com/ethereum/consensus-specs/blob/master/ssz/simple-serialize.md) puts the fixed parts of a
//! container or list first, with offsets of 4 bytes, little-endian, for the variable ones. Messages have exactly one encoding here:
//! the first offset is the length of the fixed part, offsets never decrease, and the last part ends where the message does.

/// A message, or a part of one, that is not the encoding of its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}, {part}: {why}")]
pub struct SszError {
    /// The position in the message, in bytes.
    pub at: usize,
    /// The part of the message.
    pub part: &'static str,
    /// The fault.
    pub why: String,
}

/// The length of an offset, in bytes.
pub const OFFSET: usize = 4;

/// The largest message, in bytes: offsets do not reach further.
const MAX_MESSAGE: usize = u32::MAX as usize;

/// Refuses a message whose end is beyond the reach of offsets.
pub(crate) fn check_length(length: usize, part: &'static str) -> Result<(), SszError> {
    match length {
        0..=MAX_MESSAGE => Ok(()),
        _ => {
            let why = format!("{length} bytes, expected at most {MAX_MESSAGE}");
            Err(SszError { at: 0, part, why })
        }
    }
}

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    bytes: &'a [u8],
    /// The position in the message at which it begins.
    at: usize,
    name: &'static str,
}

/// A field of a container.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    /// A field of the given number of bytes.
    Fixed(&'static str, usize),
    /// A field of any length.
    Variable(&'static str),
}

impl<'a> Part<'a> {
    /// Treats a whole message as a part.
    ///
    /// # Errors
    /// If it has 4 GiB or more, which offsets do not reach.
    pub fn message(bytes: &'a [u8], name: &'static str) -> Result<Self, SszError> {
        check_length(bytes.len(), name)?;
        Ok(Self { bytes, at: 0, name })
    }

    /// Returns an error at the beginning of the part.
    pub fn error(self, why: impl Into<String>) -> SszError {
        self.error_at(0, why)
    }

    /// Returns an error at a position in the part.
    fn error_at(self, position: usize, why: impl Into<String>) -> SszError {
        SszError { at: self.at + position, part: self.name, why: why.into() }
    }

    /// Reads the offset at a position of the fixed part.
    pub(crate) fn offset(self, position: usize) -> Result<usize, SszError> {
        let bytes = self
            .bytes
            .get(position..)
            .and_then(|rest| rest.first_chunk::<OFFSET>())
            .ok_or_else(|| self.error("it ends within an offset"))?;
        let offset = u32::from_le_bytes(*bytes) as usize;
        match offset <= self.bytes.len() {
            true => Ok(offset),
            false => {
                let why = format!("offset {offset} is beyond the end at {}", self.bytes.len());
                Err(self.error_at(position, why))
            }
        }
    }

    fn part(self, from: usize, to: usize, name: &'static str) -> Self {
        Self { bytes: &self.bytes[from..to], at: self.at + from, name }
    }

    /// Reads the fields of a container.
    ///
    /// # Errors
    /// If its length or an offset does not fit these fields.
    pub fn container<const N: usize>(self, fields: [Field; N]) -> Result<[Self; N], SszError> {
        let sizes = fields.map(|field| match field {
            Field::Fixed(_, size) => size,
            Field::Variable(_) => OFFSET,
        });
        let fixed: usize = sizes.iter().sum();
        if self.bytes.len() < fixed {
            return Err(self.error(format!("{} bytes, expected {fixed} or more", self.bytes.len())));
        }
        let mut found = [self; N];
        let (mut position, mut before) = (0, fixed);
        // The variable field whose end is not known yet: the next offset is its end.
        let mut open: Option<(usize, usize)> = None;
        for (at, field) in fields.iter().enumerate() {
            match *field {
                Field::Fixed(name, size) => found[at] = self.part(position, position + size, name),
                Field::Variable(name) => {
                    let offset = self.offset(position)?;
                    found[at].name = name;
                    if open.is_none() && offset != fixed {
                        let why = format!("first offset {offset}, expected {fixed}");
                        return Err(found[at].error_at(position, why));
                    }
                    if offset < before {
                        let why = format!("offset {offset} is below the previous one, {before}");
                        return Err(found[at].error_at(position, why));
                    }
                    if let Some((last, from)) = open {
                        found[last] = self.part(from, offset, found[last].name);
                    }
                    (open, before) = (Some((at, offset)), offset);
                }
            }
            position += sizes[at];
        }
        match open {
            Some((last, from)) => {
                found[last] = self.part(from, self.bytes.len(), found[last].name);
            }
            // Without a variable field, bytes after the fixed part would be a second encoding.
            None if self.bytes.len() != fixed => {
                return Err(self.error(format!("{} bytes, expected {fixed}", self.bytes.len())));
            }
            None => {}
        }
        Ok(found)
    }

    /// Reads a list of at most `most` lists of at most `most_bytes` bytes.
    ///
    /// # Errors
    /// If an offset or a length is wrong.
    pub fn items(self, most: usize, most_bytes: usize) -> Result<Items<'a>, SszError> {
        if self.bytes.is_empty() {
            return Ok(Items { part: self, count: 0 });
        }
        // The first offset is the only announcement of the number of items. It lies within the message, so four bytes cannot announce
        // four gigabytes.
        let first = self.offset(0)?;
        if first == 0 || first % OFFSET != 0 {
            let why = format!("first offset {first}, expected a positive multiple of {OFFSET}");
            return Err(self.error(why));
        }
        // Offsets are not stored: `Items` reads them again where they are, so a list costs no memory.
        let count = first / OFFSET;
        if count > most {
            return Err(self.error(format!("{count} items, expected at most {most}")));
        }
        let mut before = first;
        for at in 1..=count {
            let next = if at == count { self.bytes.len() } else { self.offset(at * OFFSET)? };
            if next < before {
                let why = format!("offset {next} is below the previous one, {before}");
                return Err(self.error_at(at * OFFSET, why));
            }
            let length = next - before;
            if length > most_bytes {
                let item = at - 1;
                let why = format!("item {item} has {length} bytes, expected at most {most_bytes}");
                return Err(self.error_at(before, why));
            }
            before = next;
        }
        Ok(Items { part: self, count })
    }

    /// Reads a list of at most `most` elements of a fixed size.
    ///
    /// # Errors
    /// If its length is not that of such a list.
    pub fn elements(self, size: usize, most: usize) -> Result<&'a [u8], SszError> {
        let length = self.bytes.len();
        if !length.is_multiple_of(size) {
            return Err(self.error(format!("{length} bytes, expected a multiple of {size}")));
        }
        let count = length / size;
        if count > most {
            return Err(self.error(format!("{count} elements, expected at most {most}")));
        }
        Ok(self.bytes)
    }

    /// Reads a list of at most `most` bytes.
    ///
    /// # Errors
    /// If it is longer.
    pub fn list(self, most: usize) -> Result<&'a [u8], SszError> {
        self.elements(1, most)
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// If it has another length.
    pub fn array<const N: usize>(self) -> Result<&'a [u8; N], SszError> {
        let found = self.bytes.try_into();
        found.map_err(|_| self.error(format!("{} bytes, expected {N}", self.bytes.len())))
    }

    /// Reads an unsigned integer of 64 bits.
    ///
    /// # Errors
    /// If it has another length.
    pub fn u64(self) -> Result<u64, SszError> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Reads a list of at most one element of variable length.
    ///
    /// # Errors
    /// If it has several elements, or a wrong offset.
    pub fn at_most_one(self) -> Result<Option<Self>, SszError> {
        // What reads the element limits its length.
        let items = self.items(1, usize::MAX)?;
        Ok((items.count == 1).then(|| self.part(OFFSET, self.bytes.len(), self.name)))
    }

    /// Reads a union of an empty option (selector 0) and a value (selector 1).
    ///
    /// # Errors
    /// If the selector is missing or neither 0 nor 1, or if bytes follow selector 0.
    pub fn union(self) -> Result<Option<Self>, SszError> {
        match self.bytes {
            [0] => Ok(None),
            [1, ..] => Ok(Some(self.part(1, self.bytes.len(), self.name))),
            // They would be a second encoding of the empty option.
            [0, ..] => Err(self.error("bytes follow selector 0, which selects nothing")),
            [other, ..] => Err(self.error(format!("selector {other}, expected 0 or 1"))),
            [] => Err(self.error("no selector")),
        }
    }

    /// Reads at most `most` bytes of UTF-8.
    ///
    /// # Errors
    /// If it is longer, or not UTF-8.
    pub fn text(self, most: usize) -> Result<&'a str, SszError> {
        let bytes = self.list(most)?;
        std::str::from_utf8(bytes)
            .map_err(|error| self.error_at(error.valid_up_to(), "invalid UTF-8"))
    }
}

/// A list of lists of bytes whose offsets were checked.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    part: Part<'a>,
    count: usize,
}

impl<'a> Items<'a> {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Reports whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns an item; `None` behind the last one.
    pub fn get(&self, at: usize) -> Option<&'a [u8]> {
        (at < self.count).then(|| self.item(at))
    }

    /// Returns an item below the count.
    fn item(&self, at: usize) -> &'a [u8] {
        &self.part.bytes[self.start(at)..self.start(at + 1)]
    }

    /// Returns the position at which an item starts, or that of the end.
    fn start(&self, at: usize) -> usize {
        match at == self.count {
            true => self.part.bytes.len(),
            false => {
                let offset = self.part.offset(at * OFFSET);
                offset.expect("all offsets were checked when the list was read")
            }
        }
    }

    /// Returns all items, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let items = *self;
        (0..self.count).map(move |at| items.item(at))
    }

    /// Returns the number of bytes of all items together.
    pub fn total(&self) -> usize {
        self.part.bytes.len() - self.count * OFFSET
    }

    /// Returns the encoding.
    pub fn encoded(self) -> &'a [u8] {
        self.part.bytes
    }
}

impl PartialEq for Items<'_> {
    fn eq(&self, other: &Self) -> bool {
        // A list has one encoding, so equal lists have equal bytes, wherever they are in their messages.
        self.encoded() == other.encoded()
    }
}

impl Eq for Items<'_> {}

/// Writes fixed parts and offsets, then the variable parts.
///
/// Callers keep messages below 4 GiB, the reach of offsets: they write messages that they have read, or check lengths first.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    /// The position at which the container begins.
    from: usize,
    /// The length of its fixed part.
    fixed: usize,
    /// The positions of the offsets of its variable fields.
    offsets: Vec<usize>,
    written: usize,
}

impl Writer {
    /// Starts a container whose fixed part has `fixed` bytes, behind the bytes that are already written.
    pub fn new(bytes: Vec<u8>, fixed: usize) -> Self {
        let from = bytes.len();
        Self { bytes, from, fixed, offsets: vec![], written: 0 }
    }

    /// Writes a fixed field.
    #[must_use]
    pub fn fixed(mut self, field: &[u8]) -> Self {
        self.bytes.extend_from_slice(field);
        self
    }

    /// Leaves room for an offset.
    #[must_use]
    pub fn offset(mut self) -> Self {
        self.offsets.push(self.bytes.len());
        self.bytes.extend_from_slice(&[0; OFFSET]);
        self
    }

    /// Writes the offset of a variable field that is sent separately.
    #[must_use]
    pub fn offset_to(mut self, position: usize) -> Self {
        self.bytes.extend_from_slice(&encoded(position));
        self
    }

    /// Writes the next variable field.
    ///
    /// # Panics
    /// If there is no offset for it, or it starts behind 4 GiB.
    #[must_use]
    pub fn variable(mut self, write: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Self {
        // Offsets are only right behind a complete fixed part.
        debug_assert!(self.written > 0 || self.bytes.len() == self.from + self.fixed);
        let position = self.offsets[self.written];
        let offset = encoded(self.bytes.len() - self.from);
        self.bytes[position..position + OFFSET].copy_from_slice(&offset);
        self.written += 1;
        self.bytes = write(self.bytes);
        self
    }

    /// Returns the bytes that were written.
    pub fn end(self) -> Vec<u8> {
        debug_assert_eq!(self.written, self.offsets.len());
        self.bytes
    }
}

/// Encodes an offset.
fn encoded(offset: usize) -> [u8; OFFSET] {
    u32::try_from(offset).expect("messages are below 4 GiB: see `Writer`").to_le_bytes()
}

/// Appends a list of lists of bytes.
///
/// # Panics
/// If an item starts behind 4 GiB.
pub fn write_items<'a>(
    mut bytes: Vec<u8>,
    items: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
) -> Vec<u8> {
    let mut offset = items.len() * OFFSET;
    for item in items.clone() {
        bytes.extend_from_slice(&encoded(offset));
        offset += item.len();
    }
    for item in items {
        bytes.extend_from_slice(item);
    }
    bytes
}
