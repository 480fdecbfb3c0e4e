//! What does recording cost the host? The same calls with recording off, with calls recorded, and with everything
//! recorded, interleaved.

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::measure;
#[cfg(target_os = "linux")]
pub(super) use on_linux::measure;

#[cfg(target_os = "linux")]
mod on_linux {
    use busbound_capture::inject::{Extent, Switch};
    use busbound_machine::bench::{Memory, ProfilerCase, ProfilerTask, RecordedCall, RecordedLoop};

    use crate::bench::rig::{Rig, host_ns};
    use crate::bench::task_error::TaskError;
    use crate::driver::{DeviceBuffer, Event, HostBuffer, Result};
    use crate::python_packages::in_python_packages;

    const COPY_BYTES: u64 = 4;

    /// What the calls use.
    struct Operands {
        host: HostBuffer,
        device: DeviceBuffer,
        event: Event,
    }

    pub(in crate::bench) fn measure(
        rig: &mut Rig<'_>,
        task: ProfilerTask,
    ) -> std::result::Result<ProfilerCase, TaskError> {
        rig.buffers.clear();
        let operands = Operands {
            host: HostBuffer::new(4096, Memory::Pinned)?,
            device: DeviceBuffer::new(4096)?,
            event: Event::new()?,
        };
        let mut loops = before_recording(rig, task, &operands)?;
        let folders = in_python_packages(&["nvidia/cuda_cupti/lib", "nvidia/cu13/lib", "nvidia/cu12/lib"]);
        let mut switch = Switch::find(&folders).map_err(TaskError::CannotRun)?;
        for _ in 0..task.repetitions {
            rig.check_stop()?;
            switch.off();
            timed(rig, task, &operands, &mut loops, |one| &mut one.off_ns)?;
            switch.on(Extent::Calls).map_err(TaskError::CannotRun)?;
            timed(rig, task, &operands, &mut loops, |one| &mut one.calls_ns)?;
            switch.on(Extent::Everything).map_err(TaskError::CannotRun)?;
            timed(rig, task, &operands, &mut loops, |one| &mut one.on_ns)?;
        }
        Ok(ProfilerCase { task, library: switch.place.clone(), loops })
    }

    /// The same calls before CUPTI is loaded, to see what loading it alone costs.
    fn before_recording(rig: &Rig<'_>, task: ProfilerTask, operands: &Operands) -> Result<Vec<RecordedLoop>> {
        let mut loops: Vec<RecordedLoop> = RecordedCall::ALL
            .map(|what| RecordedLoop {
                what,
                before_ns: Vec::new(),
                off_ns: Vec::new(),
                calls_ns: Vec::new(),
                on_ns: Vec::new(),
            })
            .into();
        for _ in 0..task.repetitions {
            rig.check_stop()?;
            timed(rig, task, operands, &mut loops, |one| &mut one.before_ns)?;
        }
        Ok(loops)
    }

    /// One repetition of every loop in the current state, after one that is not timed: CUPTI allocates on first use.
    fn timed(
        rig: &Rig<'_>,
        task: ProfilerTask,
        operands: &Operands,
        loops: &mut [RecordedLoop],
        series: impl Fn(&mut RecordedLoop) -> &mut Vec<u64>,
    ) -> Result<()> {
        for one in loops {
            let call = || match one.what {
                RecordedCall::KernelLaunch => rig.kernels.empty(&rig.main),
                RecordedCall::SmallCopy => {
                    rig.main.to_device(&operands.device, 0, &operands.host, 0, COPY_BYTES)
                }
                RecordedCall::EventRecord => rig.main.record(&operands.event),
            };
            let repetition = || {
                let ns = host_ns(|| (0..task.calls).try_for_each(|_| call()));
                rig.main.synchronize()?;
                ns
            };
            repetition()?;
            let ns = repetition()?;
            series(one).push(ns);
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use busbound_machine::bench::{ProfilerCase, ProfilerTask};

    use crate::bench::rig::Rig;
    use crate::bench::task_error::TaskError;

    pub(in crate::bench) fn measure(_: &mut Rig<'_>, _: ProfilerTask) -> Result<ProfilerCase, TaskError> {
        Err(TaskError::CannotRun("busbound records on Linux only, so there is nothing to measure".to_owned()))
    }
}
