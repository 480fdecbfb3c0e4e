//! `busbound bench`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use busbound::Format;
use busbound::diagnosis::{Benchmark, judge_bench};
use busbound::machine::MachineProfile;
use busbound::machine::bench::{Mode, Samples, Suite};
use busbound_gpu::CudaError;
use busbound_gpu::bench::{Request, run_rank, serve_companion};
use busbound_gpu::ranks::{Launch, RanksError};

use crate::args::bench::BenchArgs;
use crate::failure::Failure;
use crate::io::interrupt::listen_for_signals;
use crate::io::kind::{FileKind, not_a};
use crate::io::output::{save, show, warn, write_file};
use crate::io::progress::TaskBar;
use crate::request::{Output, resolve_output};

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    if let Some(task) = args.what.companion {
        let input = std::io::BufReader::new(std::io::stdin());
        return serve_companion(args.what.gpu, task, input, &mut std::io::stdout()).map_err(Failure::no_gpu);
    }
    let mut output = resolve_output(&args.output)?;
    if args.keep.nvbandwidth {
        output.format = Format::Nvbandwidth;
    }
    let samples = match &args.what.from {
        Some(path) => {
            let bytes = fs::read(path).map_err(Failure::unreadable_at(path))?;
            Samples::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| {
                let known = not_a(FileKind::Samples, path);
                Failure::Unreadable(known.unwrap_or_else(|| format!("{} {error}", path.display())))
            })?
        }
        None => match measure(args, &output)? {
            Some(samples) => samples,
            // Only rank 0 has an answer.
            None => return Ok(()),
        },
    };
    let bench = judge_bench(&samples);
    // The answer first: a file that cannot be written must not lose minutes of measurement.
    show(&bench, &output, "bench.html")?;
    if let Some(path) = &args.keep.raw {
        let json = serde_json::to_string(&samples).map_err(Failure::output_at("samples"))?;
        write_file(path, &json)?;
    }
    if let Some(path) = &args.keep.html {
        save(&bench, Format::Html, &output, path)?;
    }
    save_profile(args, &bench)?;
    if samples.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

fn save_profile(args: &BenchArgs, bench: &Benchmark) -> Result<(), Failure> {
    // Saved samples have made their profile already, and an interrupted measurement makes none.
    let worth_it = args.what.from.is_none() && bench.is_whole();
    if args.keep.no_save || !(worth_it || args.keep.save.is_some()) {
        return Ok(());
    }
    let (path, profile) = match (&args.keep.save, bench.profile.has_copy_curve()) {
        (given, true) => (given.clone().unwrap_or_else(free_name), bench.profile.clone()),
        _ if !has_additions(&bench.profile) => return Ok(()),
        // Without a curve there is no profile, but these results belong into one that exists.
        (Some(path), false) => (path.clone(), with_additions(path, &bench.profile)?),
        (None, false) => {
            warn("wrote no machine profile: --save FILE adds these results to the profile in FILE");
            return Ok(());
        }
    };
    let json = serde_json::to_string_pretty(&profile).map_err(Failure::output_at("profile"))?;
    write_file(&path, &(json + "\n"))?;
    if !args.output.quiet {
        warn(&format!("wrote the machine profile to {0}; use it with --machine {0}", path.display()));
    }
    Ok(())
}

/// Whether there are results that can be added to a profile without measuring its curves again.
fn has_additions(measured: &MachineProfile) -> bool {
    let MachineProfile { profiler, scatter, numa, contention, allreduce, .. } = measured;
    let of_one_gpu = [profiler.is_empty(), scatter.is_empty(), numa.is_empty(), contention.is_empty()];
    // One rank exchanges nothing.
    of_one_gpu.contains(&false) || allreduce.iter().any(|one| one.ranks > 1)
}

