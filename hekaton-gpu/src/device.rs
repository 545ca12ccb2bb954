//! Devices, and memory on them.

use crate::kernel::Kernel;
use bytemuck::Pod;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The reason that a computation failed on a device. After any of these, the CPU can do the computation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver is missing.
    #[error("there is no NVIDIA driver on this machine (libcuda was not found)")]
    NoDriver,
    /// The driver reports an error.
    #[error("GPU {device}: cannot {what}: {why}")]
    Driver {
        /// The number of the device.
        device: usize,
        /// The operation that failed.
        what: String,
        /// The driver's error.
        why: String,
    },
    /// There is not enough memory.
    #[error("GPU {device}: cannot allocate {bytes} bytes ({free} are free)")]
    Memory {
        /// The number of the device.
        device: usize,
        /// The number of bytes requested.
        bytes: usize,
        /// The number of bytes that are free.
        free: usize,
    },
    /// A key is damaged.
    #[error("{why}")]
    Key {
        /// The error of the key.
        why: String,
    },
    /// A vector has a length that the kernels do not take.
    #[error("{what} must be {expected}, not {found}")]
    Size {
        /// Which length.
        what: &'static str,
        /// The lengths that are allowed.
        expected: String,
        /// The length that was found.
        found: usize,
    },
}

/// Memory, copies and launches, in the order in which they are asked for, but for [`Self::upload_beside`].
///
/// A launch returns before it is done; copies to the host wait for earlier launches.
pub trait Device: fmt::Debug + Send + Sync {
    /// Returns the number of bytes that are free.
    ///
    /// # Errors
    /// If the device fails.
    fn free_memory(&self) -> Result<u64, Error>;

    /// Sets the most bytes that allocations and freed memory that is kept for later ones may take together. What is in use is
    /// not taken away.
    fn limit(&self, bytes: u64);

    /// Returns memory that was freed, and is kept for later allocations, to the driver.
    fn trim(&self);

    /// Allocates bytes and returns their address.
    ///
    /// # Errors
    /// If the device has not got them.
    fn allocate(&self, bytes: usize) -> Result<u64, Error>;

    /// Frees an allocation.
    fn free(&self, address: u64, bytes: usize);

    /// Copies bytes to an address.
    ///
    /// # Errors
    /// If the device fails.
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Copies bytes to an address, beside launches and copies that were asked for before, and waits until they are there.
    /// None of those may use the memory.
    ///
    /// # Errors
    /// If the device fails.
    fn upload_beside(&self, address: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Copies bytes from an address.
    ///
    /// # Errors
    /// If the device fails, or has failed in an earlier launch.
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error>;

    /// Sets bytes to zero.
    ///
    /// # Errors
    /// If the device fails.
    fn clear(&self, address: u64, bytes: usize) -> Result<(), Error>;

    /// Launches a kernel in blocks of [`Kernel::threads`] threads.
    ///
    /// # Safety
    /// The arguments must be those of this kernel, with addresses of as much memory as it uses.
    ///
    /// # Errors
    /// If the device fails.
    unsafe fn launch(&self, kernel: Kernel, blocks: u32, arguments: &[u8]) -> Result<(), Error>;

    /// Waits until everything is done.
    ///
    /// # Errors
    /// If the device has failed.
    fn finish(&self) -> Result<(), Error>;

    /// Returns the device's name.
    fn name(&self) -> String;
}

/// A vector in the memory of a device, freed when it is dropped.
#[derive(Debug)]
pub struct Buffer<T> {
    device: Arc<dyn Device>,
    address: u64,
    len: usize,
    /// The number of elements for which there is memory.
    room: usize,
    element: PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// Allocates a vector of `len` elements, which have no value yet.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(device: &Arc<dyn Device>, len: usize) -> Result<Self, Error> {
        let room = len.max(1);
        let address = device.allocate(room * size_of::<T>())?;
        Ok(Self { device: Arc::clone(device), address, len, room, element: PhantomData })
    }

    /// Allocates a vector of zeros.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn zeroed(device: &Arc<dyn Device>, len: usize) -> Result<Self, Error> {
        let buffer = Self::new(device, len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// Copies elements to the device.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn of(device: &Arc<dyn Device>, elements: &[T]) -> Result<Self, Error> {
        let buffer = Self::new(device, elements.len())?;
        device.upload(buffer.address, bytemuck::cast_slice(elements))?;
        Ok(buffer)
    }

    /// Copies elements to the device in place of those that are there.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn write(&self, elements: &[T]) -> Result<(), Error> {
        assert_eq!(elements.len(), self.len, "the lengths of a copy and its place");
        self.device.upload(self.address, bytemuck::cast_slice(elements))
    }

    /// Replaces the elements with those of several vectors, one after the other. Launches that do not use this memory may run
    /// meanwhile; later launches see the new elements.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// # Panics
    /// If there is not enough memory for them.
    pub(crate) fn refill<V: AsRef<[T]>>(
        &mut self,
        vectors: impl IntoIterator<Item = V>,
    ) -> Result<(), Error> {
        self.len = 0;
        for vector in vectors {
            let (vector, at) = (vector.as_ref(), self.address + (self.len * size_of::<T>()) as u64);
            assert!(vector.len() <= self.room - self.len, "a vector is too long for its place");
            self.device.upload_beside(at, bytemuck::cast_slice(vector))?;
            self.len += vector.len();
        }
        Ok(())
    }

    /// Copies the elements from the device.
    ///
    /// # Errors
    /// If the device fails, or has failed before.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        let mut elements = vec![T::zeroed(); self.len];
        self.device.download(self.address, bytemuck::cast_slice_mut(&mut elements))?;
        Ok(elements)
    }

    /// Sets all elements to zero.
    ///
    /// # Errors
    /// If the device fails.
    pub fn clear(&self) -> Result<(), Error> {
        self.device.clear(self.address, self.len * size_of::<T>())
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Reports whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device that has the vector.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Returns the number of elements for which there is memory.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.device.free(self.address, self.room * size_of::<T>());
    }
}

/// Launches a kernel on enough blocks for `count` threads.
///
/// # Safety
/// As for [`Device::launch`].
pub(crate) unsafe fn launch<A: Pod>(
    device: &dyn Device,
    kernel: Kernel,
    count: u32,
    arguments: &A,
) -> Result<(), Error> {
    if count == 0 {
        return Ok(());
    }
    let blocks = count.div_ceil(kernel.threads());
    // SAFETY: the caller's.
    unsafe { device.launch(kernel, blocks, bytemuck::bytes_of(arguments)) }
}
