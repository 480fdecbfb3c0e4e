//! Which lines of a log belong together? Each rank or process prints its own lines in order.

use std::collections::{BTreeMap, BTreeSet};

use super::line::{Fact, Line, Printer};
use super::{COMPILE_LOG_SCHEMA, CompileLog, GraphBreak, LimitReached, PrinterCounts, Recompiled, guard_of};

/// Where a log was cut.
const NO_REASON: &str = "not in the log";

/// What was read so far.
#[derive(Default)]
pub(super) struct Reading {
    log: CompileLog,
    has_begun: bool,
    are_breaks_logged: bool,
    are_recompiles_logged: bool,
    /// Breaks that `torch._dynamo.explain` counted, at most, in one function.
    explained: u64,
    /// What each printer is in the middle of.
    open: BTreeMap<Printer, Open>,
    places: BTreeMap<Printer, BTreeSet<String>>,
    recompilations: BTreeMap<Printer, u64>,
}

/// A record whose lines are still coming.
enum Open {
    Break(OpenBreak),
    Recompile { function: String, place: String, reason: Option<String> },
    Limit(LimitReached),
}

/// A graph break whose lines are still coming.
#[derive(Default)]
struct OpenBreak {
    place: Option<String>,
    /// The innermost level of the user's stack.
    frame: Option<String>,
    reason: Option<String>,
    hint: Option<String>,
    /// What the first line says, where no line says a reason.
    summary: Option<String>,
    /// What follows are frames of PyTorch.
    is_in_torch: bool,
}

impl Reading {
    pub(super) fn add(&mut self, line: &Line<'_>) {
        if line.begins() {
            self.has_begun = true;
        }
        let begun = match line.fact {
            Fact::Logging { breaks, recompiles } => {
                self.are_breaks_logged |= breaks;
                self.are_recompiles_logged |= recompiles;
                return;
            }
            Fact::BreakCount(number) => {
                self.are_breaks_logged = true;
                self.explained = self.explained.max(number);
                return;
            }
            Fact::Break { place, summary } => Open::Break(OpenBreak {
                place: place.map(str::to_owned),
                summary: summary.map(str::to_owned),
                ..OpenBreak::default()
            }),
            Fact::Recompile { function, place } => {
                Open::Recompile { function: function.to_owned(), place: place.to_owned(), reason: None }
            }
            Fact::Limit(limit) => {
                Open::Limit(LimitReached { limit: limit.to_owned(), ..LimitReached::default() })
            }
            _ => {
                if let Some(open) = self.open.get_mut(&line.printer) {
                    open.add(&line.fact);
                }
                return;
            }
        };
        if let Some(complete) = self.open.insert(line.printer.clone(), begun) {
            self.close(&line.printer, complete);
        }
    }

    fn close(&mut self, printer: &Printer, complete: Open) {
        match complete {
            Open::Break(one) => {
                self.are_breaks_logged = true;
                let place = one.place.or(one.frame);
                let of_printer = self.places.entry(printer.clone()).or_default();
                of_printer.insert(place.clone().unwrap_or_default());
                let reason = one.reason.or(one.summary).unwrap_or_else(|| NO_REASON.to_owned());
                let breaks = &mut self.log.breaks;
                match breaks.iter_mut().find(|known| known.place == place && known.reason == reason) {
                    Some(known) => known.count += 1,
                    None => breaks.push(GraphBreak { place, reason, hint: one.hint, count: 1 }),
                }
            }
            Open::Recompile { function, place, reason } => {
                self.are_recompiles_logged = true;
                *self.recompilations.entry(printer.clone()).or_default() += 1;
                let reason = reason.unwrap_or_else(|| NO_REASON.to_owned());
                let is_same = |known: &&mut Recompiled| {
                    known.function == function && known.place == place && known.guard() == guard_of(&reason)
                };
                match self.log.recompiled.iter_mut().find(is_same) {
                    Some(known) => known.count += 1,
                    None => self.log.recompiled.push(Recompiled { function, place, reason, count: 1 }),
                }
            }
            Open::Limit(limit) => {
                let is_same = |known: &LimitReached| {
                    (&known.limit, &known.function, &known.place)
                        == (&limit.limit, &limit.function, &limit.place)
                };
                if !self.log.limits.iter().any(is_same) {
                    self.log.limits.push(limit);
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> Option<CompileLog> {
        for (printer, open) in std::mem::take(&mut self.open) {
            self.close(&printer, open);
        }
        if !self.has_begun {
            return None;
        }
        let printers: BTreeSet<&Printer> = self.places.keys().chain(self.recompilations.keys()).collect();
        let counts = |printer: &&Printer| PrinterCounts {
            rank: match printer {
                Printer::Rank(rank) => Some(*rank),
                Printer::Process(_) | Printer::Unknown => None,
            },
            graph_breaks: self.places.get(*printer).map_or(0, |places| places.len() as u64),
            recompilations: self.recompilations.get(*printer).copied().unwrap_or(0),
        };
        self.log.printers = printers.iter().map(counts).collect();
        let places: BTreeSet<&String> = self.places.values().flatten().collect();
        self.log.graph_breaks = self.are_breaks_logged.then_some(self.explained.max(places.len() as u64));
        let most = self.recompilations.values().copied().max().unwrap_or(0);
        self.log.recompilations = self.are_recompiles_logged.then_some(most);
        self.log.breaks.sort_by_key(|one| std::cmp::Reverse(one.count));
        self.log.recompiled.sort_by_key(|one| std::cmp::Reverse(one.count));
        self.log.schema = COMPILE_LOG_SCHEMA;
        Some(self.log)
    }
}

fn names_instruction(reason: &str) -> bool {
    reason.starts_with("Encountered graph break when attempting to trace ")
}

impl Open {
    /// A later line of the same record. The first reason counts: later ones are the consequences.
    fn add(&mut self, fact: &Fact<'_>) {
        match (self, fact) {
            (Self::Break(OpenBreak { reason, .. }) | Self::Recompile { reason, .. }, Fact::Reason(text)) => {
                reason.get_or_insert_with(|| (*text).to_owned());
            }
            // PyTorch 2.11 names the instruction first, and the reason after an empty line.
            (Self::Break(one), Fact::Text(text)) if one.reason.as_deref().is_some_and(names_instruction) => {
                one.reason = Some((*text).to_owned());
            }
            (Self::Break(one), Fact::Hint(text)) => {
                one.hint.get_or_insert_with(|| (*text).to_owned());
            }
            (Self::Break(one), Fact::Traceback) => one.is_in_torch = true,
            (Self::Break(one), Fact::Frame { file, line }) if !one.is_in_torch => {
                one.frame = Some(format!("{file}:{line}"));
            }
            (Self::Limit(limit), Fact::Reason(text)) if limit.reason.is_empty() => {
                limit.reason = (*text).to_owned();
            }
            (Self::Limit(limit), Fact::Function { name, place }) => {
                limit.function = (*name).to_owned();
                limit.place = (*place).to_owned();
            }
            _ => {}
        }
    }
}
