//! `busbound man`: the manual, a page for each command, from the definition that parses the command line.

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
    // The page of `help` would say what every page says.
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let Some(directory) = &args.output else {
        return write_answer(&page(&command).map_err(Failure::output)?);
    };
    fs::create_dir_all(directory).map_err(Failure::output_at(directory.display()))?;
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
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let help = Help::of(&help);
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    // Clap's would leave the date out, and what comes after it would be taken for one.
    let version = env!("CARGO_PKG_VERSION");
    writeln!(page, ".TH {} 1 \"\" \"busbound {version}\" busbound", name(command))?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    help.description.to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    help.sections.to_writer(&mut page)?;
    if name(command) != "busbound" {
        let mut end = Roff::new();
        end.control("SH", ["SEE ALSO"]).text([roman("busbound(1)")]);
        end.to_writer(&mut page)?;
    }
    // Each piece begins with the same definitions: once is enough.
    let preamble = Roff::new().render();
    Ok(preamble.clone() + &String::from_utf8(page).map_err(io::Error::other)?.replace(&preamble, ""))
}

/// What `--help` says under the options. Clap's generator would make one paragraph of it, examples and all.
struct Help {
    description: Roff,
    sections: Roff,
}

impl Help {
    fn of(text: &str) -> Self {
        let mut help = Self { description: Roff::new(), sections: Roff::new() };
        for block in text.split("\n\n") {
            let lines: Vec<&str> = block.lines().collect();
            match lines.as_slice() {
                [] => {}
                [heading, rows @ ..] if heading.ends_with(':') && !rows.is_empty() => {
                    let title = heading.trim_end_matches(':');
                    if title.contains(' ') {
                        help.description.control("PP", []).text([roman(*heading)]).control("PP", []);
                        as_written(&mut help.description, rows);
                    } else {
                        let title = if title == "Example" { "Examples" } else { title };
                        help.sections.control("SH", [title.to_uppercase().as_str()]);
                        as_written(&mut help.sections, rows);
                    }
                }
                lines => match block.strip_prefix("Exit codes: ") {
                    Some(codes) => {
                        help.sections.control("SH", ["EXIT STATUS"]).text([roman(codes.replace('\n', " "))]);
                    }
                    None => {
                        help.description.control("PP", []).text([roman(lines.join(" "))]);
                    }
                },
            }
        }
        help
    }
}

/// Line by line, with the spaces that are there.
fn as_written(roff: &mut Roff, rows: &[&str]) {
    roff.control("nf", []);
    for row in rows {
        roff.text([roman(row.strip_prefix("  ").unwrap_or(row))]);
    }
    roff.control("fi", []);
}
