//! SSZ as slices into the message: nothing is copied, and nothing is allocated before it was checked.
//!
//! [Simple Serialize](https://github.com/ethereum/consensus-specs/blob/master/ssz/simple-serialize.md) puts the fixed parts of a
//! container or list first, with offsets of 4 bytes, little-endian, for the variable ones. Messages have exactly one encoding here:
//! the first offset is the length of the fixed part, offsets do not fall, the last part ends where the message does.

/// A message, or a part of one, that is not the encoding of its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}, {part}: {why}")]
pub struct SszError {
    /// The place, in bytes from the beginning of the message.
    pub at: usize,
    /// The part of the message.
    pub part: &'static str,
    /// The fault.
    pub why: String,
}

/// The bytes of an offset.
pub(crate) const OFFSET: usize = 4;

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    bytes: &'a [u8],
    /// The place in the message at which it begins.
    at: usize,
    name: &'static str,
}

/// A field of a container.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field {
    /// A field of the given number of bytes.
    Fixed(&'static str, usize),
    /// A field of any length.
    Variable(&'static str),
}

impl<'a> Part<'a> {
    /// A whole message.
    pub(crate) fn message(bytes: &'a [u8], name: &'static str) -> Self {
        Self { bytes, at: 0, name }
    }

    pub(crate) fn error(self, why: impl Into<String>) -> SszError {
        SszError { at: self.at, part: self.name, why: why.into() }
    }

    /// The offset at a place of the fixed part.
    fn offset(self, place: usize) -> Result<usize, SszError> {
        let found = self.bytes.get(place..place + OFFSET).and_then(|bytes| bytes.try_into().ok());
        let found: [u8; OFFSET] = found.ok_or_else(|| self.error("it ends in an offset"))?;
        let offset = usize::try_from(u32::from_le_bytes(found)).unwrap_or(usize::MAX);
        if offset > self.bytes.len() {
            let (at, length) = (self.at + place, self.bytes.len());
            let why = format!("the offset {offset} is behind the end at {length}");
            return Err(SszError { at, part: self.name, why });
        }
        Ok(offset)
    }

    fn part(self, from: usize, to: usize, name: &'static str) -> Self {
        Self { bytes: &self.bytes[from..to], at: self.at + from, name }
    }

    /// The fields of a container.
    pub(crate) fn container<const N: usize>(
        self,
        fields: [Field; N],
    ) -> Result<[Self; N], SszError> {
        let sizes = fields.map(|field| match field {
            Field::Fixed(_, size) => size,
            Field::Variable(_) => OFFSET,
        });
        let fixed: usize = sizes.iter().sum();
        if self.bytes.len() < fixed {
            let why = format!("it has {} bytes, and at least {fixed} are needed", self.bytes.len());
            return Err(self.error(why));
        }
        let mut found = [self; N];
        let (mut place, mut end) = (0, fixed);
        // The variable field whose end is not known yet.
        let mut open: Option<(usize, usize)> = None;
        for (at, field) in fields.iter().enumerate() {
            match *field {
                Field::Fixed(name, size) => found[at] = self.part(place, place + size, name),
                Field::Variable(name) => {
                    let offset = self.offset(place)?;
                    if open.is_none() && offset != fixed {
                        let why = format!("the first offset is {offset} and must be {fixed}");
                        return Err(SszError { at: self.at + place, part: name, why });
                    }
                    if offset < end {
                        let why = format!("the offset {offset} is before {end}, the one before it");
                        return Err(SszError { at: self.at + place, part: name, why });
                    }
                    if let Some((before, from)) = open {
                        found[before] = self.part(from, offset, found[before].name);
                    }
                    found[at].name = name;
                    (open, end) = (Some((at, offset)), offset);
                }
            }
            place += sizes[at];
        }
        match open {
            Some((last, from)) => {
                found[last] = self.part(from, self.bytes.len(), found[last].name);
            }
            None if self.bytes.len() != fixed => {
                let why = format!("it has {} bytes, and must have {fixed}", self.bytes.len());
                return Err(self.error(why));
            }
            None => {}
        }
        Ok(found)
    }

    /// A list of lists of bytes.
    pub(crate) fn items(self, most: usize, most_bytes: usize) -> Result<Items<'a>, SszError> {
        if self.bytes.is_empty() {
            return Ok(Items { part: self, count: 0 });
        }
        let first = self.offset(0)?;
        if first == 0 || first % OFFSET != 0 {
            return Err(self.error(format!("the first offset {first} is not that of a list")));
        }
        let count = first / OFFSET;
        if count > most {
            return Err(self.error(format!("it has {count} items, and {most} are allowed")));
        }
        let items = Items { part: self, count };
        let mut before = first;
        for at in 1..=count {
            let next = if at == count { self.bytes.len() } else { self.offset(at * OFFSET)? };
            if next < before {
                let why = format!("the offset {next} is before {before}, the one before it");
                return Err(SszError { at: self.at + at * OFFSET, part: self.name, why });
            }
            if next - before > most_bytes {
                let why = format!(
                    "item {} has {} bytes, and {most_bytes} are allowed",
                    at - 1,
                    next - before
                );
                return Err(SszError { at: self.at + before, part: self.name, why });
            }
            before = next;
        }
        Ok(items)
    }

    /// A list of elements of a fixed size.
    pub(crate) fn elements(self, size: usize, most: usize) -> Result<&'a [u8], SszError> {
        let length = self.bytes.len();
        if !length.is_multiple_of(size) {
            return Err(self.error(format!("{length} bytes are not elements of {size}")));
        }
        let count = length / size;
        if count > most {
            return Err(self.error(format!("it has {count} elements, and {most} are allowed")));
        }
        Ok(self.bytes)
    }

    /// A list of bytes.
    pub(crate) fn list(self, most: usize) -> Result<&'a [u8], SszError> {
        self.elements(1, most)
    }

    /// Bytes of a fixed length.
    pub(crate) fn array<const N: usize>(self) -> Result<&'a [u8; N], SszError> {
        let length = self.bytes.len();
        let found = self.bytes.try_into();
        found.map_err(|_| self.error(format!("it has {length} bytes, and must have {N}")))
    }

    /// An unsigned integer of 64 bits.
    pub(crate) fn u64(self) -> Result<u64, SszError> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// A list of at most one element of variable length.
    pub(crate) fn at_most_one(self) -> Result<Option<Self>, SszError> {
        let items = self.items(1, usize::MAX)?;
        Ok((items.count == 1).then(|| self.part(OFFSET, self.bytes.len(), self.name)))
    }

    /// A union of nothing (selector 0) and something (selector 1).
    pub(crate) fn union(self) -> Result<Option<Self>, SszError> {
        match self.bytes {
            [0] => Ok(None),
            [1, ..] => Ok(Some(self.part(1, self.bytes.len(), self.name))),
            [0, ..] => Err(self.error("there are bytes behind the selector 0, which is nothing")),
            [other, ..] => Err(self.error(format!("the selector {other} is neither 0 nor 1"))),
            [] => Err(self.error("it has no selector")),
        }
    }

    /// UTF-8 of a limited length.
    pub(crate) fn text(self, most: usize) -> Result<&'a str, SszError> {
        let bytes = self.list(most)?;
        std::str::from_utf8(bytes).map_err(|error| SszError {
            at: self.at + error.valid_up_to(),
            part: self.name,
            why: "it is not UTF-8".into(),
        })
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

    /// Returns an item.
    pub fn get(&self, at: usize) -> Option<&'a [u8]> {
        let offset = |at: usize| match at == self.count {
            true => Some(self.part.bytes.len()),
            false => self.part.offset(at * OFFSET).ok(),
        };
        (at < self.count).then(|| offset(at).zip(offset(at + 1)))?.and_then(|(from, to)| {
            // The offsets were checked when the list was read.
            self.part.bytes.get(from..to)
        })
    }

    /// Returns all items, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let items = *self;
        (0..self.count).map(move |at| items.get(at).unwrap_or_default())
    }

    /// The bytes of all items together.
    pub fn total(&self) -> usize {
        self.part.bytes.len() - self.count * OFFSET
    }

    /// Returns the encoding.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.part.bytes
    }
}

