//! Which GPUs does the process see? CUPTI reports them when a process begins to use CUDA; a recorder that starts later asks the driver.

#![expect(unsafe_code, reason = "the CUDA driver is called here")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;

use super::definitions::Described;
use super::library::{Library, text_at};

type Count = unsafe extern "C" fn(*mut c_int) -> c_int;
type Get = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type Name = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
type Memory = unsafe extern "C" fn(*mut usize, c_int) -> c_int;
type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
type Uuid = unsafe extern "C" fn(*mut [u8; 16], c_int) -> c_int;

const MULTIPROCESSORS: c_int = 16;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;

/// Each with its UUID; none if the driver is not loaded. Must not be called while the driver initializes.
pub(super) fn gpus() -> Vec<(Described, [u8; 16])> {
    all().unwrap_or_default()
}

fn all() -> Option<Vec<(Described, [u8; 16])>> {
    let library = Library::loaded("libcuda.so.1")?;
    let symbol = |name: &CStr| Some(library.symbol(name)?.as_ptr());
    // SAFETY: each name is a function of the driver with the signature from its header. They need no context.
    unsafe {
        let count = transmute::<*mut c_void, Count>(symbol(c"cuDeviceGetCount")?);
        let get = transmute::<*mut c_void, Get>(symbol(c"cuDeviceGet")?);
        let name_of = transmute::<*mut c_void, Name>(symbol(c"cuDeviceGetName")?);
        let memory_of = transmute::<*mut c_void, Memory>(symbol(c"cuDeviceTotalMem_v2")?);
        let attribute_of = transmute::<*mut c_void, Attribute>(symbol(c"cuDeviceGetAttribute")?);
        let uuid_of = transmute::<*mut c_void, Uuid>(symbol(c"cuDeviceGetUuid")?);
        let mut gpus = 0;
        if count(&raw mut gpus) != 0 {
            return None;
        }
        let one = |number: c_int| {
            let (mut device, mut memory, mut name, mut uuid) = (0, 0, [0; 256], [0; 16]);
            let is_known = get(&raw mut device, number) == 0
                && name_of(name.as_mut_ptr(), 255, device) == 0
                && memory_of(&raw mut memory, device) == 0
                && uuid_of(&raw mut uuid, device) == 0;
            let attribute = |which| {
                let mut value = 0;
                let is_known = attribute_of(&raw mut value, which, device) == 0;
                u32::try_from(value).ok().filter(|_| is_known)
            };
            let described = Described {
                id: u32::try_from(number).ok()?,
                name: text_at(name.as_ptr() as usize).to_vec(),
                memory: memory as u64,
                multiprocessors: attribute(MULTIPROCESSORS)?,
                capability: (attribute(CAPABILITY_MAJOR)?, attribute(CAPABILITY_MINOR)?),
            };
            is_known.then_some((described, uuid))
        };
        Some((0..gpus).filter_map(one).collect())
    }
}
