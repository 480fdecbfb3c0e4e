//! What does the driver report about the link? Its generation and lanes, and the bytes that crossed it.

#![expect(unsafe_code, reason = "NVML is called here")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;

use super::library::Library;

type Init = unsafe extern "C" fn() -> c_int;
type ByUuid = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
type Number = unsafe extern "C" fn(*mut c_void, *mut u32) -> c_int;
type Fields = unsafe extern "C" fn(*mut c_void, c_int, *mut FieldValue) -> c_int;

/// `nvmlFieldValue_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FieldValue {
    field: u32,
    scope: u32,
    timestamp: i64,
    latency: i64,
    kind: u32,
    result: u32,
    value: u64,
}

const TX_BYTES: u32 = 197;
const RX_BYTES: u32 = 198;
/// The counters are 32 bits wide if the driver reports them as unsigned ints.
const UNSIGNED_INT: u32 = 1;

#[derive(Clone, Copy)]
pub(super) struct Nvml {
    by_uuid: ByUuid,
    generation: Number,
    lanes: Number,
    max_generation: Number,
    max_lanes: Number,
    fields: Option<Fields>,
}

/// One GPU, and the last values of its counters.
pub(super) struct Gpu {
    pub(super) id: u32,
    handle: *mut c_void,
    last: Option<(u64, u64)>,
    /// Bytes since the last take: to the device, to the host.
    since: (u64, u64),
    is_counting: bool,
    /// The last known generation and lanes.
    pub(super) link: Option<[u32; 4]>,
}

// SAFETY: the handle is opaque to us, and NVML may be called from any thread.
unsafe impl Send for Gpu {}

impl Nvml {
    pub(super) fn load() -> Option<Self> {
        let library = Library::load("libnvidia-ml.so.1")?;
        let symbol = |name: &CStr| Some(library.symbol(name)?.as_ptr());
        // SAFETY: each name is an NVML function with the signature from its header.
        unsafe {
            let init = transmute::<*mut c_void, Init>(symbol(c"nvmlInit_v2")?);
            if init() != 0 {
                return None;
            }
            Some(Self {
                by_uuid: transmute::<*mut c_void, ByUuid>(symbol(c"nvmlDeviceGetHandleByUUID")?),
                generation: transmute::<*mut c_void, Number>(symbol(c"nvmlDeviceGetCurrPcieLinkGeneration")?),
                lanes: transmute::<*mut c_void, Number>(symbol(c"nvmlDeviceGetCurrPcieLinkWidth")?),
                max_generation: transmute::<*mut c_void, Number>(symbol(
                    c"nvmlDeviceGetMaxPcieLinkGeneration",
                )?),
                max_lanes: transmute::<*mut c_void, Number>(symbol(c"nvmlDeviceGetMaxPcieLinkWidth")?),
                fields: symbol(c"nvmlDeviceGetFieldValues")
                    .map(|address| transmute::<*mut c_void, Fields>(address)),
            })
        }
    }

    pub(super) fn gpu(&self, id: u32, uuid: [u8; 16]) -> Option<Gpu> {
        let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        let name =
            format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        let name = CString::new(name).ok()?;
        let mut handle = null_mut();
        // SAFETY: a C string, and a pointer to store the handle.
        let is_known = unsafe { (self.by_uuid)(name.as_ptr(), &raw mut handle) } == 0;
        is_known.then_some(Gpu {
            id,
            handle,
            last: None,
            since: (0, 0),
            is_counting: self.fields.is_some(),
            link: None,
        })
    }

    /// Generation and lanes, current and max.
    pub(super) fn link(&self, gpu: &Gpu) -> Option<[u32; 4]> {
        let ask = |number: Number| {
            let mut value = 0;
            // SAFETY: a handle from NVML, and a pointer to store the number.
            (unsafe { number(gpu.handle, &raw mut value) } == 0).then_some(value)
        };
        Some([ask(self.generation)?, ask(self.lanes)?, ask(self.max_generation)?, ask(self.max_lanes)?])
    }

    /// Adds the bytes that crossed the link since the last reading. Must be called before 32 bits wrap twice: at 64
    /// GB/s, every 60 ms.
    pub(super) fn look(&self, gpu: &mut Gpu) {
        let Some(fields) = self.fields.filter(|_| gpu.is_counting) else { return };
        let mut values = [
            FieldValue { field: RX_BYTES, ..Default::default() },
            FieldValue { field: TX_BYTES, ..Default::default() },
        ];
        // SAFETY: a handle from NVML, and two values to fill.
        let result = unsafe { fields(gpu.handle, 2, values.as_mut_ptr()) };
        if result != 0 || values.iter().any(|value| value.result != 0) {
            gpu.is_counting = false;
            return;
        }
        let width =
            |value: &FieldValue| if value.kind == UNSIGNED_INT { u64::from(u32::MAX) } else { u64::MAX };
        let now = (values[0].value & width(&values[0]), values[1].value & width(&values[1]));
        if let Some(last) = gpu.last {
            gpu.since.0 += now.0.wrapping_sub(last.0) & width(&values[0]);
            gpu.since.1 += now.1.wrapping_sub(last.1) & width(&values[1]);
        }
        gpu.last = Some(now);
    }
}

impl Gpu {
    /// Bytes to the device and to the host since the last call; `None` if the driver does not count them.
    pub(super) fn take(&mut self) -> Option<(u64, u64)> {
        (self.is_counting && self.last.is_some()).then(|| std::mem::take(&mut self.since))
    }
}
