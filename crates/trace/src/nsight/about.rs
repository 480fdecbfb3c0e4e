//! Who recorded this, where, with which settings, and which warnings did Nsight write?

use super::Reading;
use super::enumeration::Enumeration;
use super::identity::GlobalId;
use crate::model::origin::{Gpu, GpuLimits};
use crate::model::size::Bytes;
use crate::model::stats::LossKind;
use crate::model::track::Place;

/// Max messages kept; a stuck profiler repeats itself.
const MAX_MESSAGES: usize = 20;

impl Reading<'_, '_> {
    pub(super) fn read_about(&mut self) {
        self.read_versions();
        self.read_settings();
        self.read_gpus();
        self.read_processes();
        self.read_diagnostics();
    }

    fn read_versions(&mut self) {
        self.each("META_DATA_EXPORT", &["name", "value"], &mut |reading, row| {
            let (Some(name), Some(value)) = (row.text(0), row.text(1)) else { return };
            let key = match name.as_str() {
                "EXPORT_PRODUCT_VERSION" => "nsys_version",
                "EXPORT_SCHEMA_VERSION" => "schemaVersion",
                _ => return,
            };
            reading.trace.origin().versions.insert(key.to_owned(), value);
        });
        self.each("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs"], &mut |reading, row| {
            reading.trace.origin().base_time_ns = row.integer(0);
        });
    }

    fn read_settings(&mut self) {
        let mut command: Vec<String> = Vec::new();
        self.each("META_DATA_CAPTURE", &["name", "value"], &mut |reading, row| {
            let (Some(name), Some(value)) = (row.text(0), row.text(1)) else { return };
            // Newer versions write per process what older ones write once.
            let name = name.strip_prefix("PROCESS_0:").unwrap_or(&name);
            let setting = match name {
                "COLLECT_UVM_CPU_PAGE_FAULTS" => "cpu_page_faults",
                "COLLECT_UVM_GPU_PAGE_FAULTS" => "gpu_page_faults",
                "COLLECT_GPU_MEMORY_USAGE" => "profile_memory",
                "COMMAND" => {
                    command.insert(0, value);
                    return;
                }
                _ if name.starts_with("ARGUMENT_") => {
                    command.push(value);
                    return;
                }
                _ => return,
            };
            let asked = reading.trace.origin().settings.entry(setting.to_owned()).or_default();
            *asked |= value == "true";
        });
        self.trace.origin().trace_name = (!command.is_empty()).then(|| command.join(" "));
    }

    fn read_gpus(&mut self) {
        const COLUMNS: [&str; 6] = ["id", "name", "totalMemory", "smCount", "computeMajor", "computeMinor"];
        self.each("TARGET_INFO_GPU", &COLUMNS, &mut |reading, row| {
            let Some(id) = row.integer(0).and_then(|id| i32::try_from(id).ok()) else { return };
            reading.devices.list_gpu(id);
            let number = |column| row.integer(column).and_then(|number| u32::try_from(number).ok());
            let gpu = Gpu {
                id,
                name: row.text(1).unwrap_or_default(),
                memory: row.unsigned(2).filter(|bytes| *bytes > 0).map(Bytes::new),
                multiprocessors: number(3).filter(|count| *count > 0),
                compute_capability: number(4).zip(number(5)).filter(|(major, _)| *major > 0),
                link: None,
                limits: GpuLimits::default(),
            };
            if !gpu.name.is_empty() {
                reading.trace.gpu(gpu);
            }
        });
        self.trace.origin().gpus.sort_by_key(|gpu| gpu.id);
        self.each("TARGET_INFO_CUDA_DEVICE", &["gpuId", "cudaId", "pid"], &mut |reading, row| {
            let gpu = row.integer(0).and_then(|gpu| i32::try_from(gpu).ok());
            if let (Some(gpu), Some(device), Some(process)) = (gpu, row.integer(1), row.integer(2)) {
                reading.devices.name_gpu(process, device, gpu);
            }
        });
    }

    fn read_processes(&mut self) {
        self.each("PROCESSES", &["globalPid", "name"], &mut |reading, row| {
            let (Some(id), Some(name)) = (row.integer(0), row.text(1)) else { return };
            let process = reading.processes.label(GlobalId::of(id).process());
            reading.trace.name_process(process, &name);
        });
        self.each("THREADNAMES", &["globalTid", "nameId"], &mut |reading, row| {
            let (Some(id), Some(name)) = (row.integer(0), row.integer(1)) else { return };
            if let Some(name) = reading.strings.get(name).map(str::to_owned) {
                reading.name_thread(GlobalId::of(id), &name);
            }
        });
    }

    pub(super) fn name_thread(&mut self, id: GlobalId, name: &str) {
        let Place::Thread { process, thread } = self.processes.thread(id) else { return };
        self.trace.name_thread(process, thread, name);
    }

    /// Nsight's own warnings. Warnings about events not collected count as losses.
    fn read_diagnostics(&mut self) {
        let severities =
            Enumeration::of(self.database, "ENUM_DIAGNOSTIC_SEVERITY_LEVEL", self.trace.stats_mut());
        self.each("DIAGNOSTIC_EVENT", &["severity", "text"], &mut |reading, row| {
            let (severity, Some(text)) = (row.integer(0).unwrap_or(0), row.text(1)) else { return };
            if is_about_loss(&text) {
                reading.trace.stats_mut().lose_several(LossKind::NotCollected, 1);
            } else if !severities.is(severity, "Warning", 2) && !severities.is(severity, "Error", 3) {
                return;
            }
            let messages = &mut reading.trace.origin().profiler_messages;
            if messages.len() < MAX_MESSAGES && !messages.contains(&text) {
                messages.push(text);
            }
        });
    }
}

/// `Not all CUDA events might have been collected.`, `12 events were dropped`.
fn is_about_loss(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let says = |words: &str| text.contains(words);
    // `Number of dropped events: 0` means none.
    let is_none = text.trim_end_matches('.').ends_with(": 0") || text.trim_end_matches('.').ends_with("\t0");
    // Ranges and calls of other libraries are no GPU work.
    let is_other = ["nvtx", "opengl", "vulkan", "os runtime"].into_iter().any(says);
    !is_other && (says("not all") || says("dropped") || says("were lost") || says("incomplete")) && !is_none
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_loss_are_recognized() {
        assert!(is_about_loss("Not all CUDA events might have been collected."));
        assert!(is_about_loss("CUPTI buffers dropped: 3."));
        assert!(!is_about_loss("Number of dropped events: 0."));
        assert!(!is_about_loss("Not all NVTX events might have been collected."));
        assert!(!is_about_loss("Number of CUDA events collected: \t2432."));
    }
}
