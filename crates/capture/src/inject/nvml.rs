//! What does the driver report about the link? Its generation and lanes, and the bytes that crossed it.

#![expect(unsafe_code, reason = "NVML is called here")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;

use super::library::Library;

type Init = unsafe extern "C" fn() -> c_int;
type ByUuid = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
type Number = unsafe extern "C" fn(*mut c_void, *mut u32) -> c_int;
type Text = unsafe extern "C" fn(*mut c_char, u32) -> c_int;
type Clock = unsafe extern "C" fn(*mut c_void, c_int, *mut u32) -> c_int;
type Processes = unsafe extern "C" fn(*mut c_void, *mut u32, *mut c_void) -> c_int;
type PciInfo = unsafe extern "C" fn(*mut c_void, *mut PciAddress) -> c_int;
type Confidential = unsafe extern "C" fn(*mut ConfidentialState) -> c_int;
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

/// `nvmlConfComputeSystemState_t`.
#[repr(C)]
#[derive(Default)]
struct ConfidentialState {
    environment: u32,
    is_enabled: u32,
    has_development_tools: u32,
}

/// `nvmlPciInfo_t`.
#[repr(C)]
struct PciAddress {
    legacy: [u8; 16],
    numbers: [u32; 5],
    address: [u8; 32],
}

/// What crosses the link to the host, and to the device.
#[derive(Clone, Copy)]
pub(super) enum Counter {
    ToDevice,
    ToHost,
}

impl Counter {
    pub(super) const BOTH: [Self; 2] = [Self::ToDevice, Self::ToHost];

    /// NVML's number of the field: what the GPU receives, and what it sends.
    const fn field(self) -> u32 {
        match self {
            Self::ToDevice => 198,
            Self::ToHost => 197,
        }
    }
}

/// NVML's number of the clock of the multiprocessors.
const MULTIPROCESSORS: c_int = 1;
/// NVML's texts are shorter.
const LONGEST_TEXT: usize = 96;

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
    processes: Option<Processes>,
    pci: Option<PciInfo>,
    confidential: Option<Confidential>,
    driver: Option<Text>,
    max_clock: Option<Clock>,
    power_limit: Option<Number>,
}

/// One GPU and its counters.
pub(super) struct Gpu {
    pub(super) id: u32,
    handle: *mut c_void,
    /// The last value of each counter.
    last: [Option<u64>; 2],
    is_counting: bool,
    /// Whether it is known that other processes use it.
    pub(super) is_shared: bool,
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
                processes: symbol(c"nvmlDeviceGetComputeRunningProcesses_v3")
                    .map(|address| transmute::<*mut c_void, Processes>(address)),
                pci: symbol(c"nvmlDeviceGetPciInfo_v3")
                    .map(|address| transmute::<*mut c_void, PciInfo>(address)),
                confidential: symbol(c"nvmlSystemGetConfComputeState")
                    .map(|address| transmute::<*mut c_void, Confidential>(address)),
                driver: symbol(c"nvmlSystemGetDriverVersion")
                    .map(|address| transmute::<*mut c_void, Text>(address)),
                max_clock: symbol(c"nvmlDeviceGetMaxClockInfo")
                    .map(|address| transmute::<*mut c_void, Clock>(address)),
                power_limit: symbol(c"nvmlDeviceGetEnforcedPowerLimit")
                    .map(|address| transmute::<*mut c_void, Number>(address)),
                fields: symbol(c"nvmlDeviceGetFieldValues")
                    .map(|address| transmute::<*mut c_void, Fields>(address)),
            })
        }
    }

    /// Whether confidential computing is on; drivers without the function have none.
    pub(super) fn is_confidential(&self) -> bool {
        let mut state = ConfidentialState::default();
        // SAFETY: room for the answer.
        self.confidential.is_some_and(|ask| unsafe { ask(&raw mut state) } == 0) && state.is_enabled == 1
    }

    /// The version of the driver: `580.159.04`.
    pub(super) fn driver(&self) -> Option<String> {
        let mut text = [0_u8; LONGEST_TEXT];
        // SAFETY: room for the text, and its size.
        if unsafe { (self.driver?)(text.as_mut_ptr().cast(), LONGEST_TEXT as u32) } != 0 {
            return None;
        }
        Some(CStr::from_bytes_until_nul(&text).ok()?.to_str().ok()?.to_owned())
    }

    /// The highest clock of a GPU's multiprocessors, in MHz.
    pub(super) fn max_clock(&self, gpu: &Gpu) -> Option<u32> {
        let mut clock = 0;
        // SAFETY: a handle from NVML, and a pointer to store the clock.
        (unsafe { (self.max_clock?)(gpu.handle, MULTIPROCESSORS, &raw mut clock) } == 0).then_some(clock)
    }

    /// The power that the driver keeps a GPU below, in milliwatts.
    pub(super) fn power_limit(&self, gpu: &Gpu) -> Option<u32> {
        let mut power = 0;
        // SAFETY: a handle from NVML, and a pointer to store the power.
        (unsafe { (self.power_limit?)(gpu.handle, &raw mut power) } == 0).then_some(power)
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
            last: [None; 2],
            is_counting: self.fields.is_some(),
            is_shared: false,
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

    /// The PCI address of a GPU: `00000000:B7:00.0`.
    pub(super) fn address(&self, gpu: &Gpu) -> Option<String> {
        let mut found = PciAddress { legacy: [0; 16], numbers: [0; 5], address: [0; 32] };
        // SAFETY: a handle from NVML, and room for its answer.
        if unsafe { (self.pci?)(gpu.handle, &raw mut found) } != 0 {
            return None;
        }
        Some(CStr::from_bytes_until_nul(&found.address).ok()?.to_str().ok()?.to_owned())
    }

    /// Whether other processes use the GPU too; their traffic is in its counters.
    pub(super) fn is_shared(&self, gpu: &Gpu) -> bool {
        let Some(processes) = self.processes else { return false };
        let mut count = 0;
        // SAFETY: a handle from NVML; without room for the list, only the number is stored.
        unsafe { processes(gpu.handle, &raw mut count, null_mut()) };
        count > 1
    }

    /// Bytes that crossed the link since the last call; `None` the first time, and if the driver does not count them. Must be
    /// called before 32 bits wrap twice: at 64 GB/s, every 60 ms. One counter per call: while the link is busy, a reading
    /// waits for it, and the time of the reading would be that of the other one.
    pub(super) fn crossed(&self, gpu: &mut Gpu, counter: Counter) -> Option<u64> {
        let fields = self.fields.filter(|_| gpu.is_counting)?;
        let mut value = FieldValue { field: counter.field(), ..Default::default() };
        // SAFETY: a handle from NVML, and one value to fill.
        let result = unsafe { fields(gpu.handle, 1, &raw mut value) };
        if result != 0 || value.result != 0 {
            gpu.is_counting = false;
            return None;
        }
        let width = if value.kind == UNSIGNED_INT { u64::from(u32::MAX) } else { u64::MAX };
        let now = value.value & width;
        let last = gpu.last[counter as usize].replace(now)?;
        Some(now.wrapping_sub(last) & width)
    }
}
