//! What if the file is a report that only nsys reads? Where nsys is installed, it exports it, into a folder that is gone
//! afterwards.

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

/// How often it is looked whether nsys has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A report as a database, for as long as this is held.
pub(crate) struct Exported {
    folder: TempDir,
    /// Its own entry among those under way: several reports are exported at once.
    id: u64,
}

/// What must not outlive this program, should somebody end it.
struct UnderWay {
    folder: PathBuf,
    nsys: Child,
}

static UNDER_WAY: Mutex<BTreeMap<u64, UnderWay>> = Mutex::new(BTreeMap::new());
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Exported {
    /// Has nsys export a report; `None` where there is no nsys.
    pub(crate) fn from_report(
        report: &Path,
        watch: &mut dyn FnMut(Stage<'_>) -> ControlFlow<()>,
    ) -> Result<Option<Self>, Error> {
        let failed = |why: String| Error::Export { report: report.to_owned(), why };
        let folder = tempfile::Builder::new().prefix("busbound-").tempdir();
        let folder = folder.map_err(|error| failed(format!("no folder for the export: {error}")))?;
        let exported = Self { folder, id: NEXT_ID.fetch_add(1, Ordering::Relaxed) };
        let Some(nsys) = exported.start(report).map_err(|error| failed(error.to_string()))? else {
            return Ok(None);
        };
        let folder = exported.folder.path().to_owned();
        under_way().insert(exported.id, UnderWay { folder, nsys });
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
            return Err(failed(exported.last_words()));
        }
        Ok(Some(exported))
    }

    /// `None` where there is no nsys.
    fn start(&self, report: &Path) -> io::Result<Option<Child>> {
        let output = File::create(self.log())?;
        let started = Command::new("nsys")
            .args(["export", "--type", "sqlite", "-o"])
            .arg(self.database())
            // No name of a file reads as an option.
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

    /// How nsys ended, if it has; `None` where somebody else has ended it.
    fn status(&self) -> Option<io::Result<Option<ExitStatus>>> {
        Some(under_way().get_mut(&self.id)?.nsys.try_wait())
    }

    /// The last line that nsys wrote.
    fn last_words(&self) -> String {
        let said = fs::read(self.log()).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        last.unwrap_or("it did not say why").to_owned()
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
        let own = under_way().remove(&self.id);
        // Left early, nsys may still be at work; one that has ended is not harmed.
        if let Some(own) = own {
            own.end_nsys();
        }
    }
}

impl UnderWay {
    fn end_nsys(mut self) -> PathBuf {
        let _ = self.nsys.kill();
        let _ = self.nsys.wait();
        self.folder
    }
}

/// Ends every nsys that this process has started, and removes its folder: for a program that is about to be ended by a
/// signal, where nothing is dropped.
pub fn end_exports() {
    let left = std::mem::take(&mut *under_way());
    for one in left.into_values() {
        let _ = fs::remove_dir_all(one.end_nsys());
    }
}

fn under_way() -> std::sync::MutexGuard<'static, BTreeMap<u64, UnderWay>> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}
