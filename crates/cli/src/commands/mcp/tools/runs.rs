//! Reading the traces that a call names, and the options that several tools have.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use busbound::fleet::Unread;
use busbound::{Input, Machine, Options, ReadOptions, Run, open_input};
use regex_lite::Regex;

use super::super::fields::{Field, Kind};
use super::Asked;
use crate::io::kind::{FileKind, instead_of};

pub(super) fn paths_field(least: usize, about: &str) -> Field {
    Field::new("paths", Kind::Texts { least }, about).required()
}

pub(super) const ONE_OR_MORE: &str = "Trace files, directories of rank files, or patterns such as rank*.json; \
     relative to the server's root. Several ranks of one run are compared with each other.";

/// The options of an analysis.
pub(super) fn analysis_fields() -> Vec<Field> {
    vec![
        Field::new(
            "machine",
            Kind::Text,
            "Compare copies with this GPU, link, rate or profile: h100-pcie, pcie4x16, 63 (GB/s), machine.json. \
             Default: the GPU named in the trace.",
        ),
        Field::new(
            "steps",
            Kind::Text,
            "Regular expression: annotations that match are steps. Default: ProfilerStep#N, step and the like.",
        ),
        Field::new("warmup", Kind::Whole, "Leave out this many steps at the beginning. Default: detected."),
    ]
}

/// The step time without the profiler, for tools that take one run.
pub(super) fn wall_field() -> Field {
    let about = "Step time in ms without the profiler, if you timed it. Default: measured or estimated.";
    Field::new("wall_ms", Kind::Number, about)
}

impl Asked<'_> {
    /// The machine that copies are compared with.
    pub(super) fn machine(&self) -> Result<Machine, String> {
        let name =
            self.arguments.text("machine").map(|name| self.known_machine(name.to_owned())).transpose()?;
        busbound::resolve_machine(name.as_deref()).map_err(|error| error.to_string())
    }

    /// The name of a machine as the library takes it: for a profile, its real path below the roots.
    ///
    /// # Errors
    /// If it is unknown.
    pub(super) fn known_machine(&self, name: String) -> Result<String, String> {
        let name = match name.ends_with(".json") {
            true => self.roots.path(&name)?.real.display().to_string(),
            false => name,
        };
        busbound::resolve_machine(Some(&name)).map_err(|error| error.to_string())?;
        Ok(name)
    }

    pub(super) fn options(&self) -> Result<Options, String> {
        let mut options = Options::default();
        let steps = self.arguments.text("steps").map(Regex::new).transpose();
        options.steps = steps.map_err(|error| format!("`steps` is not a regular expression: {error}"))?;
        options.warmup =
            self.arguments.whole("warmup").map(|steps| usize::try_from(steps).unwrap_or(usize::MAX));
        options.wall_ms = self.arguments.number("wall_ms");
        Ok(options)
    }

    /// Reads one trace after the other, so that one is in memory at a time. Returns what could not be read.
    ///
    /// # Errors
    /// If nothing could be read.
    pub(super) fn each_run(&self, mut take: impl FnMut(&Run)) -> Result<Vec<Unread>, String> {
        let files = self.roots.files(&self.arguments.texts("paths"))?;
        let (mut unread, mut taken) = (Vec::new(), 0);
        for file in &files {
            let input = Input::File(file.real.clone());
            let read = open_input(&input, &ReadOptions::default(), &mut |_| match self.is_canceled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
            if self.is_canceled() {
                return Err("the call was canceled".to_owned());
            }
            match read {
                Ok(run) => {
                    take(&run.named(file.name.clone()));
                    taken += 1;
                }
                Err(error) => {
                    let why = instead_of(FileKind::Trace, &file.real).unwrap_or_else(|| error.to_string());
                    unread.push(Unread::new(file.name.clone(), why));
                }
            }
        }
        match unread.last() {
            Some(last) if taken == 0 => Err(last.why.clone()),
            _ => Ok(unread),
        }
    }

    fn is_canceled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
