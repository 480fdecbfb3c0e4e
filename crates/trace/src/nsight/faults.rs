//! Who accessed managed memory that was not resident? Page faults of the GPU and of the host.

use super::Reading;
use super::identity::GlobalId;
use crate::model::managed::Faults;

impl Reading<'_, '_> {
    pub(super) fn read_faults(&mut self) {
        self.read_gpu_faults();
        self.read_host_faults();
    }

    fn read_gpu_faults(&mut self) {
        const TABLE: &str = "CUDA_UM_GPU_PAGE_FAULT_EVENTS";
        const COLUMNS: [&str; 6] = ["start", "end", "deviceId", "globalPid", "address", "numberOfPageFaults"];
        self.each(TABLE, &COLUMNS, &mut |reading, row| {
            reading.trace.stats_mut().objects += 1;
            let end = row.integer(1).or(row.integer(0));
            let Some(time) = reading.time(TABLE, row.integer(0), end) else { return };
            let process = reading.process_of(row.integer(3), None);
            let place = reading.devices.whole(process, row.integer(2));
            let address = row.integer(4).map(i64::cast_unsigned);
            let faults = Faults { address, count: row.unsigned(5).unwrap_or(1).max(1) };
            let track = reading.trace.track(place);
            reading.trace.page_fault(track, "GPU page faults", faults, time);
        });
    }

    /// Host faults have no thread; they go on a separate track of their process.
    fn read_host_faults(&mut self) {
        const TABLE: &str = "CUDA_UM_CPU_PAGE_FAULT_EVENTS";
        const COLUMNS: [&str; 6] =
            ["start", "globalPid", "address", "CpuInstruction", "sourceFile", "sourceLine"];
        let thread = self.trace.label("CPU page faults");
        self.each(TABLE, &COLUMNS, &mut |reading, row| {
            reading.trace.stats_mut().objects += 1;
            let Some(time) = reading.time(TABLE, row.integer(0), row.integer(0)) else { return };
            let known = |column| {
                row.integer(column).and_then(|id| reading.strings.get(id)).filter(|text| !text.is_empty())
            };
            let function = known(3).map(|function| format!(" in {function}")).unwrap_or_default();
            let line = row.integer(5).map(|line| format!(":{line}")).unwrap_or_default();
            let file = known(4).map(|file| format!(" at {file}{line}")).unwrap_or_default();
            let name = format!("CPU page fault{function}{file}");
            let process = reading.processes.label(GlobalId::of(row.integer(1).unwrap_or(0)).process());
            let faults = Faults { address: row.integer(2).map(i64::cast_unsigned), count: 1 };
            let track = reading.trace.thread(process, thread);
            reading.trace.page_fault(track, &name, faults, time);
        });
    }
}
