//! What do the critical path, the launches and the kernels say in words?

use busbound_diagnosis::quantity::{count, milliseconds, plural};
use busbound_diagnosis::{Bound, Diagnosis, KernelTime, PathClass, Roofline};

use super::Table;

/// `compute 96%, copies 3%`: the classes with at least 1% of the path.
pub(crate) fn path(diagnosis: &Diagnosis) -> Option<String> {
    let path = diagnosis.critical_path.as_ref()?;
    let list: Vec<String> = path
        .classes
        .iter()
        .filter(|class| class.share >= 0.01)
        .map(|class| format!("{} {:.0}%", class.class.describe(), 100.0 * class.share))
        .collect();
    if list.is_empty() {
        return None;
    }
    let edges = &path.edges;
    let waits = match (edges.recorded_waits, edges.inferred_waits) {
        (0, 0) => String::new(),
        (recorded, 0) => format!("; {}, all recorded", dependencies(recorded)),
        (0, inferred) => format!("; {}, all inferred from timing", dependencies(inferred)),
        (recorded, inferred) => {
            format!("; {} recorded, {} inferred from timing", dependencies(recorded), count(inferred))
        }
    };
    let share = |class: PathClass| {
        path.classes.iter().find(|share| share.class == class).map_or(0.0, |share| share.share)
    };
    // Kernels may fill the GPU's time while the host decides when the step ends.
    let aside = diagnosis.verdict.bound == Bound::Compute
        && share(PathClass::Compute) < 0.4
        && share(PathClass::Host) + share(PathClass::Launch) > 0.4;
    let aside = if aside { "; kernels run while the host decides when the step ends" } else { "" };
    Some(list.join(", ") + &waits + aside)
}

fn dependencies(number: u64) -> String {
    plural(number, "dependency", "dependencies")
}

/// The longest segments of the path, one row per name.
pub(crate) fn longest(diagnosis: &Diagnosis) -> Table {
    let mut rows: Vec<(String, &'static str, u64, f64)> = Vec::new();
    for segment in diagnosis.critical_path.iter().flat_map(|path| &path.longest) {
        let class = segment.class.describe();
        match rows.iter_mut().find(|(name, of, ..)| *name == segment.name && *of == class) {
            Some((.., segments, ms)) => {
                *segments += 1;
                *ms += segment.ms;
            }
            None => rows.push((segment.name.clone(), class, 1, segment.ms)),
        }
    }
    rows.sort_by(|a, b| b.3.total_cmp(&a.3));
    let rows = rows
        .into_iter()
        .map(|(name, class, segments, ms)| {
            vec![short(&name, 44), class.to_owned(), segments.to_string(), milliseconds(ms)]
        })
        .collect();
    Table { titles: vec!["longest segments of the critical path", "class", "count", "total"], rows }
}

/// What launching costs, if launches bound the run.
pub(crate) fn launching(diagnosis: &Diagnosis) -> Option<String> {
    let launches = &diagnosis.launches;
    if !matches!(diagnosis.verdict.bound, Bound::Launch | Bound::Mixed) || launches.calls == 0 {
        return None;
    }
    let kernel = match launches.median_kernel_us {
        ..1e3 => format!("{:.1} µs", launches.median_kernel_us),
        us => milliseconds(us / 1e3),
    };
    let mut text = format!(
        "{} kernels/s, median {}; {}/{} in launch calls, median {:.1} µs",
        count(launches.kernels_per_second.round() as u64),
        kernel,
        milliseconds(launches.calls_ms_per_step),
        diagnosis.unit(),
        launches.median_call_us
    );
    if let Some(queue) = &launches.queue {
        text.push_str(&format!(
            "; the queue is empty {:.0}% of the time (mean depth {:.1}, max {})",
            100.0 * queue.empty_share,
            queue.mean_depth,
            count(queue.max_depth)
        ));
    }
    if launches.graph_launches > 0 {
        text.push_str(&format!("; {} graph launches", count(launches.graph_launches)));
    }
    Some(text)
}

/// Graph breaks and recompilations.
pub(crate) fn compiled(diagnosis: &Diagnosis) -> Option<&str> {
    diagnosis.launches.compiled.statement.as_deref()
}

/// The kernels that take the most time.
pub(crate) fn kernels(diagnosis: &Diagnosis) -> Table {
    let Some(kernels) = &diagnosis.kernels else { return Table { titles: Vec::new(), rows: Vec::new() } };
    let measured = kernels.measured.is_some();
    let row = |kernel: &KernelTime| {
        let mut cells = vec![
            short(&kernel.name, if measured { 26 } else { 44 }),
            format!("{:.0}%", 100.0 * kernel.share),
            format!("{:.0}", kernel.runs_per_step),
            milliseconds(kernel.ms_per_step),
            milliseconds(kernel.median_us / 1e3),
        ];
        if measured {
            cells.extend(match &kernel.roofline {
                Some(roofline) => placed(roofline),
                None => ["–", "–", "–", "–"].map(str::to_owned).to_vec(),
            });
        } else {
            cells.push(kernel.geometry.map_or("–".to_owned(), |geometry| {
                let product = |of: [u32; 3]| count(of.iter().map(|n| u64::from(*n)).product());
                format!("{} × {}", product(geometry.grid), product(geometry.block))
            }));
        }
        cells
    };
    let mut titles = vec!["kernels", "share", "runs", "time", "median"];
    if measured {
        titles.extend(["bound by", "of roofline", "memory", "arithmetic"]);
    } else {
        titles.push("blocks × threads");
    }
    Table { titles, rows: kernels.top.iter().filter(|kernel| kernel.share >= 0.01).map(row).collect() }
}

fn placed(roofline: &Roofline) -> Vec<String> {
    let memory = roofline.memory_gbps.map_or("–".to_owned(), |gbps| format!("{gbps:.0} GB/s"));
    let arithmetic = match (roofline.tflops, &roofline.precision) {
        (Some(tflops), Some(precision)) if tflops >= 0.05 => format!("{tflops:.1} TFLOP/s {precision}"),
        _ => "–".to_owned(),
    };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    vec![
        or_dash(roofline.bound.map(|bound| bound.word().to_owned())),
        or_dash(roofline.of_roof.map(|share| format!("{:.0}%", 100.0 * share))),
        memory,
        arithmetic,
    ]
}

/// The sentence below the table of kernels.
pub(crate) fn about_kernels(diagnosis: &Diagnosis) -> Option<String> {
    let matched = diagnosis.kernels.as_ref()?.measured?;
    let mut text = format!(
        "{} of {} kernels measured by Nsight Compute are in this trace (matched by name and launch geometry).",
        matched.found_in_trace, matched.kernels
    );
    if diagnosis.verdict.bound != Bound::Compute {
        text.push_str(" They do not bound this run: see the first line.");
    }
    Some(text)
}

/// Kernel names can have hundreds of characters; the beginning identifies them.
pub(crate) fn short(name: &str, most: usize) -> String {
    let name = name.replace("void ", "").replace("at::native::", "").replace("(anonymous namespace)::", "");
    if name.chars().count() <= most {
        return name;
    }
    name.chars().take(most - 1).chain(['…']).collect()
}
