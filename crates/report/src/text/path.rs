//! What do the critical path, the launches and the kernels say in words?

use busbound_diagnosis::quantity::{count, milliseconds};
use busbound_diagnosis::{Bound, Diagnosis, KernelTime, PathClass, Roofline};

use super::Table;

/// `compute 96 %, copies 3 %`: the classes of the path that matter.
pub(crate) fn path(diagnosis: &Diagnosis) -> Option<String> {
    let path = diagnosis.critical_path.as_ref()?;
    let list: Vec<String> = path
        .classes
        .iter()
        .filter(|class| class.share >= 0.01)
        .map(|class| format!("{} {:.0} %", class.class.describe(), 100.0 * class.share))
        .collect();
    if list.is_empty() {
        return None;
    }
    let edges = &path.edges;
    let waits = match (edges.recorded_waits, edges.inferred_waits) {
        (0, 0) => String::new(),
        (recorded, 0) => format!("; {} waits on it, all recorded", count(recorded)),
        (0, inferred) => format!("; {} waits on it, all inferred from the times", count(inferred)),
        (recorded, inferred) => {
            format!("; {} waits on it recorded, {} inferred", count(recorded), count(inferred))
        }
    };
    let share = |class: PathClass| {
        path.classes.iter().find(|share| share.class == class).map_or(0.0, |share| share.share)
    };
    // Kernels may fill the device's time and still not decide when the step ends.
    let aside = diagnosis.verdict.bound == Bound::Compute
        && share(PathClass::Compute) < 0.4
        && share(PathClass::Host) + share(PathClass::Launch) > 0.4;
    let aside =
        if aside { "; the kernels run beside the host, which decides when the step ends" } else { "" };
    Some(list.join(", ") + &waits + aside)
}

/// The longest pieces of the path; of those of one name, one row.
pub(crate) fn longest(diagnosis: &Diagnosis) -> Table {
    let mut rows: Vec<(String, &'static str, u64, f64)> = Vec::new();
    for piece in diagnosis.critical_path.iter().flat_map(|path| &path.longest) {
        let class = piece.class.describe();
        match rows.iter_mut().find(|(name, of, ..)| *name == piece.name && *of == class) {
            Some((.., pieces, ms)) => {
                *pieces += 1;
                *ms += piece.ms;
            }
            None => rows.push((piece.name.clone(), class, 1, piece.ms)),
        }
    }
    rows.sort_by(|a, b| b.3.total_cmp(&a.3));
    let rows = rows
        .into_iter()
        .map(|(name, class, pieces, ms)| {
            vec![short(&name, 44), class.to_owned(), pieces.to_string(), milliseconds(ms)]
        })
        .collect();
    Table { titles: vec!["longest pieces of the critical path", "class", "pieces", "together"], rows }
}

/// What launching costs, where that is the question.
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
        "{} kernels a second, median {}; {} a {} inside launch calls, median {:.1} µs",
        count(launches.kernels_per_second.round() as u64),
        kernel,
        milliseconds(launches.calls_ms_per_step),
        diagnosis.unit(),
        launches.median_call_us
    );
    if let Some(queue) = &launches.queue {
        text.push_str(&format!(
            "; nothing is queued {:.0} % of the time (mean depth {:.1}, at most {})",
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

/// Signs that compiled code breaks or is compiled again.
pub(crate) fn compiled(diagnosis: &Diagnosis) -> Option<&str> {
    diagnosis.launches.compiled.statement.as_deref()
}

/// The kernels that take most time.
pub(crate) fn kernels(diagnosis: &Diagnosis) -> Table {
    let Some(kernels) = &diagnosis.kernels else { return Table { titles: Vec::new(), rows: Vec::new() } };
    let measured = kernels.measured.is_some();
    let row = |kernel: &KernelTime| {
        let mut cells = vec![
            short(&kernel.name, if measured { 26 } else { 44 }),
            format!("{:.0} %", 100.0 * kernel.share),
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
        titles.extend(["bound by", "of its roof", "memory", "arithmetic"]);
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
    let told = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    vec![
        told(roofline.bound.map(|bound| bound.word().to_owned())),
        told(roofline.of_roof.map(|share| format!("{:.0} %", 100.0 * share))),
        memory,
        arithmetic,
    ]
}

/// What is to be said of the kernels beside the table.
pub(crate) fn about_kernels(diagnosis: &Diagnosis) -> Option<String> {
    let matched = diagnosis.kernels.as_ref()?.measured?;
    let mut text = format!(
        "{} of {} kernels that Nsight Compute measured are in this trace, by name and geometry.",
        matched.found_in_trace, matched.kernels
    );
    if diagnosis.verdict.bound != Bound::Compute {
        text.push_str(" They are not what bounds this run: see the first line.");
    }
    Some(text)
}

/// Names of kernels run to hundreds of characters; their beginning tells.
fn short(name: &str, most: usize) -> String {
    let name = name.replace("void ", "").replace("at::native::", "").replace("(anonymous namespace)::", "");
    if name.chars().count() <= most {
        return name;
    }
    name.chars().take(most - 1).chain(['…']).collect()
}
