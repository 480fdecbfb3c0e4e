//! `busbound man`: the manual, one page per command, from the definition that parses the command line.

use std::fs;
use std::io::{self, Write};

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::args::Cli;
use crate::args::man::ManArgs;
use crate::failure::Failure;
use crate::io::output::{write_answer, write_file};

pub(crate) fn run(args: &ManArgs) -> Result<(), Failure> {
    // `help` only repeats the other pages.
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let Some(directory) = &args.output else {
        return write_answer(&page(&command).map_err(Failure::output)?);
    };
    fs::create_dir_all(directory).map_err(Failure::unwritable_at(directory))?;
    let mut left = vec![&command];
    while let Some(command) = left.pop() {
        let page = page(command).map_err(Failure::output)?;
        write_file(&directory.join(format!("{}.1", name(command))), &page)?;
        left.extend(command.get_subcommands().filter(|below| !below.is_hide_set()));
    }
    Ok(())
}

/// `busbound-plan-offload`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

fn page(command: &Command) -> io::Result<String> {
    let help = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    // Clap's own title leaves out the date, and man would take the next field for it.
    let version = env!("CARGO_PKG_VERSION");
    writeln!(page, ".TH {} 1 \"\" \"busbound {version}\" busbound", name(command))?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    sections(&help).to_writer(&mut page)?;
    if name(command) != "busbound" {
        let mut end = Roff::new();
        end.control("SH", ["SEE ALSO"]).text([roman("busbound(1)")]);
        end.to_writer(&mut page)?;
    }
    // Each part begins with the same definitions; one copy is enough.
    let preamble = Roff::new().render();
    Ok(preamble.clone() + &String::from_utf8(page).map_err(io::Error::other)?.replace(&preamble, ""))
}

/// What `--help` has below the options, as sections. Clap's generator would make one paragraph of it, examples included.
fn sections(text: &str) -> Roff {
    let mut sections = Roff::new();
    for block in text.split("\n\n") {
        let mut lines = block.lines();
        let Some(heading) = lines.next() else { continue };
        let title = match heading.trim_end_matches(':') {
            "Example" => "Examples",
            "Exit codes" => "Exit status",
            other => other,
        };
        sections.control("SH", [title.to_uppercase().as_str()]);
        as_written(&mut sections, &lines.collect::<Vec<_>>());
    }
    sections
}

/// Line by line, spaces kept.
fn as_written(roff: &mut Roff, rows: &[&str]) {
    roff.control("nf", []);
    for row in rows {
        roff.text([roman(row.strip_prefix("  ").unwrap_or(row))]);
    }
    roff.control("fi", []);
}
