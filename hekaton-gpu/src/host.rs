//! A device that runs the kernels on the CPU, one thread after the other: slowly, but with the same logic.

use crate::device::{Device, Error};
use crate::kernel::{Kernel, host::function};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// The host as a device, for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host;

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 16).expect("the size of a vector")
}

impl Device for Host {
    fn free_memory(&self) -> Result<u64, Error> {
        Ok(1 << 32)
    }

    fn limit(&self, _: u64) {}

    fn trim(&self) {}

    fn allocate(&self, bytes: usize) -> Result<u64, Error> {
        // SAFETY: the size is not zero, as buffers have at least one element.
        let at = unsafe { alloc(layout(bytes)) };
        if at.is_null() {
            handle_alloc_error(layout(bytes));
        }
        // Not zero, so that a kernel that reads memory before it writes it fails a check.
        // SAFETY: the bytes were just allocated.
        unsafe { at.write_bytes(0xa5, bytes) };
        Ok(at as u64)
    }

    fn free(&self, address: u64, bytes: usize) {
        // SAFETY: `allocate` returned the address for this size, and a buffer frees it once.
        unsafe { dealloc(address as *mut u8, layout(bytes)) };
    }

    fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        // SAFETY: buffers copy as many bytes as they have.
        unsafe { (address as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    fn upload_beside(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.upload(address, bytes)
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        // SAFETY: as in `upload`.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(address as *const u8, bytes.len()) };
        Ok(())
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<(), Error> {
        // SAFETY: as in `upload`.
        unsafe { (address as *mut u8).write_bytes(0, bytes) };
        Ok(())
    }

    unsafe fn launch(&self, kernel: Kernel, blocks: u32, arguments: &[u8]) -> Result<(), Error> {
        // SAFETY: the arguments are the kernel's, which the caller vouches for.
        unsafe { function(kernel)(arguments.as_ptr().cast(), blocks, kernel.threads()) };
        Ok(())
    }

    fn finish(&self) -> Result<(), Error> {
        Ok(())
    }

    fn name(&self) -> String {
        "host".into()
    }
}
