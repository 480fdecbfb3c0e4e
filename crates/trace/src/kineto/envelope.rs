//! What does the file say outside its events? Versions, GPUs, ranks, settings.

use serde_json::Value;

use crate::kineto::cursor::Raw;
use crate::kineto::text::decode;
use crate::model::origin::{Distributed, Gpu, GpuLimits, Origin};
use crate::model::size::Bytes;

/// Characters of each key to show for a file that is not a trace.
const KEY_SHOWN: usize = 40;

/// Max versions kept: real files have five.
const VERSIONS_KEPT: usize = 50;

/// The member in which `busbound.profiler_handler` writes the durations of steps that were not recorded.
const UNPROFILED_STEPS: &str = "busbound_unprofiled_step_ms";

/// The member in which it writes the environment of the process.
const ENVIRONMENT: &str = "busbound_environment";

/// Max bytes of it: the handler writes less than a tenth.
const ENVIRONMENT_BYTES: usize = 64 << 10;

/// Max steps kept that were not recorded: their median needs no more.
const STEPS_KEPT: usize = 10_000;

/// Max profiler messages kept from the file.
const MESSAGES_KEPT: usize = 20;

/// What the members other than `traceEvents` say.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    pub(crate) origin: Origin,
    /// The first few keys, for the error message about a file that is not a trace.
    pub(crate) keys: Vec<String>,
    /// Whether the file has a member that profilers write.
    pub(crate) is_trace: bool,
}

fn decoded(key: &[u8]) -> String {
    decode(Raw { bytes: key, escaped: key.contains(&b'\\') }).text.into_owned()
}

impl Envelope {
    /// Processes one member. `value` is complete: it has been scanned already. Returns whether it could be parsed.
    pub(crate) fn member(&mut self, key: &[u8], value: &[u8]) -> bool {
        let key = decoded(key);
        let mut readable = true;
        self.is_trace |= self.take_known(&key, value, &mut readable);
        readable
    }

    /// Keeps a key, also of a member that does not end here.
    pub(crate) fn saw(&mut self, key: &[u8]) {
        let mut key = decoded(key);
        if let Some((end, _)) = key.char_indices().nth(KEY_SHOWN) {
            key.truncate(end);
            key.push('…');
        }
        if self.keys.len() < 8 && !self.keys.contains(&key) {
            self.keys.push(key);
        }
    }

    fn take_known(&mut self, key: &str, value: &[u8], readable: &mut bool) -> bool {
        // Damaged JSON in one member loses only that member.
        let mut parsed =
            || match serde_json::from_slice(value).or_else(|_| serde_json::from_slice(&strict(value))) {
                Ok(value) => value,
                Err(_) => {
                    *readable = false;
                    Value::Null
                }
            };
        match key {
            "deviceProperties" => {
                self.origin.gpus = parsed().as_array().into_iter().flatten().filter_map(gpu).collect();
            }
            "distributedInfo" => self.origin.distributed = distributed(&parsed()),
            "record_shapes" | "with_stack" | "profile_memory" | "with_flops" | "with_modules" => {
                let on = match parsed() {
                    Value::Bool(on) => on,
                    other => other.as_i64().is_some_and(|n| n != 0),
                };
                self.origin.settings.insert(key.to_owned(), on);
            }
            UNPROFILED_STEPS => {
                let steps = parsed();
                let steps = steps.as_array().into_iter().flatten().filter_map(Value::as_f64);
                let possible = steps.filter(|ms| ms.is_finite() && *ms > 0.0);
                self.keep_unprofiled_steps(possible);
            }
            ENVIRONMENT if value.len() <= ENVIRONMENT_BYTES => match serde_json::from_value(parsed()) {
                Ok(environment) => self.origin.environment = Some(environment),
                Err(_) => *readable = false,
            },
            "schemaVersion" => self.version(key, &parsed()),
            _ if key.ends_with("_version") => self.version(key, &parsed()),
            "baseTimeNanoseconds" => self.origin.base_time_ns = parsed().as_i64(),
            "traceName" => self.origin.trace_name = parsed().as_str().map(str::to_owned),
            "WARNING" | "ERROR" => {
                let texts = parsed();
                let texts = texts.as_array().into_iter().flatten().filter_map(Value::as_str);
                let room = MESSAGES_KEPT.saturating_sub(self.origin.profiler_messages.len());
                self.origin.profiler_messages.extend(texts.map(str::to_owned).take(room));
            }
            "displayTimeUnit" | "trace_id" | "INFO" => {}
            _ => return false,
        }
        true
    }