/// The profile in this file, with what was just measured: all-reduces, the costs of recording and of scattered blocks, NUMA nodes,
/// contention.
fn with_additions(path: &Path, measured: &MachineProfile) -> Result<MachineProfile, Failure> {
    if !path.exists() {
        let path = path.display();
        // Several processes measure together only if they measure nothing else.
        let remedy = if measured.allreduce.iter().all(|one| one.processes.is_one()) {
            "name the copy suite as well (--suite copy,...), which makes a profile".to_owned()
        } else {
            format!("make it first with `busbound bench --save {path}`")
        };
        return Err(Failure::Unreadable(format!("{path} does not exist yet: {remedy}")));
    }
    let json = fs::read_to_string(path).map_err(Failure::unreadable_at(path))?;
    let mut profile = MachineProfile::parse(&json)
        .map_err(|error| Failure::Unreadable(format!("{} {error}", path.display())))?;
    profile.set_allreduce(&measured.allreduce);
    measured.profiler.iter().cloned().for_each(|cost| profile.set_profiler_cost(cost));
    if !measured.scatter.is_empty() {
        profile.scatter.clone_from(&measured.scatter);
    }
    if !measured.numa.is_empty() {
        profile.numa.clone_from(&measured.numa);
    }
    if !measured.contention.is_empty() {
        profile.contention.clone_from(&measured.contention);
    }
    Ok(profile)
}

/// `machine.json`, else the first of `machine-2.json` and so on that is free: no profile is overwritten.
fn free_name() -> PathBuf {
    let names =
        std::iter::once("machine.json".to_owned()).chain((2..1000).map(|n| format!("machine-{n}.json")));
    let free = names.map(PathBuf::from).find(|path| !path.exists());
    free.unwrap_or_else(|| PathBuf::from("machine.json"))
}

/// `None` if this is one of several processes, and another one has the results.
fn measure(args: &BenchArgs, output: &Output) -> Result<Option<Samples>, Failure> {
    let launch = launch(args)?;
    let stop = listen_for_signals()?;
    let request = Request {
        gpu: args.what.gpu,
        mode: if args.what.full { Mode::Full } else { Mode::Quick },
        suites: if args.what.suites.is_empty() { Suite::by_default() } else { args.what.suites.clone() },
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program: std::env::current_exe().ok(),
    };
    let is_shown = output.show_progress && launch.as_ref().is_none_or(|launch| launch.rank == 0);
    let bar = TaskBar::new(is_shown);
    let mut progress = |progress| bar.update(&progress);
    match launch {
        Some(launch) => {
            let within = args.what.timeout.map_or(USUAL_TIMEOUT, Duration::from_secs);
            run_rank(&request, &launch, within, &stop, &mut progress).map_err(|error| match error {
                RanksError::GivenUp => Failure::OfRanks(None),
                RanksError::Stopped => Failure::Interrupted,
                error => Failure::OfRanks(Some(error.to_string())),
            })
        }
        None => {
            busbound_gpu::bench::run(&request, &stop, &mut progress).map(Some).map_err(|error| match error {
                CudaError::NoSuchGpu { .. } => Failure::usage(error),
                error => Failure::no_gpu(error),
            })
        }
    }
}

/// Nodes may load a container before their processes start.
const USUAL_TIMEOUT: Duration = Duration::from_secs(120);

/// This process as one of several. Only the all-reduce is measured with several: with other suites, each process is on its own, such
/// as one for each node.
fn launch(args: &BenchArgs) -> Result<Option<Launch>, Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    let launch = match args.what.suites[..] {
        [Suite::AllReduce] => Launch::of(&variable, args.what.port).map_err(Failure::usage)?,
        _ => None,
    };
    if launch.is_none() && (args.what.port.is_some() || args.what.timeout.is_some()) {
        return Err(Failure::usage(
            "--port and --timeout are for several processes that measure together: use them with `--suite allreduce`, \
             started by torchrun, mpirun or srun",
        ));
    }
    Ok(launch)
}
