//! A body in memory.

use memmap2::MmapMut;
use std::ops::Deref;

/// The size, in bytes, from which a body gets pages of its own.
const LARGE: usize = 1 << 22;

/// A body that has arrived, or the part of it that has arrived so far.
///
/// A large body whose length is announced goes into huge pages where the system has them: faulting in 100 MB page by page takes
/// longer than copying it. Pages are taken as they are written, so announcing a length costs nothing.
#[derive(Debug)]
pub struct Received {
    memory: Memory,
    len: usize,
}

#[derive(Debug)]
enum Memory {
    Heap(Vec<u8>),
    Pages(MmapMut),
}

impl Received {
    /// Reserves memory for a body of the announced length, in bytes. It may turn out longer.
    pub(crate) fn with_room(announced: usize) -> Self {
        let memory = match announced {
            // If that much cannot be mapped, it grows as the body arrives.
            LARGE.. => pages(announced).map_or_else(|| Memory::Heap(Vec::new()), Memory::Pages),
            small => Memory::Heap(Vec::with_capacity(small)),
        };
        Self { memory, len: 0 }
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Memory::Pages(pages) = &mut self.memory {
            if let Some(room) = pages.get_mut(self.len..end) {
                room.copy_from_slice(bytes);
                self.len = end;
                return;
            }
            // The body is longer than announced: it moves to memory that can grow.
            self.memory = Memory::Heap(pages[..self.len].to_vec());
        }
        if let Memory::Heap(heap) = &mut self.memory {
            heap.extend_from_slice(bytes);
        }
        self.len = end;
    }
}

fn pages(len: usize) -> Option<MmapMut> {
    let pages = MmapMut::map_anon(len).ok()?;
    // Without huge pages, small ones will do.
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::HugePage);
    Some(pages)
}

impl From<Vec<u8>> for Received {
    fn from(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len(), memory: Memory::Heap(bytes) }
    }
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::Heap(heap) => heap,
            Memory::Pages(pages) => &pages[..self.len],
        }
    }
}

impl AsRef<[u8]> for Received {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_received_is_there() {
        let part: Vec<u8> = (0..=u8::MAX).cycle().take(100_000).collect();
        for announced in [0, 5, LARGE - 1, LARGE, 4_300_000, 5_000_000] {
            let mut body = Received::with_room(announced);
            // Up to the announced length, and beyond it.
            for count in 1..60 {
                body.push(&part);
                assert_eq!(body.len(), count * part.len());
            }
            assert!(body.chunks_exact(part.len()).all(|found| found == part), "{announced}");
        }
        assert_eq!(Received::from(part.clone())[..], part);
    }
}
