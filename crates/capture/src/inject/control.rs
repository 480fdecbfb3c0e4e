//! Commands to a process that runs: a socket in a directory that only its user can write to. A signal would be simpler,
//! but programs use them, and a signal has no answer.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A client that sends nothing must not delay recording for longer.
const PATIENCE: Duration = Duration::from_millis(200);
/// Writing a dump takes less, even to a slow disk.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);
const LONGEST: u64 = 4096;

/// What a process can be asked to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Command {
    /// Write what the ring holds.
    Dump,
    /// Start to record, for this long or until it is asked to stop.
    Start(Option<Duration>),
    Stop,
}

impl Command {
    fn line(self) -> String {
        match self {
            Self::Dump => "dump\n".to_owned(),
            Self::Start(None) => "start\n".to_owned(),
            Self::Start(Some(duration)) => format!("start {}\n", duration.as_secs_f64()),
            Self::Stop => "stop\n".to_owned(),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let command = match (words.next()?, words.next()) {
            ("dump", None) => Self::Dump,
            ("start", None) => Self::Start(None),
            ("start", Some(seconds)) => {
                Self::Start(Some(Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?))
            }
            ("stop", None) => Self::Stop,
            _ => return None,
        };
        words.next().is_none().then_some(command)
    }
}

/// The socket of a process.
pub fn socket(directory: &Path, process: u32) -> PathBuf {
    directory.join(format!("{process}.sock"))
}

/// Asks a process, and returns what it has done, or why not.
///
/// # Errors
/// If the process does not answer.
pub fn ask(socket: &Path, command: Command) -> io::Result<Result<String, String>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWERED_WITHIN))?;
    stream.write_all(command.line().as_bytes())?;
    let mut answer = String::new();
    stream.take(LONGEST).read_to_string(&mut answer)?;
    match answer.trim_end().split_once(' ') {
        Some(("done", what)) => Ok(Ok(what.to_owned())),
        Some(("failed", why)) => Ok(Err(why.to_owned())),
        _ => Err(io::Error::other("it closed the connection without an answer")),
    }
}

/// The end of the recorded process.
pub(super) struct Control {
    listener: UnixListener,
    path: PathBuf,
    process: u32,
}

impl Control {
    /// Listens in this directory.
    ///
    /// # Errors
    /// If the socket cannot be made there.
    pub(super) fn listen(directory: &Path) -> Result<Self, String> {
        let process = std::process::id();
        let path = socket(directory, process);
        // A bound socket that does not listen yet refuses clients: it gets its name, perhaps that of a process that had this id
        // before, when it does.
        let unnamed = path.with_extension("new");
        let _ = std::fs::remove_file(&unnamed);
        let listener = UnixListener::bind(&unnamed).and_then(|listener| {
            listener.set_nonblocking(true)?;
            std::fs::rename(&unnamed, &path)?;
            Ok(listener)
        });
        match listener {
            Ok(listener) => Ok(Self { listener, path, process }),
            Err(error) => Err(format!("cannot take commands at {}: {error}", path.display())),
        }
    }

    /// The next command that waits, with the client that wants an answer.
    pub(super) fn next(&self) -> Option<(Command, Client)> {
        let (stream, _) = self.listener.accept().ok()?;
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let _ = stream.set_write_timeout(Some(PATIENCE));
        let mut bytes = [0; 64];
        let mut length = 0;
        while !bytes[..length].contains(&b'\n') && length < bytes.len() {
            match (&stream).read(&mut bytes[length..]) {
                Ok(0) | Err(_) => break,
                Ok(read) => length += read,
            }
        }
        let client = Client(stream);
        let line = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
        match Command::parse(line) {
            Some(command) => Some((command, client)),
            None => {
                client.answer(&Err(
                    "it does not know this command: is it another version of busbound?".to_owned()
                ));
                None
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

pub(super) struct Client(UnixStream);

impl Client {
    pub(super) fn answer(mut self, answer: &Result<String, String>) {
        let (word, text) = match answer {
            Ok(text) => ("done", text),
            Err(text) => ("failed", text),
        };
        // It may have gone.
        let _ = self.0.write_all(format!("{word} {text}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_they_were_written() {
        let half = Duration::from_millis(500);
        for command in [Command::Dump, Command::Start(None), Command::Start(Some(half)), Command::Stop] {
            assert_eq!(Command::parse(&command.line()), Some(command));
        }
        for line in ["", "dump now", "start x", "start -1", "stop 1 2", "halt"] {
            assert_eq!(Command::parse(line), None, "{line}");
        }
    }
}
