//! What if the file is a report that only nsys reads? Where nsys is installed, it exports it, into a folder that is gone
//! afterwards.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// Its own entry among those underway: several reports are exported at once.
    id: u64,
}

/// What must not outlive this program, should somebody end it.
struct Underway {
    #[cfg_attr(not(unix), expect(dead_code, reason = "removed where there are signals to listen for"))]
    folder: PathBuf,
    nsys: Child,
}

static UNDERWAY: Mutex<BTreeMap<u64, Underway>> = Mutex::new(BTreeMap::new());
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Exported {
    /// Has nsys export a report, and says so; `None` where there is no nsys.
    pub(crate) fn from_report(report: &Path, quiet: bool) -> anyhow::Result<Option<Self>> {
        let prefix = tempfile::Builder::new().prefix("busbound-").tempdir();
        let folder = prefix.context("no folder for the export")?;
        let exported = Self { folder, id: NEXT_ID.fetch_add(1, Ordering::Relaxed) };
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
        underway().insert(exported.id, Underway { folder: exported.folder.path().to_owned(), nsys });
        clean_up_on_signals()?;
        let status = loop {
            let ended = underway().get_mut(&exported.id).map(|own| own.nsys.try_wait());
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
        let own = underway().remove(&self.id);
        // Left early, nsys may still be at work; one that has ended is not harmed.
        if let Some(own) = own {
            own.end_nsys();
        }
    }
}

impl Underway {
    fn end_nsys(mut self) -> PathBuf {
        let _ = self.nsys.kill();
        let _ = self.nsys.wait();
        self.folder
    }
}

fn underway() -> std::sync::MutexGuard<'static, BTreeMap<u64, Underway>> {
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
                let left = std::mem::take(&mut *underway());
                for one in left.into_values() {
                    let _ = fs::remove_dir_all(one.end_nsys());
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
