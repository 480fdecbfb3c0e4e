//! `busbound top`: watch the bus live.

mod controls;
mod exports;
mod feed;
pub(super) mod heartbeats;
mod metrics;
mod otlp;
mod screen;
mod summaries;

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use busbound::machine::live::Snapshot;
use busbound::report::top_as_lines;
use busbound::{Format, Report, Style};

use self::exports::Exports;
use self::feed::Feed;
use crate::args::top::TopArgs;
use crate::failure::Failure;
use crate::io::interrupt::listen_for_signals;
use crate::io::output::show;
use crate::request::{Output, resolve_output};

/// How the intervals are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Show {
    Once,
    JsonLines,
    Lines,
    /// Only metrics are exported.
    Nothing,
    Screen,
}

pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    let show = resolve_show(args, &output)?;
    // A mistake in an address is said on machines without a driver, too.
    Exports::check(args)?;
    let stop = listen_for_signals()?;
    let mut feed = Feed::open(args, show)?;
    let exports = Exports::start(args, show)?;
    let interval = Duration::from_secs_f64(args.interval);
    match show {
        Show::Once => once(&mut feed, interval, &stop, &output),
        Show::Screen => screen::run(&mut feed, args, &exports, &stop),
        _ => stream(&mut feed, args, show, &exports, &stop),
    }
}

fn resolve_show(args: &TopArgs, output: &Output) -> Result<Show, Failure> {
    let is_document = matches!(output.format, Format::Markdown | Format::Html) || output.file.is_some();
    let is_exported = args.prometheus.is_some() || args.otlp.is_some();
    if is_document && (args.count.is_some() || is_exported) {
        let why = "-o, --open and --format markdown or html show one interval: leave out --count, --prometheus and --otlp";
        return Err(Failure::usage(why));
    }
    Ok(match output.format {
        _ if args.once || is_document => Show::Once,
        Format::Json => Show::JsonLines,
        _ if io::stdout().is_terminal() => Show::Screen,
        _ if is_exported => Show::Nothing,
        _ => Show::Lines,
    })
}

/// How often to look for signals.
const NOTICE: Duration = Duration::from_millis(50);

/// Returns whether the time was reached, not a signal.
fn wait_until(deadline: Instant, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(NOTICE));
    }
    false
}

fn once(feed: &mut Feed, interval: Duration, stop: &AtomicBool, output: &Output) -> Result<(), Failure> {
    if feed.is_live() && !wait_until(Instant::now() + interval, stop) {
        return Err(Failure::Interrupted);
    }
    // A log is replayed to its last interval.
    let mut last = None;
    while let Some(snapshot) = feed.next()? {
        last = Some(snapshot);
        if feed.is_live() {
            break;
        }
    }
    let Some(snapshot) = last else { return Ok(()) };
    show(&snapshot, output, "top.html")
}

fn rendered(snapshot: &Snapshot, format: Format) -> Result<String, Failure> {
    snapshot.render(format, &Style::default()).map_err(Failure::output)
}

/// Line by line, until the log ends, the reader is gone or a signal comes.
fn stream(
    feed: &mut Feed,
    args: &TopArgs,
    show: Show,
    exports: &Exports,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let interval = Duration::from_secs_f64(args.interval);
    // A log is replayed as fast as it can be read, unless its metrics are exported.
    let is_paced = feed.is_live() || exports.is_any();
    let mut deadline = Instant::now();
    let (mut shown, mut before) = (0, None);
    while args.count.is_none_or(|count| shown < count) {
        if is_paced && (feed.is_live() || shown > 0) {
            // A slow driver skips intervals, instead of shortening the next ones.
            deadline = (deadline + interval).max(Instant::now());
            if !wait_until(deadline, stop) {
                return Ok(());
            }
        }
        let Some(snapshot) = feed.next()? else { break };
        exports.publish(&snapshot)?;
        let text = match show {
            Show::JsonLines => rendered(&snapshot, Format::Json)?,
            Show::Lines => top_as_lines(&snapshot, before.as_ref()),
            _ => String::new(),
        };
        before = Some(snapshot);
        if say(&text)? == Reader::Gone {
            return Ok(());
        }
        shown += 1;
    }
    if exports.is_served() && args.count.is_none() {
        // The metrics at the end of the log stay available.
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(NOTICE);
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

/// Flushes, because whoever reads the pipe wants to see each line now.
fn say(text: &str) -> Result<Reader, Failure> {
    let mut stdout = anstream::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Failure::output_at("standard output")(error)),
    }
}
