//! `busbound record`: starts a program with the recording library loaded, and waits for it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::args::record::RecordArgs;
use crate::failure::Failure;
use crate::io::output::warn;
use crate::launch::child::{code_of, watch};
use crate::launch::record::recording;

/// Returns the program's exit code, unless it could not be started.
pub(crate) fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let output = std::path::absolute(&args.output).map_err(Failure::output_at("the working directory"))?;
    if output.exists() {
        if !args.force {
            let taken = format!(
                "{} exists already: choose another file with -o, or overwrite it with --force",
                output.display()
            );
            return Err(Failure::usage(taken));
        }
        fs::remove_file(&output).map_err(Failure::unwritable_at(&output))?;
    }
    let status = watch(recorded(args, &output)?)?;
    if !args.quiet {
        say_what_was_recorded(&args.output);
    }
    Ok(code_of(status))
}

/// The program, with the library loaded into it.
fn recorded(args: &RecordArgs, output: &Path) -> Result<Command, Failure> {
    let [program, rest @ ..] = args.command.as_slice() else {
        return Err(Failure::usage("no program to record: give it after --"));
    };
    let mut command = Command::new(program);
    command.args(rest);
    recording(&mut command, output, args.delay, args.duration)?;
    Ok(command)
}

/// Prints one line about the recording.
fn say_what_was_recorded(output: &Path) {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let directory = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let others = fs::read_dir(directory).into_iter().flatten().flatten().filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix(&format!("{stem}.")).and_then(|rest| rest.strip_suffix(".bbt"));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    match (output.metadata(), others.count()) {
        (Err(_), _) => warn("nothing was recorded: no process used CUDA, or an error is shown above"),
        (Ok(about), 0) => {
            let size = busbound::diagnosis::quantity::bytes(about.len());
            warn(&format!("recorded {size}; next: busbound {}", output.display()));
        }
        (Ok(_), others) => {
            let all = format!("recorded {} processes", others + 1);
            warn(&format!("{all}; next: busbound {} '{stem}.*.bbt'", output.display()));
        }
    }
}
