//! What did Nsight Compute measure? Its `--csv` export, by kernel.
//!
//! Reads both pages: `--page raw`, one row per kernel and one column per metric, and `details`, the default, one row
//! per metric. What the export lacks is `None`: bytes and operations need `--set roofline` or `--set full`;
//! percentages of the peak come with every set.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

/// One kernel as Nsight Compute measured it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredKernel {
    /// As Nsight Compute prints it, which differs from the profiler's name.
    pub name: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub duration_ns: Option<f64>,
    /// Bytes read from and written to the device's memory.
    pub memory_bytes: Option<f64>,
    /// Bytes per second that device memory can move at its clock during the measurement.
    pub memory_roof: Option<f64>,
    /// Arithmetic operations by precision, if any.
    pub operations: Vec<Operations>,
    /// Percent of peak: the busiest part of the memory system, and of the multiprocessors.
    pub memory_pct: Option<f64>,
    pub compute_pct: Option<f64>,
}

/// Operations of one precision. An FMA counts as two.
#[derive(Debug, Clone, PartialEq)]
pub struct Operations {
    /// `bf16 tensor`, `fp32` and so on.
    pub precision: String,
    pub count: f64,
    /// Peak operations per second at the clock during the measurement.
    pub roof: Option<f64>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NcuError {
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("has no header with \"Kernel Name\": it is not the output of `ncu --csv`")]
    NoHeader,
    #[error("has no kernels")]
    Empty,
}

/// Reads an export. Skips lines before the header, which the program and `ncu` print, and rows that are cut.
///
/// # Errors
/// If it cannot be read, is not such an export, or has no kernels.
pub fn read_ncu(input: impl Read) -> Result<Vec<MeasuredKernel>, NcuError> {
    let mut input = BufReader::new(input);
    let mut text = Vec::new();
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Err(NcuError::NoHeader);
        }
        if line.starts_with(b"\"ID\"") {
            text.extend(line);
            break;
        }
    }
    input.read_to_end(&mut text)?;
    let mut rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_slice());
    let mut records = rows.byte_records().filter_map(Result::ok).map(|record| {
        record.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect::<Vec<String>>()
    });
    let header = records.next().ok_or(NcuError::NoHeader)?;
    let kernels = match header.iter().position(|title| title == "Metric Name") {
        Some(_) => details(&header, records),
        None => raw(&header, records),
    };
    let kernels = kernels.ok_or(NcuError::NoHeader)?;
    if kernels.is_empty() { Err(NcuError::Empty) } else { Ok(kernels) }
}

/// The columns that both pages have.
struct Columns {
    id: usize,
    name: usize,
    grid: usize,
    block: usize,
}

impl Columns {
    fn of(header: &[String]) -> Option<Self> {
        let at = |title: &str| header.iter().position(|have| have == title);
        Some(Self {
            id: at("ID")?,
            name: at("Kernel Name")?,
            grid: at("Grid Size")?,
            block: at("Block Size")?,
        })
    }

    fn kernel(&self, row: &[String]) -> Option<MeasuredKernel> {
        Some(MeasuredKernel {
            name: row.get(self.name)?.clone(),
            grid: triple(row.get(self.grid)?)?,
            block: triple(row.get(self.block)?)?,
            ..MeasuredKernel::default()
        })
    }
}

fn raw(header: &[String], mut records: impl Iterator<Item = Vec<String>>) -> Option<Vec<MeasuredKernel>> {
    let columns = Columns::of(header)?;
    let units = records.next()?;
    let mut kernels = Vec::new();
    for row in records.filter(|row| row.len() == header.len()) {
        let Some(mut kernel) = columns.kernel(&row) else { continue };
        let metrics: BTreeMap<&str, f64> = header
            .iter()
            .zip(&row)
            .zip(&units)
            .filter_map(|((title, value), unit)| Some((title.as_str(), number(value)? * factor(unit))))
            .collect();
        fill_from_raw(&mut kernel, &metrics);
        kernels.push(kernel);
    }
    Some(kernels)
}

