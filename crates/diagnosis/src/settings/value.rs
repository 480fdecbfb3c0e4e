//! What is the value of a setting? Each format writes it in its own syntax.

use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    Flag(bool),
    Count(u64),
    /// 0 to 1, in hundredths.
    Share(f64),
    Text(String),
    /// A Python expression.
    Code(&'static str),
}

impl Value {
    /// As a Python expression.
    pub fn as_python(&self) -> String {
        match self {
            Self::Flag(true) => "True".to_owned(),
            Self::Flag(false) => "False".to_owned(),
            Self::Text(text) => quoted(text),
            Self::Count(_) | Self::Share(_) | Self::Code(_) => self.to_string(),
        }
    }

    /// As a YAML scalar: numbers and booleans stay unquoted.
    pub fn as_yaml(&self) -> String {
        match self {
            Self::Flag(_) | Self::Count(_) | Self::Share(_) => self.to_string(),
            Self::Text(text) => quoted(text),
            Self::Code(code) => quoted(code),
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Share(share) => write!(f, "{share:.2}"),
            Self::Text(text) => f.write_str(text),
            Self::Code(code) => f.write_str(code),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
