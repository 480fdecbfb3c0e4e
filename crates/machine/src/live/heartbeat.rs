//! What does the training report about itself? JSON lines that it appends to a file, and alarms in its log lines.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of a heartbeat file; `null` if a key is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beat {
    pub toks_per_s: Option<f64>,
    pub gpu_util_pct: Option<f64>,
    pub dt_step_s: Option<f64>,
    pub batch: Option<f64>,
}

/// What one file reported in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Training {
    pub file: String,
    /// The newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beats: Vec<Beat>,
    /// Lines that report problems with collectives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<String>,
}

/// The key of each value; a key may be a path into nested objects, such as `metrics.dt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeatKeys {
    pub toks_per_s: String,
    pub gpu_util_pct: String,
    pub dt_step_s: String,
    pub batch: String,
}

impl Default for BeatKeys {
    fn default() -> Self {
        let own = str::to_owned;
        Self {
            toks_per_s: own("toks_per_s"),
            gpu_util_pct: own("gpu_util_pct"),
            dt_step_s: own("dt_step_s"),
            batch: own("batch"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "pass keys as dt_step_s=NAME,toks_per_s=NAME; the keys are toks_per_s, gpu_util_pct, dt_step_s and batch"
)]
pub struct BeatKeysError;

impl FromStr for BeatKeys {
    type Err = BeatKeysError;

    /// `dt_step_s=step_seconds,batch=micro_batch`; other keys keep their default names.
    fn from_str(text: &str) -> Result<Self, BeatKeysError> {
        let mut keys = Self::default();
        for pair in text.split(',') {
            let (what, name) = pair.split_once('=').ok_or(BeatKeysError)?;
            let key = match what.trim() {
                "toks_per_s" => &mut keys.toks_per_s,
                "gpu_util_pct" => &mut keys.gpu_util_pct,
                "dt_step_s" => &mut keys.dt_step_s,
                "batch" => &mut keys.batch,
                _ => return Err(BeatKeysError),
            };
            name.trim().clone_into(key);
            if key.is_empty() {
                return Err(BeatKeysError);
            }
        }
        Ok(keys)
    }
}

/// The text that PyTorch and NCCL write.
const ALARMS: [&str; 4] =
    ["Watchdog caught collective operation timeout", "NCCL WARN", "ncclInternalError", "timed out"];
/// Heartbeat lines are shorter than this; longer lines are skipped.
const LONGEST_LINE: usize = 1 << 20;
/// More per interval than anyone reads.
const MOST_BEATS: usize = 100;
const MOST_ALARMS: usize = 10;
const LONGEST_ALARM: usize = 300;

/// Splits appended bytes into lines; the last line is kept until it is complete.
#[derive(Debug, Clone, Default)]
pub struct LineReader {
    begun: Vec<u8>,
    skipping: bool,
}

impl LineReader {
    /// For a file that is not read from its beginning: the first line is probably cut off.
    pub fn within_a_line() -> Self {
        Self { begun: Vec::new(), skipping: true }
    }

    /// Takes appended bytes, and adds the beats and alarms of the completed lines to `training`.
    pub fn feed(&mut self, bytes: &[u8], keys: &BeatKeys, training: &mut Training) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (line, is_whole) = match piece.split_last() {
                Some((b'\n', line)) => (line, true),
                _ => (piece, false),
            };
            if !self.skipping {
                self.begun.extend_from_slice(line);
            }
            if self.begun.len() > LONGEST_LINE {
                self.begun = Vec::new();
                self.skipping = true;
            }
            if is_whole {
                if !self.skipping {
                    take_line(&String::from_utf8_lossy(&self.begun), keys, training);
                }
                self.begun.clear();
                self.skipping = false;
            }
        }
        keep_last(&mut training.beats, MOST_BEATS);
        keep_last(&mut training.alarms, MOST_ALARMS);
    }
}

fn keep_last<T>(all: &mut Vec<T>, most: usize) {
    all.drain(..all.len().saturating_sub(most));
}

