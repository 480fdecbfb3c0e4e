//! What does a finding, verdict, figure, limitation, what-if change or term mean?

use busbound::diagnosis::{explain, explanations};
use serde_json::{Value, json};

use super::super::fields::{Field, Kind};
use super::{Asked, Tool, ToolAnswer, text_of};

pub(super) const TOOL: Tool = Tool {
    name: "explain",
    title: "Explain a finding, verdict, figure, limitation, what-if change or term",
    about: "Explains a finding, verdict, idle cause, figure, limitation, what-if change or term by its id, as answers name it: what it means, \
            how it is computed, how to fix it. Without an id it lists all ids.",
    fields,
    call,
};

fn fields() -> Vec<Field> {
    vec![Field::new("id", Kind::Text, "For example pageable_copies, transfer or exposed_bus_copy_ms.")]
}

fn call(asked: &Asked<'_>) -> Result<ToolAnswer, String> {
    let Some(id) = asked.arguments.text("id") else {
        // Without their topics: all of them fit into one answer.
        let ids = |one: &busbound::diagnosis::Explanation| json!({ "id": one.id, "title": one.title });
        let all = explanations();
        let text = format!("{} ids can be explained", all.len());
        return Ok(ToolAnswer { text, parts: vec![("ids", all.iter().map(ids).collect())] });
    };
    let found = explain(id).map_err(|unknown| unknown.to_string())?;
    let all: Value = json!(found);
    Ok(ToolAnswer { text: text_of(&found)?, parts: vec![("explanations", all)] })
}
