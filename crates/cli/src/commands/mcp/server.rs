//! What does each method answer?

use serde_json::{Value, json};

use super::bound::{bounded_object, bounded_text};
use super::fields::{Arguments, schema};
use super::message::{Code, Request, RpcError};
use super::roots::Roots;
use super::stop::Stop;
use super::tools::{self, Asked, TOOLS, Tool, ToolAnswer};

/// The versions of the protocol that this server speaks, newest first.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];

const CALL: &str = "tools/call";

/// The share of an answer that its text may take; the rest is for the structured result.
const TEXT_SHARE: usize = 8;
/// The members around text and result.
const FRAME_BYTES: usize = 256;

const INSTRUCTIONS: &str = "\
busbound reads profiler traces (torch.profiler, Nsight Systems, JAX, busbound record) and says whether the GPU waits for the \
bus, why, and what a change gains. Work in this order: survey (what is in the trace, what is missing), diagnose (verdict and \
findings), whatif (predict a change before making it), change the program, record again, compare (before, after). \
`inconclusive` is an answer: it says why the trace cannot tell and what to record instead; do not guess a cause then. \
Gains are ranges. `left_off` counts what did not fit into the answer.";

/// Answers requests. Holds nothing that a request can change.
#[derive(Debug)]
pub(super) struct Server {
    roots: Roots,
    max_answer: usize,
}

impl Server {
    pub(super) fn new(roots: Roots, max_answer: usize) -> Self {
        Self { roots, max_answer }
    }

    /// Whether the answer may take long.
    pub(super) fn is_long(request: &Request) -> bool {
        request.method == CALL
    }

    pub(super) fn answer(&self, request: &Request, stop: &Stop) -> Result<Value, RpcError> {
        match request.method.as_str() {
            "initialize" => initialize(request),
            "ping" => Ok(json!({})),
            "tools/list" => list(request),
            CALL => self.call(request, stop),
            other => Err(RpcError::new(Code::UnknownMethod, format!("unknown method {other:?}"))),
        }
    }

    fn call(&self, request: &Request, stop: &Stop) -> Result<Value, RpcError> {
        let Some(name) = request.params.get("name").and_then(Value::as_str) else {
            return Err(RpcError::params("`name` must be the name of a tool"));
        };
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            return Err(RpcError::params(format!(
                "unknown tool {name:?}: the tools are {}",
                names.join(", ")
            )));
        };
        let arguments = Arguments::check(&(tool.fields)(), request.params.get("arguments"))
            .map_err(|why| RpcError::params(format!("{name}: {why}")))?;
        let asked = Asked { roots: &self.roots, stop, arguments };
        Ok(self.result(tools::guarded(|| (tool.call)(&asked))))
    }

    /// The result of a call, within the size that the user allows.
    fn result(&self, outcome: Result<ToolAnswer, String>) -> Value {
        let (text, parts, is_error) = match outcome {
            Ok(answer) => (answer.text, answer.parts, false),
            Err(why) => (why, Vec::new(), true),
        };
        let text = bounded_text(text.trim_end(), self.max_answer / TEXT_SHARE);
        let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": is_error });
        if !is_error {
            let used = result.to_string().len() + FRAME_BYTES;
            result["structuredContent"] = bounded_object(parts, self.max_answer.saturating_sub(used));
        }
        result
    }
}

fn initialize(request: &Request) -> Result<Value, RpcError> {
    let Some(wanted) = request.params.get("protocolVersion").and_then(Value::as_str) else {
        return Err(RpcError::params("`protocolVersion` must be a string"));
    };
    let version = VERSIONS.into_iter().find(|known| *known == wanted).unwrap_or(VERSIONS[0]);
    Ok(json!({
        "protocolVersion": version,
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": { "name": "busbound", "title": "busbound", "version": env!("CARGO_PKG_VERSION") },
        "instructions": INSTRUCTIONS,
    }))
}

fn list(request: &Request) -> Result<Value, RpcError> {
    if request.params.contains_key("cursor") {
        return Err(RpcError::params("unknown cursor: all tools are in one list"));
    }
    let about = |tool: &&Tool| {
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.about,
            "inputSchema": schema(&(tool.fields)()),
            "annotations": {
                "title": tool.title,
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    };
    Ok(json!({ "tools": TOOLS.iter().map(about).collect::<Vec<_>>() }))
}
