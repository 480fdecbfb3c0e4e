//! What if the file is a report that only nsys reads? Where nsys is installed, it exports it, into a folder that is gone
//! afterwards.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::output::complain;

/// How often it is looked whether nsys has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A report as a database, for as long as this is held.
pub(crate) struct Exported {
    folder: TempDir,
}

/// What must not outlive this program, should somebody end it.
struct Underway {
    #[cfg_attr(not(unix), expect(dead_code, reason = "removed where there are signals to listen for"))]
    folder: PathBuf,
    nsys: Option<Child>,
}

static UNDERWAY: Mutex<Option<Underway>> = Mutex::new(None);

impl Exported {
    /// Has nsys export a report, and says so; `None` where there is no nsys.
    pub(crate) fn from_report(report: &Path, quiet: bool) -> anyhow::Result<Option<Self>> {
        let prefix = tempfile::Builder::new().prefix("busbound-").tempdir();
        let exported = Self { folder: prefix.context("no folder for the export")? };
        let log = exported.folder.path().join("nsys.log");
        let output = File::create(&log).context("no file for what nsys says")?;
        let started = Command::new("nsys")
            .args(["export", "--type", "sqlite", "-o"])
            .arg(exported.database())
            // No name of a file reads as an option.
            .arg(std::path::absolute(report)?)
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            .spawn();
        let nsys = match started {
            Ok(nsys) => nsys,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context("nsys cannot be started"),
        };
        if !quiet {
            complain(&format!("{}: a report of Nsight Systems; nsys exports it", report.display()));
        }
        *underway() = Some(Underway { folder: exported.folder.path().to_owned(), nsys: Some(nsys) });
        clean_up_on_signals()?;
        let status = loop {
            let ended = underway().as_mut().and_then(|underway| underway.nsys.as_mut()).map(Child::try_wait);
            match ended {
                Some(Ok(None)) => std::thread::sleep(LOOK_EVERY),
                Some(Ok(Some(status))) => break status,
                Some(Err(error)) => return Err(error).context("nsys"),
                None => bail!("interrupted"),
            }
        };
        if !status.success() || !exported.database().is_file() {
            let said = fs::read(&log).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
            bail!("{}: nsys could not export it: {}", report.display(), last.unwrap_or("it did not say why"));
        }
        Ok(Some(exported))
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("exported.sqlite")
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        let before = underway().take();
        // Left early, with nsys still at work.
        if let Some(mut nsys) = before.and_then(|underway| underway.nsys) {
            let _ = nsys.kill();
            let _ = nsys.wait();
        }
    }
}

fn underway() -> std::sync::MutexGuard<'static, Option<Underway>> {
    UNDERWAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends nsys and removes its folder when this program is told to end; then it ends as it would have.
#[cfg(unix)]
fn clean_up_on_signals() -> anyhow::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    static LISTENING: std::sync::Once = std::sync::Once::new();
    if LISTENING.is_completed() {
        return Ok(());
    }
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen for Ctrl-C")?;
    LISTENING.call_once(|| {
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if let Some(left) = underway().take() {
                    if let Some(mut nsys) = left.nsys {
                        let _ = nsys.kill();
                        let _ = nsys.wait();
                    }
                    let _ = fs::remove_dir_all(&left.folder);
                }
                let _ = emulate_default_handler(signal);
            }
        });
    });
    Ok(())
}

/// Elsewhere Ctrl-C reaches nsys by the console; its folder stays with the system's temporary files.
#[cfg(not(unix))]
fn clean_up_on_signals() -> anyhow::Result<()> {
    Ok(())
}
