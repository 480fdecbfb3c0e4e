//! What does a tool take? Each argument is declared once; its schema and the check of what a client sends follow from that.

use serde_json::{Map, Value, json};

/// What an argument is.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Text,
    OneOf(Vec<String>),
    Number,
    Whole,
    /// A list of texts with at least this many.
    Texts {
        least: usize,
    },
    Flag,
    /// A value as on the command line: a text, a number, `true` or `false`.
    Scalar,
    /// The same, or a list of them.
    Scalars,
}

#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) about: String,
    pub(super) required: bool,
}

impl Field {
    pub(super) fn new(name: &str, kind: Kind, about: &str) -> Self {
        Self { name: name.to_owned(), kind, about: about.to_owned(), required: false }
    }

    pub(super) fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

impl Kind {
    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::OneOf(names) => json!({ "type": "string", "enum": names }),
            Self::Number => json!({ "type": "number", "exclusiveMinimum": 0 }),
            Self::Whole => json!({ "type": "integer", "minimum": 0 }),
            Self::Texts { least } => {
                json!({ "type": "array", "items": { "type": "string" }, "minItems": least })
            }
            Self::Flag => json!({ "type": "boolean" }),
            Self::Scalar => json!({ "type": ["string", "number", "boolean"] }),
            Self::Scalars => {
                json!({ "type": ["string", "number", "array"], "items": { "type": ["string", "number"] } })
            }
        }
    }

    /// What a value should be, if it is something else.
    fn refuses(&self, value: &Value) -> Option<String> {
        let is_plain = |value: &Value| value.is_string() || value.is_number();
        let (is_fine, wanted) = match self {
            Self::Text => (value.is_string(), "a string".to_owned()),
            Self::OneOf(names) => (
                value.as_str().is_some_and(|text| names.iter().any(|name| name == text)),
                format!("one of {}", names.join(", ")),
            ),
            Self::Number => {
                (value.as_f64().is_some_and(|number| number > 0.0), "a number above zero".to_owned())
            }
            Self::Whole => (value.is_u64(), "an integer, zero or more".to_owned()),
            Self::Texts { least } => (
                value
                    .as_array()
                    .is_some_and(|list| list.len() >= *least && list.iter().all(Value::is_string)),
                format!("a list of {least} or more strings"),
            ),
            Self::Flag => (value.is_boolean(), "true or false".to_owned()),
            Self::Scalar => {
                (is_plain(value) || value.is_boolean(), "a string, a number, true or false".to_owned())
            }
            Self::Scalars => (
                is_plain(value) || value.as_array().is_some_and(|list| list.iter().all(is_plain)),
                "a string, a number, or a list of strings and numbers".to_owned(),
            ),
        };
        (!is_fine).then_some(wanted)
    }
}

/// The JSON schema of these arguments.
pub(super) fn schema(fields: &[Field]) -> Value {
    let property = |field: &Field| {
        let mut property = field.kind.schema();
        property["description"] = Value::from(field.about.clone());
        (field.name.clone(), property)
    };
    let required: Vec<&str> =
        fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
    json!({
        "type": "object",
        "properties": fields.iter().map(property).collect::<Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    })
}

/// Arguments that fit their declaration.
#[derive(Debug, Default)]
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    /// # Errors
    /// If something is unknown, missing or of the wrong type, as a sentence.
    pub(super) fn check(fields: &[Field], given: Option<&Value>) -> Result<Self, String> {
        let given = match given {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(given)) => given.clone(),
            Some(_) => return Err("`arguments` must be an object".to_owned()),
        };
        for (name, value) in &given {
            let Some(field) = fields.iter().find(|field| field.name == *name) else {
                let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                return Err(format!("unknown argument {name:?}: it takes {}", names.join(", ")));
            };
            if let Some(wanted) = field.kind.refuses(value) {
                return Err(format!("`{name}` must be {wanted}"));
            }
        }
        match fields.iter().find(|field| field.required && !given.contains_key(&field.name)) {
            Some(missing) => Err(format!("`{}` is missing", missing.name)),
            None => Ok(Self(given)),
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }

    pub(super) fn whole(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    pub(super) fn texts(&self, name: &str) -> Vec<&str> {
        let list = self.0.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked_against_their_declaration() {
        let fields = [
            Field::new("paths", Kind::Texts { least: 1 }, "").required(),
            Field::new("warmup", Kind::Whole, ""),
        ];
        let why = |given: Value| Arguments::check(&fields, Some(&given)).err();
        assert_eq!(why(json!({"paths": ["a"], "warmup": 3})), None);
        assert_eq!(why(json!({})).as_deref(), Some("`paths` is missing"));
        assert_eq!(why(json!([])).as_deref(), Some("`arguments` must be an object"));
        assert_eq!(why(json!({"paths": []})).as_deref(), Some("`paths` must be a list of 1 or more strings"));
        let unknown = why(json!({"paths": ["a"], "path": "b"}));
        assert_eq!(unknown.as_deref(), Some("unknown argument \"path\": it takes paths, warmup"));
        assert!(why(json!({"paths": ["a"], "warmup": -1})).is_some());
    }
}
