//! `busbound demo`.

use busbound::diagnosis::Detail;
use busbound::{Format, Machine, Options};

use crate::args::demo::DemoArgs;
use crate::failure::Failure;
use crate::io::output::{save, show, warn};
use crate::request::resolve_output;

pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let run = busbound::demo()?;
    let drawn = run.draw(&Machine::default(), &Options::default(), &[], Detail::Page { runs: 1 });
    show(&drawn, &output, &args.page)?;
    if output.format == Format::Html {
        return Ok(());
    }
    save(&drawn, Format::Html, output.width, &args.page)?;
    warn(&format!("the page is in {}", args.page.display()));
    if args.open {
        open::that(&args.page).map_err(Failure::output_at("no browser could be opened"))?;
    }
    Ok(())
}
