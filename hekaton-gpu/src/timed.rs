//! Times of kernels, for measurements.

use crate::device::{Device, Error};
use crate::kernel::Kernel;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A device that waits after each launch, and records the times of kernels.
#[derive(Debug)]
pub struct Timed {
    device: Arc<dyn Device>,
    times: Mutex<BTreeMap<Kernel, Duration>>,
}

impl Timed {
    /// Wraps a device.
    pub fn new(device: &Arc<dyn Device>) -> Arc<Self> {
        Arc::new(Self { device: Arc::clone(device), times: Mutex::default() })
    }

    /// Returns the time of each kernel since the last call.
    pub fn take(&self) -> BTreeMap<Kernel, Duration> {
        std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Device for Timed {
    fn free_memory(&self) -> Result<u64, Error> {
        self.device.free_memory()
    }

    fn limit(&self, bytes: u64) {
        self.device.limit(bytes);
    }

    fn trim(&self) {
        self.device.trim();
    }

    fn allocate(&self, bytes: usize) -> Result<u64, Error> {
        self.device.allocate(bytes)
    }

    fn free(&self, address: u64, bytes: usize) {
        self.device.free(address, bytes);
    }

    fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.device.upload(address, bytes)
    }

    fn upload_beside(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.device.upload_beside(address, bytes)
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.device.download(address, bytes)
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<(), Error> {
        self.device.clear(address, bytes)
    }

    unsafe fn launch(&self, kernel: Kernel, blocks: u32, arguments: &[u8]) -> Result<(), Error> {
        self.device.finish()?;
        let start = Instant::now();
        // SAFETY: the caller's.
        unsafe { self.device.launch(kernel, blocks, arguments) }?;
        self.device.finish()?;
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        *times.entry(kernel).or_default() += start.elapsed();
        Ok(())
    }

    fn finish(&self) -> Result<(), Error> {
        self.device.finish()
    }

    fn name(&self) -> String {
        self.device.name()
    }
}
