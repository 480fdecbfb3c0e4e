//! How jobs changed over time, from summaries that are here or were read from elsewhere.

use std::path::PathBuf;

use busbound::fleet::{History, Unread};
use busbound::tables::write_history;
use busbound::{find_recordings, job_of, jobs_in};
use pyo3::prelude::*;

use crate::answer::{Answer, Content};
use crate::attend::attend;
use crate::failure::{Family, failed, failure_of};

/// Names of files, each with its text or with why it could not be read.
type Files = Vec<(String, String)>;

/// The summaries of one job.
#[derive(Debug, FromPyObject)]
pub(crate) enum Recordings {
    /// The job's name, its files, and those that could not be read.
    Read(String, Files, Files),
    /// Files, a folder or a pattern on this machine.
    Local(PathBuf),
}

/// What changed in jobs, and when; also writes the recordings as Parquet files to a folder.
#[pyfunction]
#[pyo3(signature = (jobs, parquet = None))]
pub(crate) fn history(py: Python<'_>, jobs: Vec<Recordings>, parquet: Option<PathBuf>) -> PyResult<Answer> {
    let mut history = attend(py, move |_| conclude(jobs, parquet))??;
    if history.jobs.is_empty()
        && let Some(last) = history.unread.pop()
    {
        return Err(Family::Unreadable.error(last.why));
    }
    Ok(Answer::of(Content::History(history)))
}

fn conclude(jobs: Vec<Recordings>, parquet: Option<PathBuf>) -> PyResult<History> {
    let (mut all, mut unread) = (Vec::new(), Vec::new());
    for job in jobs {
        match job {
            Recordings::Local(path) => {
                let (jobs, more) = jobs_in(&[path]).map_err(failure_of)?;
                all.extend(jobs);
                unread.extend(more);
            }
            Recordings::Read(name, texts, failures) => {
                let (job, more) = job_of(&name, texts);
                all.push(job);
                unread.extend(more);
                unread.extend(failures.into_iter().map(|(path, why)| Unread::new(path, why)));
            }
        }
    }
    if let Some(folder) = parquet {
        write_history(&folder, &all).map_err(failed)?;
    }
    let mut history = History::of(all, unread);
    find_recordings(&mut history);
    Ok(history)
}
