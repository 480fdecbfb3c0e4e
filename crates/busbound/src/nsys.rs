//! What if only nsys can read the report? If nsys is installed, it exports the report to a temporary folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::error::Error;
use crate::stage::Stage;

/// How often to check whether nsys has exited.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A report exported as a database; dropping this removes it.
pub(crate) struct Exported {
    folder: TempDir,
    /// The key of its entry in `RUNNING`: several reports may be exported at the same time.
    id: u64,
}

/// What must not outlive this process if a signal ends it.
struct Running {
    folder: PathBuf,
    nsys: Child,
}

static RUNNING: Mutex<BTreeMap<u64, Running>> = Mutex::new(BTreeMap::new());
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Exported {
    /// Exports a report with nsys; `None` if nsys is not installed.
    pub(crate) fn from_report(
        report: &Path,
        watch: &mut dyn FnMut(Stage<'_>) -> ControlFlow<()>,
    ) -> Result<Option<Self>, Error> {
        let failed = |why: String| Error::Export { report: report.to_owned(), why };
        let folder = tempfile::Builder::new().prefix("busbound-").tempdir();
        let folder =
            folder.map_err(|error| failed(format!("cannot create a folder for the export: {error}")))?;
        let exported = Self { folder, id: NEXT_ID.fetch_add(1, Ordering::Relaxed) };
        let Some(nsys) = exported.start(report).map_err(|error| failed(error.to_string()))? else {
            return Ok(None);
        };
        let folder = exported.folder.path().to_owned();
        running().insert(exported.id, Running { folder, nsys });
        let interrupted = || Error::Interrupted { path: report.to_owned() };
        if watch(Stage::ExportStarted { report }).is_break() {
            return Err(interrupted());
        }
        let status = loop {
            match exported.status() {
                Some(Ok(Some(status))) => break status,
                Some(Err(error)) => return Err(failed(error.to_string())),
                Some(Ok(None)) if watch(Stage::Exporting).is_continue() => std::thread::sleep(LOOK_EVERY),
                Some(Ok(None)) | None => return Err(interrupted()),
            }
        };
        if !status.success() || !exported.database().is_file() {
            return Err(failed(exported.last_line()));
        }
        Ok(Some(exported))
    }

    /// `None` if nsys is not installed.
    fn start(&self, report: &Path) -> io::Result<Option<Child>> {
        let output = File::create(self.log())?;
        let started = Command::new("nsys")
            .args(["export", "--type", "sqlite", "-o"])
            .arg(self.database())
            // An absolute path cannot look like an option.
            .arg(std::path::absolute(report)?)
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            .spawn();
        match started {
            Ok(nsys) => Ok(Some(nsys)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The exit status of nsys, if it has exited; `None` if [`end_exports`] has ended it.
    fn status(&self) -> Option<io::Result<Option<ExitStatus>>> {
        Some(running().get_mut(&self.id)?.nsys.try_wait())
    }

    /// The last line that nsys wrote.
    fn last_line(&self) -> String {
        let output = fs::read(self.log()).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let last = output.lines().map(str::trim).rfind(|line| !line.is_empty());
        last.unwrap_or("it gave no reason").to_owned()
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("nsys.log")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("exported.sqlite")
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        let own = running().remove(&self.id);
        // After an early return, nsys may still be running; killing one that has exited does nothing.
        if let Some(own) = own {
            own.end_nsys();
        }
    }
}

impl Running {
    fn end_nsys(mut self) -> PathBuf {
        let _ = self.nsys.kill();
        let _ = self.nsys.wait();
        self.folder
    }
}

/// Kills every nsys that this process has started, and removes its folder. For a program that exits because of a signal,
/// where destructors do not run.
pub fn end_exports() {
    let left = std::mem::take(&mut *running());
    for one in left.into_values() {
        let _ = fs::remove_dir_all(one.end_nsys());
    }
}

fn running() -> std::sync::MutexGuard<'static, BTreeMap<u64, Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