    /// The handler writes the member once for the steps before the recorded ones and once for those after them.
    fn keep_unprofiled_steps(&mut self, ms: impl IntoIterator<Item = f64>) {
        let kept = &mut self.origin.unprofiled_step_ms;
        let room = STEPS_KEPT.saturating_sub(kept.len());
        kept.extend(ms.into_iter().take(room));
    }

    fn version(&mut self, key: &str, value: &Value) {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if self.origin.versions.len() < VERSIONS_KEPT {
            self.origin.versions.insert(key.to_owned(), text);
        }
    }

    /// Adds what a later part of the same file says; later values win.
    pub(crate) fn absorb(&mut self, later: Self) {
        let Origin {
            format: _,
            versions,
            settings,
            gpus,
            // A torch.profiler file comes from one process.
            ambiguous_devices: _,
            shared_gpus: _,
            distributed,
            base_time_ns,
            trace_name,
            profiler_messages,
            environment,
            // Only recordings have it.
            numa: _,
            pinned_sizes: _,
            is_confidential: _,
            unprofiled_step_ms,
        } = later.origin;
        let room = VERSIONS_KEPT.saturating_sub(self.origin.versions.len());
        self.origin.versions.extend(versions.into_iter().take(room));
        self.origin.settings.extend(settings);
        if !gpus.is_empty() {
            self.origin.gpus = gpus;
        }
        self.origin.distributed = distributed.or(self.origin.distributed.take());
        self.origin.environment = environment.or(self.origin.environment.take());
        self.origin.base_time_ns = base_time_ns.or(self.origin.base_time_ns);
        self.origin.trace_name = trace_name.or(self.origin.trace_name.take());
        let room = MESSAGES_KEPT.saturating_sub(self.origin.profiler_messages.len());
        self.origin.profiler_messages.extend(profiler_messages.into_iter().take(room));
        self.keep_unprofiled_steps(unprofiled_step_ms);
        for key in later.keys {
            if self.keys.len() < 8 && !self.keys.contains(&key) {
                self.keys.push(key);
            }
        }
        self.is_trace |= later.is_trace;
    }
}

/// Makes lenient JSON strict: control characters become spaces, NaN and Infinity become null.
fn strict(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let (mut in_string, mut escaped, mut at) = (false, false, 0);
    while let Some(&b) = value.get(at) {
        let word =
            [&b"-Infinity"[..], b"Infinity", b"NaN"].into_iter().find(|word| value[at..].starts_with(word));
        match (in_string, word) {
            (false, Some(word)) => {
                out.extend_from_slice(b"null");
                at += word.len();
                continue;
            }
            _ if b < 0x20 => out.push(b' '),
            _ => out.push(b),
        }
        in_string ^= b == b'"' && !escaped;
        escaped = in_string && b == b'\\' && !escaped;
        at += 1;
    }
    out
}

fn small(value: &Value, key: &str) -> Option<u32> {
    value.get(key)?.as_u64().and_then(|n| u32::try_from(n).ok())
}

fn gpu(value: &Value) -> Option<Gpu> {
    Some(Gpu {
        id: value.get("id")?.as_i64().and_then(|id| i32::try_from(id).ok())?,
        name: value.get("name")?.as_str()?.to_owned(),
        memory: value.get("totalGlobalMem").and_then(Value::as_u64).map(Bytes::new),
        multiprocessors: small(value, "numSms"),
        compute_capability: small(value, "computeMajor").zip(small(value, "computeMinor")),
        link: None,
        limits: GpuLimits::default(),
    })
}

fn distributed(value: &Value) -> Option<Distributed> {
    value.is_object().then(|| Distributed {
        rank: small(value, "rank"),
        world_size: small(value, "world_size"),
        backend: value.get("backend").and_then(Value::as_str).map(str::to_owned),
    })
}