fn fill_from_raw(kernel: &mut MeasuredKernel, metrics: &BTreeMap<&str, f64>) {
    let get = |name: &str| metrics.get(name).copied();
    let seconds = get("gpu__time_duration.sum").or_else(|| get("gpu__time_duration.avg"));
    kernel.duration_ns = seconds.map(|seconds| seconds * 1e9);
    kernel.memory_pct = get("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed");
    kernel.compute_pct = get("sm__throughput.avg.pct_of_peak_sustained_elapsed");
    let rate = get("dram__bytes.sum.per_second");
    kernel.memory_bytes = get("dram__bytes.sum").or_else(|| Some(rate? * seconds?));
    kernel.memory_roof = get("dram__bytes.sum.peak_sustained")
        .zip(get("dram__cycles_elapsed.avg.per_second"))
        .map(|(a, b)| a * b);
    // Per instruction, each with its own peak; the sums over instructions include sparse ones.
    for family in ["sm__ops_path_tensor_op_", "sm__ops_path_tensor_src_"] {
        let end = format!("{family}~");
        for (name, &count) in metrics.range(family..end.as_str()) {
            let Some(kind) = name.strip_suffix(".sum").filter(|_| count > 0.0) else { continue };
            let precision = kind.split("src_").nth(1).unwrap_or(kind);
            let precision = precision.split('_').next().unwrap_or(precision);
            let roof = get(&format!("{kind}.sum.peak_sustained_elapsed.per_second"));
            kernel.operations.push(Operations { precision: format!("{precision} tensor"), count, roof });
        }
        if !kernel.operations.is_empty() {
            break;
        }
    }
    let clock = get("smsp__cycles_elapsed.avg.per_second");
    for (precision, fused, single, times, roof) in [
        ("fp32", "derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2", 'f', 1.0, "ffma_pred_on_x2"),
        ("fp64", "derived__smsp__sass_thread_inst_executed_op_dfma_pred_on_x2", 'd', 1.0, "dfma_pred_on_x2"),
    ] {
        let one = |what: &str| {
            get(&format!("smsp__sass_thread_inst_executed_op_{single}{what}_pred_on.sum.per_cycle_elapsed"))
                .unwrap_or(0.0)
        };
        let per_cycle = get(fused).unwrap_or(0.0) + times * (one("add") + one("mul"));
        let (Some(clock), Some(seconds)) = (clock, seconds) else { continue };
        if per_cycle > 0.0 {
            let roof =
                get(&format!("derived__sm__sass_thread_inst_executed_op_{roof}")).map(|each| each * clock);
            let count = per_cycle * clock * seconds;
            kernel.operations.push(Operations { precision: precision.to_owned(), count, roof });
        }
    }
}

fn details(header: &[String], records: impl Iterator<Item = Vec<String>>) -> Option<Vec<MeasuredKernel>> {
    let columns = Columns::of(header)?;
    let at = |title: &str| header.iter().position(|have| have == title);
    let (metric, unit, value) = (at("Metric Name")?, at("Metric Unit")?, at("Metric Value")?);
    let mut kernels: Vec<(String, MeasuredKernel, Option<f64>)> = Vec::new();
    for row in records {
        let (Some(id), Some(kernel)) = (row.get(columns.id), columns.kernel(&row)) else { continue };
        if kernels.last().is_none_or(|(known, ..)| known != id) {
            kernels.push((id.clone(), kernel, None));
        }
        let Some((_, kernel, rate)) = kernels.last_mut() else { continue };
        let (Some(metric), Some(unit), Some(number)) =
            (row.get(metric), row.get(unit), row.get(value).and_then(|value| number(value)))
        else {
            continue;
        };
        let number = number * factor(unit);
        match (metric.as_str(), unit.as_str()) {
            ("Duration", _) => kernel.duration_ns = Some(number * 1e9),
            ("Memory Throughput", "%") => kernel.memory_pct = Some(number),
            ("Memory Throughput", _) => *rate = Some(number),
            ("Compute (SM) Throughput", _) => kernel.compute_pct = Some(number),
            _ => {}
        }
    }
    let finish = |(_, mut kernel, rate): (String, MeasuredKernel, Option<f64>)| {
        kernel.memory_bytes = rate.zip(kernel.duration_ns).map(|(rate, ns)| rate * ns / 1e9);
        kernel
    };
    Some(kernels.into_iter().map(finish).collect())
}

/// `1,289,244,186.05`.
fn number(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// The factor from a unit to bytes, seconds and cycles: `Gbyte/s`, `Kbyte/cycle`, `us`, `Ghz`.
fn factor(unit: &str) -> f64 {
    let first = unit.split('/').next().unwrap_or(unit);
    let scaled = |base: &str| {
        Some(match first.strip_suffix(base)? {
            "" => 1.0,
            "n" => 1e-9,
            "u" => 1e-6,
            "m" => 1e-3,
            "K" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "T" => 1e12,
            _ => return None,
        })
    };
    ["byte", "hz", "second", "s"].into_iter().find_map(scaled).unwrap_or(1.0)
}

/// `(2, 66, 1)`.
fn triple(text: &str) -> Option<[u32; 3]> {
    let mut numbers =
        text.trim_matches(['(', ')']).split(',').map(|number| number.trim().parse::<u32>().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_converted_to_bytes_and_seconds() {
        for (unit, expected) in [
            ("Tbyte/s", 1e12),
            ("Kbyte/cycle", 1e3),
            ("us", 1e-6),
            ("usecond", 1e-6),
            ("Ghz", 1e9),
            ("%", 1.0),
            ("inst", 1.0),
            ("", 1.0),
        ] {
            assert_eq!(factor(unit), expected, "{unit}");
        }
        assert_eq!(number("1,289,244,186.05"), Some(1_289_244_186.05));
        assert_eq!(triple("(2, 66, 1)"), Some([2, 66, 1]));
    }

    #[test]
    fn non_exports_are_rejected() {
        assert!(matches!(read_ncu(&b"{}"[..]), Err(NcuError::NoHeader)));
        assert!(matches!(read_ncu(&b"\"ID\",\"Name\"\n"[..]), Err(NcuError::NoHeader)));
        let header = b"==PROF== x\n\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
        assert!(matches!(read_ncu(&header[..]), Err(NcuError::Empty)));
    }
}
