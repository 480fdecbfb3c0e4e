//! Generates `web/src/layout.ts` from the layout.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::columns::{ColumnDescription, TableDescription};
use super::layout::{Head, VERSION, tables};

fn generated() -> String {
    let mut out = String::from(
        "// Generated from crates/report/src/html/data/layout.rs: edit that, then\n\
         // BUSBOUND_WRITE_DOCS=1 cargo test -p busbound-report --lib\n\n",
    );
    let _ = writeln!(
        out,
        "/** The version of the layout that this script reads. */\nexport const VERSION = {VERSION};\n"
    );
    let tables = tables();
    for table in &tables {
        interface(&mut out, table);
    }
    out.push_str("/** Every table, by its name in the header. */\nexport interface Tables {\n");
    for table in &tables {
        let _ = writeln!(out, "  readonly {}: {};", table.name, type_name(table.name));
    }
    out.push_str("}\n\n/** The columns that this script reads. */\nexport const COLUMNS = {\n");
    for table in &tables {
        let names: Vec<String> = table.columns.iter().map(|column| format!("'{}'", column.name)).collect();
        let _ = writeln!(out, "  {}: [{}],", table.name, names.join(", "));
    }
    out.push_str("} as const;\n");
    let schema = schemars::schema_for!(Head<'static>).to_value();
    of_schema(&mut out, "Head", &schema);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        of_schema(&mut out, name, definition);
    }
    out
}

/// `pieces` as `PiecesColumns`.
fn type_name(table: &str) -> String {
    let (first, rest) = table.split_at(1);
    format!("{}{rest}Columns", first.to_uppercase())
}

fn interface(out: &mut String, table: &TableDescription) {
    let _ = writeln!(
        out,
        "/** {} */\nexport interface {} {{\n  readonly length: number;",
        table.doc,
        type_name(table.name)
    );
    for ColumnDescription { name, encoding, unit, doc } in &table.columns {
        let unit = if unit.is_empty() { String::new() } else { format!(" In {unit}.") };
        let (absent, array) = match *encoding {
            "number" => ("", "Float64Array"),
            "optional" => (" NaN for none.", "Float64Array"),
            "flag" => ("", "Uint8Array"),
            "index" | "count" => ("", "Uint32Array"),
            other => panic!("no array type for the encoding {other}"),
        };
        let _ = writeln!(out, "  /** {doc}{unit}{absent} */\n  readonly {name}: {array};");
    }
    out.push_str("}\n\n");
}

/// An interface, or a union of string literals.
fn of_schema(out: &mut String, name: &str, schema: &Value) {
    out.push('\n');
    if let Some(doc) = schema["description"].as_str() {
        let _ = writeln!(out, "/** {doc} */");
    }
    let Some(members) = schema["properties"].as_object() else {
        let _ = writeln!(out, "export type {name} = {};", type_of(schema));
        return;
    };
    let _ = writeln!(out, "export interface {name} {{");
    for (member, schema) in members {
        if let Some(doc) = schema["description"].as_str() {
            let _ = writeln!(out, "  /** {doc} */");
        }
        let _ = writeln!(out, "  readonly {member}: {};", type_of(schema));
    }
    out.push_str("}\n");
}

fn type_of(schema: &Value) -> String {
    let union = |all: &Value| {
        let mut types: Vec<String> = all.as_array().into_iter().flatten().map(type_of).collect();
        types.dedup();
        types.join(" | ")
    };
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.trim_start_matches("#/$defs/").to_owned();
    }
    if let Some(word) = schema["const"].as_str() {
        return format!("'{word}'");
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> =
            words.iter().map(|word| format!("'{}'", word.as_str().unwrap_or_default())).collect();
        return words.join(" | ");
    }
    for several in ["oneOf", "anyOf"] {
        if schema[several].is_array() {
            return union(&schema[several]);
        }
    }
    let of_type = |name: &str| match name {
        "array" if schema["prefixItems"].is_array() => {
            let items: Vec<String> =
                schema["prefixItems"].as_array().into_iter().flatten().map(type_of).collect();
            format!("readonly [{}]", items.join(", "))
        }
        "array" if schema["maxItems"].is_u64() => {
            let length = schema["maxItems"].as_u64().unwrap_or(0) as usize;
            format!("readonly [{}]", vec![type_of(&schema["items"]); length].join(", "))
        }
        "array" => {
            let item = type_of(&schema["items"]);
            if item.contains(' ') { format!("readonly ({item})[]") } else { format!("readonly {item}[]") }
        }
        "object" => format!("Readonly<Record<string, {}>>", type_of(&schema["additionalProperties"])),
        "integer" | "number" => "number".to_owned(),
        "string" | "boolean" | "null" => name.to_owned(),
        other => panic!("no TypeScript type for {other}"),
    };
    match &schema["type"] {
        Value::String(name) => of_type(name),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).map(of_type).collect::<Vec<_>>().join(" | ")
        }
        _ => panic!("no TypeScript type for {schema}"),
    }
}

/// Compares a committed file under `web/` with the generated one, or writes it.
pub(super) fn check(file: &str, expected: &str, is_same: impl Fn(&str) -> bool) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web").join(file);
    if std::env::var_os("BUSBOUND_WRITE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        is_same(&found),
        "web/{file} is out of date: run BUSBOUND_WRITE_DOCS=1 cargo test -p busbound-report --lib"
    );
}

#[test]
fn the_generated_typescript_is_up_to_date() {
    let text = generated();
    check("src/layout.ts", &text, |found| found == text);
}
