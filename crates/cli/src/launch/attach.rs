//! Talks to processes that run with the recording library in them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use busbound_capture::inject::control::{self, Command};
use busbound_capture::inject::settings::Settings;

use crate::failure::Failure;

/// What one process answered.
pub(crate) struct Answer {
    pub(crate) process: u32,
    /// What it has done, or why not.
    pub(crate) said: Result<String, String>,
}

/// Asks a process, or the processes that it started.
pub(crate) fn ask(process: u32, command: Command) -> Result<Vec<Answer>, Failure> {
    if !about(process).exists() {
        return Err(Failure::unreadable(format!("there is no process {process}")));
    }
    let family = family(process);
    let prepared: Vec<(u32, PathBuf)> =
        family.iter().filter_map(|one| Some((*one, socket_of(*one)?))).collect();
    if prepared.is_empty() {
        return Err(Failure::unreadable(why_unprepared(process)));
    }
    let listening = prepared.into_iter().filter(|(_, socket)| socket.exists());
    let answers: Vec<Answer> = listening.filter_map(|(one, socket)| ask_one(one, &socket, command)).collect();
    if answers.is_empty() {
        let why = format!(
            "process {process} is prepared for recording, but neither it nor a process that it started uses CUDA yet; try again later"
        );
        return Err(Failure::unreadable(why));
    }
    Ok(answers)
}

/// `None` if the socket is a leftover of a process that had this id before.
fn ask_one(process: u32, socket: &Path, command: Command) -> Option<Answer> {
    let said = match control::ask(socket, command) {
        Ok(said) => said,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return None,
        Err(error) => Err(format!("it does not answer: {error}")),
    };
    Some(Answer { process, said })
}

fn about(process: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{process}"))
}

/// The process and its descendants.
fn family(process: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let parents: Vec<(u32, u32)> = all.iter().filter_map(|one| Some((*one, parent(*one)?))).collect();
    let mut family = vec![process];
    let mut next = 0;
    while let Some(&one) = family.get(next) {
        next += 1;
        family.extend(parents.iter().filter(|(_, parent)| *parent == one).map(|(child, _)| *child));
    }
    family
}

fn parent(process: u32) -> Option<u32> {
    let text = fs::read_to_string(about(process).join("stat")).ok()?;
    // The name of the program is in parentheses, and may contain some.
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Where the process listens once it uses CUDA, as seen from here; `None` if it was not prepared for it.
fn socket_of(process: u32) -> Option<PathBuf> {
    let environment = fs::read(about(process).join("environ")).ok()?;
    let value = |name: &str| -> Option<OsString> {
        environment.split(|byte| *byte == 0).find_map(|line| {
            let rest = line.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(OsStr::from_bytes(rest).to_owned())
        })
    };
    let directory = Settings::control_of(value)?;
    // In a container it has another id and another file system.
    let status = fs::read_to_string(about(process).join("status")).ok()?;
    let own = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?;
    let socket = control::socket(&directory, own.parse().ok()?);
    let seen = about(process).join("root").join(socket.strip_prefix("/").ok()?);
    Some(if seen.exists() { seen } else { socket })
}

/// The user of a process.
fn owner(process: impl std::fmt::Display) -> Option<u32> {
    fs::metadata(format!("/proc/{process}")).ok().map(|about| about.uid())
}

fn why_unprepared(process: u32) -> String {
    match fs::read(about(process).join("environ")) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            // Root of a container may look into none of the processes outside of it.
            match owner(process) == owner("self") {
                true => format!(
                    "process {process} cannot be recorded: a container or the system's security settings hide it from this user"
                ),
                false => format!(
                    "process {process} belongs to another user: only that user, or root, can record it"
                ),
            }
        }
        _ => format!(
            "process {process} cannot be recorded: it was not started by busbound record with --ring, --standby or --every. The CUDA driver \
             loads a recorder only when a process first uses CUDA, and only if the environment it was started with names one. Start it \
             again: busbound record --standby -- CMD"
        ),
    }
}
