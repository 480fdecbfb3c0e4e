//! `busbound demo`.

use busbound::diagnosis::Detail;
use busbound::{Format, Machine, Options};

use crate::args::demo::DemoArgs;
use crate::failure::Failure;
use crate::io::output::{save, show, warn};
use crate::request::resolve_output;

pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    let run = busbound::demo()?;
    let drawn = run.draw(&Machine::default(), &Options::default(), &[], Detail::Page { runs: 1 });
    show(&drawn, &output, "busbound-demo.html")?;
    if let Some(page) = &args.page {
        save(&drawn, Format::Html, &output, page)?;
        warn(&format!("the page is in {}", page.display()));
    } else if output.format == Format::Terminal && !output.quiet {
        warn("busbound demo --open shows this as a page with the timeline");
    }
    Ok(())
}
