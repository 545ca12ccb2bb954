//! A bump allocator that reuses only the last allocation: cycles are expensive, and there are almost 500 MB.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;

unsafe extern "C" {
    /// The first and the last address, from the link script.
    static __heap_start: u8;
    static __heap_end: u8;
}

struct Heap {
    /// The end of the allocated memory; 0 before the first allocation.
    next: UnsafeCell<usize>,
    /// The highest end so far: the memory above it is still zero.
    most: UnsafeCell<usize>,
}

// SAFETY: there is one thread.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap { next: UnsafeCell::new(0), most: UnsafeCell::new(0) };

impl Heap {
    /// Moves the end of the allocated memory; returns `false` if that would exceed the heap.
    fn set(&self, next: usize) -> bool {
        // SAFETY: there is one thread, and neither reference leaves this function. The symbol has an address only.
        let (place, most) = unsafe { (&mut *self.next.get(), &mut *self.most.get()) };
        if next > (&raw const __heap_end) as usize {
            return false;
        }
        *place = next;
        *most = next.max(*most);
        true
    }

    fn next(&self) -> usize {
        // SAFETY: there is one thread.
        match unsafe { *self.next.get() } {
            0 => (&raw const __heap_start) as usize,
            next => next,
        }
    }
}

// SAFETY: allocations are aligned, lie inside the heap, and do not overlap.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.next().next_multiple_of(layout.align());
        match start.checked_add(layout.size()) {
            Some(end) if self.set(end) => start as *mut u8,
            _ => core::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if pointer as usize + layout.size() == self.next() {
            self.set(pointer as usize);
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: there is one thread.
        let written = unsafe { *self.most.get() };
        // SAFETY: the layout is the caller's.
        let pointer = unsafe { self.alloc(layout) };
        let old = written.saturating_sub(pointer as usize).min(layout.size());
        if !pointer.is_null() {
            // SAFETY: these bytes were just allocated.
            unsafe { pointer.write_bytes(0, old) };
        }
        pointer
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if pointer as usize + layout.size() == self.next() {
            return match (pointer as usize).checked_add(size) {
                Some(end) if self.set(end) => pointer,
                _ => core::ptr::null_mut(),
            };
        }
        if size <= layout.size() {
            return pointer;
        }
        // SAFETY: the size is not 0 and does not overflow when it is rounded up to the alignment, by the caller's promise; and the
        // new memory does not overlap the old one.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                new.copy_from_nonoverlapping(pointer, layout.size());
            }
            new
        }
    }
}