impl PartialEq for Items<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Items<'_> {}

/// Writes fixed parts and offsets, then the variable parts.
#[derive(Debug)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    /// The place at which the container begins.
    from: usize,
    /// The length of its fixed part.
    fixed: usize,
    /// The places of the offsets of its variable fields.
    offsets: Vec<usize>,
    written: usize,
}

impl Writer {
    /// Starts a container whose fixed part has `fixed` bytes, behind the bytes that are already written.
    pub(crate) fn new(bytes: Vec<u8>, fixed: usize) -> Self {
        let from = bytes.len();
        Self { bytes, from, fixed, offsets: vec![], written: 0 }
    }

    pub(crate) fn fixed(mut self, field: &[u8]) -> Self {
        self.bytes.extend_from_slice(field);
        self
    }

    /// Leaves room for an offset.
    pub(crate) fn offset(mut self) -> Self {
        self.offsets.push(self.bytes.len());
        self.bytes.extend_from_slice(&[0; OFFSET]);
        self
    }

    /// Writes the next variable field.
    pub(crate) fn variable(mut self, write: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Self {
        debug_assert!(self.written > 0 || self.bytes.len() == self.from + self.fixed);
        let offset = u32::try_from(self.bytes.len() - self.from).unwrap_or(u32::MAX);
        let place = self.offsets[self.written];
        self.bytes[place..place + OFFSET].copy_from_slice(&offset.to_le_bytes());
        self.written += 1;
        self.bytes = write(self.bytes);
        self
    }

    pub(crate) fn end(self) -> Vec<u8> {
        debug_assert_eq!(self.written, self.offsets.len());
        self.bytes
    }
}

/// Appends a list of lists of bytes.
pub(crate) fn write_items<'a>(
    mut bytes: Vec<u8>,
    items: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
) -> Vec<u8> {
    let mut offset = items.len() * OFFSET;
    for item in items.clone() {
        bytes.extend_from_slice(&u32::try_from(offset).unwrap_or(u32::MAX).to_le_bytes());
        offset += item.len();
    }
    for item in items {
        bytes.extend_from_slice(item);
    }
    bytes
}