fn take_line(line: &str, keys: &BeatKeys, training: &mut Training) {
    if ALARMS.iter().any(|alarm| line.contains(alarm)) {
        training.alarms.push(line.trim().chars().take(LONGEST_ALARM).collect());
    }
    // Python writes NaN and Infinity, which are not JSON.
    let value = serde_json::from_str::<Value>(line)
        .or_else(|_| serde_json::from_str(&line.replace("NaN", "null").replace("Infinity", "null")));
    let Ok(value) = value else { return };
    let number = |key: &str| number_at(&value, key);
    let beat = Beat {
        toks_per_s: number(&keys.toks_per_s),
        gpu_util_pct: number(&keys.gpu_util_pct),
        dt_step_s: number(&keys.dt_step_s),
        batch: number(&keys.batch),
    };
    if beat != Beat::default() {
        training.beats.push(beat);
    }
}

/// A number by its key, or by its path.
fn number_at(object: &Value, key: &str) -> Option<f64> {
    let found = object
        .get(key)
        .or_else(|| key.split('.').try_fold(object, |object, part| object.as_object()?.get(part)))?;
    found.as_f64().or_else(|| found.as_str()?.trim().parse().ok()).filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "{\"step\": 1, \"toks_per_s\": 39.5, \"gpu_util_pct\": 44, \"dt_step_s\": 3.5, \"batch\": 2}\n\
        {\"step\": 2, \"toks_per_s\": NaN, \"dt_step_s\": \"3.6\"}\n\
        {\"epoch\": 1}\n\
        not json, but NCCL WARN Call to recv failed\n\
        {\"step\": 3, \"dt_step_s\": 3.7}\n";

    fn expected() -> (Vec<Option<f64>>, usize) {
        (vec![Some(3.5), Some(3.6), Some(3.7)], 1)
    }

    fn summary(training: &Training) -> (Vec<Option<f64>>, usize) {
        (training.beats.iter().map(|beat| beat.dt_step_s).collect(), training.alarms.len())
    }

    #[test]
    fn a_half_written_last_line_is_kept_until_it_is_complete() {
        let keys = BeatKeys::default();
        for cut in 0..LINES.len() {
            let (mut reader, mut training) = (LineReader::default(), Training::default());
            let (first, second) = LINES.as_bytes().split_at(cut);
            reader.feed(first, &keys, &mut training);
            assert!(training.beats.len() <= LINES[..cut].matches('\n').count(), "cut at {cut}");
            reader.feed(second, &keys, &mut training);
            assert_eq!(summary(&training), expected(), "cut at {cut}");
        }
    }

    #[test]
    fn reading_from_the_middle_of_a_file_skips_the_cut_off_first_line() {
        let (mut reader, mut training) = (LineReader::within_a_line(), Training::default());
        reader.feed(&LINES.as_bytes()[10..], &BeatKeys::default(), &mut training);
        assert_eq!(summary(&training), (vec![Some(3.6), Some(3.7)], 1));
    }

    #[test]
    fn keys_can_be_renamed() {
        let keys: BeatKeys = "dt_step_s=perf.step_time, toks_per_s=tps".parse().unwrap();
        let (mut reader, mut training) = (LineReader::default(), Training::default());
        reader.feed(b"{\"perf\": {\"step_time\": 0.25}, \"tps\": 7, \"batch\": 8}\n", &keys, &mut training);
        let beat = training.beats[0];
        assert_eq!((beat.dt_step_s, beat.toks_per_s, beat.batch), (Some(0.25), Some(7.0), Some(8.0)));
        for wrong in ["", "dt_step_s", "loss=x", "batch="] {
            assert_eq!(wrong.parse::<BeatKeys>(), Err(BeatKeysError), "{wrong}");
        }
    }

    #[test]
    fn an_endless_line_takes_no_memory_and_the_next_one_is_read() {
        let (mut reader, mut training) = (LineReader::default(), Training::default());
        for _ in 0..3 {
            reader.feed(&vec![b'x'; 1 << 20], &BeatKeys::default(), &mut training);
        }
        assert!(reader.begun.len() <= LONGEST_LINE);
        reader.feed(b"\n{\"dt_step_s\": 1}\n", &BeatKeys::default(), &mut training);
        assert_eq!(summary(&training), (vec![Some(1.0)], 0));
    }
}
