//! NVIDIA's devices, through the driver alone.

use crate::device::{Device, Error};
use crate::kernel::Kernel;
use crate::pool::Pool;
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DriverError, result, sys};
use cudarc::nvrtc::Ptx;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kernels, compiled by `scripts/gpu-kernels`.
const PTX: &str = include_str!("../kernels/kernels.ptx");

/// A GPU with the kernels loaded.
#[derive(Debug)]
pub struct Cuda {
    number: usize,
    context: Arc<CudaContext>,
    functions: Vec<CudaFunction>,
    /// For copies beside launches: the launches' own order is another.
    copies: Arc<CudaStream>,
    /// Freed memory, since allocations of the driver take long. All launches are in one order, so a launch that still uses
    /// freed memory ends before a later one that reuses it.
    pool: Mutex<Pool>,
}

/// Returns the number of devices.
///
/// # Errors
/// If the driver is missing or fails.
pub fn count() -> Result<usize, Error> {
    // SAFETY: only looks for the library.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::NoDriver);
    }
    let count = CudaContext::device_count().map_err(|error| failed(0, "be counted", error))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Opens a device, and has its driver compile the kernels, which takes seconds the first time.
///
/// # Errors
/// If the driver or the device is missing, or the driver fails.
pub fn open(number: usize) -> Result<Arc<dyn Device>, Error> {
    Ok(Arc::new(Cuda::new(number, PTX.as_bytes())?))
}

fn failed(device: usize, what: impl Into<String>, error: DriverError) -> Error {
    Error::Driver { device, what: what.into(), why: error.to_string() }
}

impl Cuda {
    /// Opens a device with kernels as PTX or as a cubin for it.
    ///
    /// # Errors
    /// As for [`open`].
    pub fn new(number: usize, kernels: &[u8]) -> Result<Self, Error> {
        count()?;
        let image = match std::str::from_utf8(kernels) {
            Ok(ptx) => Ptx::from_src(ptx),
            Err(_) => Ptx::from_binary(kernels.to_vec()),
        };
        let error = |what: &'static str| move |error| failed(number, what, error);
        let context = CudaContext::new(number).map_err(error("be opened"))?;
        let module = context.load_module(image).map_err(error("load the kernels"))?;
        let load = |kernel: &Kernel| module.load_function(kernel.name());
        let loaded = Kernel::ALL.iter().map(load).collect::<Result<_, _>>();
        let functions = loaded.map_err(error("find a kernel"))?;
        let copies = context.new_stream().map_err(error("copy beside other work"))?;
        Ok(Self { number, context, functions, copies, pool: Mutex::default() })
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the device the current one of this thread.
    fn bind(&self) -> Result<(), Error> {
        self.context.bind_to_thread().map_err(|error| failed(self.number, "be used", error))
    }
}

impl Device for Cuda {
    fn free_memory(&self) -> Result<u64, Error> {
        self.bind()?;
        let (free, _) = (self.context.mem_get_info())
            .map_err(|error| failed(self.number, "say how much memory is free", error))?;
        Ok(free as u64)
    }

    fn limit(&self, bytes: u64) {
        self.pool().limit = bytes;
    }

    fn trim(&self) {
        // A device that cannot be used has lost its memory with everything else.
        if self.bind().is_err() {
            return;
        }
        for address in self.pool().drain() {
            // SAFETY: the address is of `allocate`, and nothing uses it. If the device is lost, so is its memory.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    fn allocate(&self, bytes: usize) -> Result<u64, Error> {
        self.bind()?;
        if let Some(address) = self.pool().take(bytes) {
            return Ok(address);
        }
        if self.pool().must_be_trimmed(bytes) {
            self.trim();
        }
        // SAFETY: the memory is not read before it is written: kernels and copies see to that.
        let allocate = || unsafe { result::malloc_sync(bytes) };
        let is_memory = |error: &DriverError| error.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        let allocated = allocate().or_else(|error| {
            if is_memory(&error) {
                self.trim();
            }
            allocate()
        });
        match allocated {
            Ok(address) => {
                self.pool().has_got(bytes);
                Ok(address)
            }
            Err(error) if is_memory(&error) => {
                let free = self.context.mem_get_info().map_or(0, |(free, _)| free);
                Err(Error::Memory { device: self.number, bytes, free })
            }
            // A lost device, which has no memory either.
            Err(error) => Err(failed(self.number, format!("allocate {bytes} bytes"), error)),
        }
    }

    fn free(&self, address: u64, bytes: usize) {
        self.pool().put(address, bytes);
    }

    fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.bind()?;
        // SAFETY: buffers copy as many bytes as they have.
        unsafe { result::memcpy_htod_sync(address, bytes) }.map_err(|error| {
            failed(self.number, format!("copy {} bytes to it", bytes.len()), error)
        })
    }

    fn upload_beside(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.bind()?;
        // SAFETY: as in `upload`; the copy has ended before this returns.
        unsafe { result::memcpy_htod_async(address, bytes, self.copies.cu_stream()) }
            .and_then(|()| self.copies.synchronize())
            .map_err(|error| {
                failed(self.number, format!("copy {} bytes to it", bytes.len()), error)
            })
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.bind()?;
        let len = bytes.len();
        // SAFETY: as in `upload`.
        unsafe { result::memcpy_dtoh_sync(bytes, address) }
            .map_err(|error| failed(self.number, format!("copy {len} bytes from it"), error))
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<(), Error> {
        self.bind()?;
        // SAFETY: as in `upload`.
        unsafe { result::memset_d8_sync(address, 0, bytes) }
            .map_err(|error| failed(self.number, "set memory to zero", error))
    }

    unsafe fn launch(&self, kernel: Kernel, blocks: u32, arguments: &[u8]) -> Result<(), Error> {
        self.bind()?;
        let mut pointers = [arguments.as_ptr().cast_mut().cast::<c_void>()];
        let (grid, block) = ((blocks, 1, 1), (kernel.threads(), 1, 1));
        // SAFETY: the caller vouches for the arguments, which the driver copies before it returns.
        unsafe {
            let function = self.functions[kernel as usize].cu_function();
            result::launch_kernel(function, grid, block, 0, std::ptr::null_mut(), &mut pointers)
        }
        .map_err(|error| failed(self.number, format!("launch {}", kernel.name()), error))
    }

    fn finish(&self) -> Result<(), Error> {
        self.context.synchronize().map_err(|error| failed(self.number, "finish", error))
    }

    fn name(&self) -> String {
        self.context.name().unwrap_or_else(|error| format!("GPU {}: {error}", self.number))
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        self.trim();
    }
}
