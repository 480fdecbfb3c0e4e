//! Where the time goes in the program: the tree of blocks.

use askama::Template;
use busbound_diagnosis::quantity::milliseconds;

use super::{Context, SectionSpec};
use crate::error::RenderError;
use crate::text::attribution;

pub(super) const SECTION: SectionSpec = SectionSpec {
    id: "blocks",
    heading: "Where the time goes in the program",
    link: "Program",
    needs_script: false,
    body,
};

#[derive(Template)]
#[template(path = "blocks.html")]
struct BlocksView {
    blocks: Vec<Block>,
}

struct Block {
    name: String,
    depth: usize,
    /// Per step.
    runs: String,
    gpu: String,
    host: String,
    compute: String,
    copies: String,
    exposed: String,
    percent: f64,
}

fn body(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let Some(of_blocks) = &context.diagnosis().attribution else { return Ok(None) };
    let time = |ms: f64| if ms > 0.0 { milliseconds(ms) } else { "–".to_owned() };
    let outside = Some(&of_blocks.outside).filter(|outside| outside.gpu_ms > 0.0);
    let blocks: Vec<Block> = of_blocks
        .blocks
        .iter()
        .chain(outside)
        .map(|block| Block {
            name: block.name.clone(),
            depth: block.depth.min(8),
            runs: attribution::runs(block),
            gpu: time(block.gpu_ms),
            host: time(block.host_ms),
            compute: time(block.compute_ms),
            copies: time(block.copy_ms),
            exposed: time(block.exposed_ms),
            percent: (100.0 * block.share).min(100.0),
        })
        .collect();
    if blocks.is_empty() {
        return Ok(None);
    }
    Ok(Some(BlocksView { blocks }.render()?))
}
