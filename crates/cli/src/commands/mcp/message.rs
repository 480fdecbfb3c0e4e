//! Messages of JSON-RPC 2.0: what a client sends, and what it gets back.

use serde_json::{Map, Value, json};

/// Why a request has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Parse,
    InvalidRequest,
    UnknownMethod,
    InvalidParams,
}

impl Code {
    fn number(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::UnknownMethod => -32601,
            Self::InvalidParams => -32602,
        }
    }
}

/// An error of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RpcError {
    pub(super) code: Code,
    pub(super) message: String,
}

impl RpcError {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidParams, message)
    }
}

/// A request, or a notification if it has no id.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) id: Option<Value>,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// What one line or one entry of a batch is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    Request(Request),
    /// To be answered without further work.
    Invalid {
        id: Value,
        error: RpcError,
    },
    /// An answer to a request that this server never sends, or a malformed notification.
    Ignored,
}

impl Message {
    pub(super) fn of(value: Value) -> Self {
        let Value::Object(mut object) = value else {
            return Self::invalid(Value::Null, Code::InvalidRequest, "a message must be an object");
        };
        let id = object.remove("id");
        let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
        let answered = id.clone().filter(is_id).unwrap_or(Value::Null);
        if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Self::invalid(answered, Code::InvalidRequest, "`jsonrpc` must be \"2.0\"");
        }
        let method = match object.remove("method") {
            Some(Value::String(method)) => method,
            None if object.contains_key("result") || object.contains_key("error") => return Self::Ignored,
            _ => return Self::invalid(answered, Code::InvalidRequest, "`method` must be a string"),
        };
        if id.as_ref().is_some_and(|id| !is_id(id)) {
            return Self::invalid(Value::Null, Code::InvalidRequest, "`id` must be a string or an integer");
        }
        let params = match (object.remove("params"), &id) {
            (None, _) => Map::new(),
            (Some(Value::Object(params)), _) => params,
            (Some(_), None) => return Self::Ignored,
            (Some(_), Some(_)) => {
                return Self::invalid(answered, Code::InvalidParams, "`params` must be an object");
            }
        };
        Self::Request(Request { id, method, params })
    }

    fn invalid(id: Value, code: Code, message: &str) -> Self {
        Self::Invalid { id, error: RpcError::new(code, message) }
    }
}

/// The answer to a request.
pub(super) fn reply(id: Value, outcome: Result<Value, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => {
            let error = json!({ "code": error.code.number(), "message": error.message });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(value: Value) -> Option<(Value, Code)> {
        match Message::of(value) {
            Message::Invalid { id, error } => Some((id, error.code)),
            _ => None,
        }
    }

    #[test]
    fn malformed_messages_are_answered_with_their_id_where_it_is_known() {
        let invalid = Code::InvalidRequest;
        assert_eq!(code_of(json!(1)), Some((Value::Null, invalid)));
        assert_eq!(code_of(json!({"id": 7, "method": "ping"})), Some((json!(7), invalid)));
        assert_eq!(code_of(json!({"jsonrpc": "2.0", "id": "a"})), Some((json!("a"), invalid)));
        let null = json!({"jsonrpc": "2.0", "id": null, "method": "ping"});
        assert_eq!(code_of(null), Some((Value::Null, invalid)));
        let list = json!({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": []});
        assert_eq!(code_of(list), Some((json!(7), Code::InvalidParams)));
    }

    #[test]
    fn notifications_and_answers_are_never_answered() {
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {}});
        assert_eq!(Message::of(answer), Message::Ignored);
        let notification = json!({"jsonrpc": "2.0", "method": "x", "params": 1});
        assert_eq!(Message::of(notification), Message::Ignored);
    }
}
