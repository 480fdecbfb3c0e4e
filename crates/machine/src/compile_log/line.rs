//! What does one line of a log of torch.compile say?

/// Who printed a line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Printer {
    /// `[rank3]:` before the line.
    Rank(u32),
    /// The number before the source file: a process, or a thread before PyTorch 2.5.
    Process(u64),
    /// A line without a prefix, such as those of `torch._dynamo.explain`.
    Unknown,
}

/// One line without its prefix.
pub(super) struct Line<'a> {
    pub(super) printer: Printer,
    pub(super) fact: Fact<'a>,
}

/// What a line states.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fact<'a> {
    /// `TORCH_LOGS=graph_breaks,recompiles`, printed by whoever started the run.
    Logging {
        breaks: bool,
        recompiles: bool,
    },
    /// A graph break begins; its place or its reason may follow.
    Break {
        place: Option<&'a str>,
        summary: Option<&'a str>,
    },
    /// `Graph Break Count: 2` of `torch._dynamo.explain`.
    BreakCount(u64),
    Recompile {
        function: &'a str,
        place: &'a str,
    },
    /// `torch._dynamo hit config.recompile_limit (8)`.
    Limit(&'a str),
    /// The function that hit the limit.
    Function {
        name: &'a str,
        place: &'a str,
    },
    Reason(&'a str),
    Hint(&'a str),
    /// One level of a user's stack.
    Frame {
        file: &'a str,
        line: &'a str,
    },
    /// What follows are frames of PyTorch.
    Traceback,
    /// Any other words.
    Text(&'a str),
    Nothing,
}

/// Every spelling of what `TORCH_LOGS` switches on; `+dynamo` and `all` switch on both.
const BREAKS: [&str; 3] = ["graph_breaks", "dynamo", "all"];
const RECOMPILES: [&str; 4] = ["recompiles", "recompiles_verbose", "dynamo", "all"];

impl<'a> Line<'a> {
    pub(super) fn of(line: &'a str) -> Self {
        let line = line.trim_end();
        if let Some(fact) = logging(line) {
            return Self { printer: Printer::Unknown, fact };
        }
        let (printer, message) = unprefixed(line);
        Self { printer, fact: fact(message) }
    }

    /// Whether it is torch.compile's own, and not a line that only continues one.
    pub(super) fn begins(&self) -> bool {
        match self.fact {
            Fact::Break { .. } | Fact::BreakCount(_) | Fact::Recompile { .. } | Fact::Limit(_) => true,
            Fact::Logging { breaks, recompiles } => breaks || recompiles,
            _ => false,
        }
    }
}

/// `TORCH_LOGS="+dynamo,recompiles"`, also after `export` or the `+` of a shell that prints its commands. PyTorch's own
/// hint to set it is in the middle of a sentence.
fn logging(line: &str) -> Option<Fact<'static>> {
    let line = line.trim_start_matches(['+', ' ']);
    let line = line.strip_prefix("export ").unwrap_or(line);
    let value = line.strip_prefix("TORCH_LOGS=")?;
    let value = match value.strip_prefix(['"', '\'']) {
        Some(quoted) => quoted.split(['"', '\'']).next()?,
        None => value.split_whitespace().next()?,
    };
    // dynamo's artifacts are printed at its debug level only.
    let names = || value.split(',').map(str::trim).filter(|name| *name != "dynamo");
    let has = |known: &[&str]| names().any(|name| known.contains(&name.trim_start_matches('+')));
    Some(Fact::Logging { breaks: has(&BREAKS), recompiles: has(&RECOMPILES) })
}

/// The message of `[rank0]:V0703 10:34:13.273000 4711 torch/_dynamo/guards.py:2590] [0/1] [__recompiles] message`, of
/// `[2024-03-01 10:34:13,273] torch._dynamo.guards.__recompiles: [DEBUG] message`, or the line itself.
fn unprefixed(line: &str) -> (Printer, &str) {
    let (rank, rest) =
        match line.find("[rank").map(|at| &line[at + 5..]).and_then(|rest| rest.split_once("]:")) {
            Some((rank, rest)) => (rank.parse().ok().map(Printer::Rank), rest.trim_start()),
            None => (None, line),
        };
    for marker in ["[__graph_breaks]", "[__recompiles]", "[__recompiles_verbose]"] {
        if let Some((before, message)) = rest.split_once(marker) {
            return (rank.or_else(|| process(before)).unwrap_or(Printer::Unknown), spaced(message));
        }
    }
    if let Some((before, message)) = rest.split_once(": [DEBUG]").or_else(|| rest.split_once(": [WARNING]"))
        && before.contains("torch._dynamo")
    {
        return (rank.unwrap_or(Printer::Unknown), spaced(message));
    }
    if let Some((before, message)) = rest.split_once("] ")
        && before.contains("torch/_dynamo/")
    {
        let message = match message.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((id, rest)) if is_compile_id(id) => rest,
            _ => message,
        };
        return (rank.or_else(|| process(before)).unwrap_or(Printer::Unknown), message);
    }
    (rank.unwrap_or(Printer::Unknown), rest)
}

fn spaced(message: &str) -> &str {
    message.strip_prefix(' ').unwrap_or(message)
}

/// The word before the source file.
fn process(before: &str) -> Option<Printer> {
    let words: Vec<&str> = before.split_whitespace().collect();
    let file = words.iter().position(|word| word.contains(".py:"))?;
    words.get(file.checked_sub(1)?)?.parse().ok().map(Printer::Process)
}

/// `0/1`, `2/0_1`, `!0/0/0`.
pub(super) fn is_compile_id(text: &str) -> bool {
    text.contains('/') && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '/' | '_' | '!'))
}

fn fact(message: &str) -> Fact<'_> {
    let other = match message.trim() {
        "" => Fact::Nothing,
        text => Fact::Text(text),
    };
    begin(message).or_else(|| detail(message.trim())).unwrap_or(other)
}

fn begin(message: &str) -> Option<Fact<'_>> {
    // The advice that precedes the record of a break, and the stack that follows it.
    if message.starts_with("Graph break from ") || message.trim() == "Graph break: from user code at:" {
        return None;
    }
    if message.starts_with("Graph break ") || message.starts_with("Graph break:") {
        let place = message.split_once(" in user code at ").map(|(_, place)| place.trim());
        let summary = message.strip_prefix("Graph break:").map(|text| text.trim().trim_end_matches(':'));
        return Some(Fact::Break { place, summary });
    }
    if let Some(number) = message.strip_prefix("Graph Break Count:") {
        return number.trim().parse().ok().map(Fact::BreakCount);
    }
    if let Some(rest) = message.strip_prefix("Recompiling function ") {
        let (function, place) = rest.split_once(" in ").unwrap_or((rest, ""));
        return Some(Fact::Recompile { function, place: place.trim() });
    }
    if let Some(rest) = message.strip_prefix("torch._dynamo hit config.") {
        return Some(Fact::Limit(rest.trim()));
    }
    // One of `torch._dynamo.explain`; the list itself is called "Break Reasons:".
    let number = message.trim().strip_prefix("Break Reason ")?.strip_suffix(':')?;
    number.parse::<u32>().ok().map(|_| Fact::Break { place: None, summary: None })
}

fn detail(message: &str) -> Option<Fact<'_>> {
    for name in ["Graph Break Reason: ", "Reason: ", "last reason: "] {
        if let Some(reason) = message.strip_prefix(name) {
            return Some(Fact::Reason(without_id(reason.trim())));
        }
    }
    if let Some(reason) = message.strip_prefix("- ") {
        return Some(Fact::Reason(without_id(reason.trim())));
    }
    // The last line of an exception.
    if let Some((_, reason)) =
        message.strip_prefix("torch._dynamo.exc.").and_then(|rest| rest.split_once(": "))
    {
        return Some(Fact::Reason(reason.trim()));
    }
    if let Some(hint) = message.strip_prefix("Hint: ") {
        return Some(Fact::Hint(hint.trim()));
    }
    if let Some(rest) = message.strip_prefix("function: '") {
        let (name, place) = rest.split_once('\'')?;
        return Some(Fact::Function { name, place: place.trim().trim_matches(['(', ')']) });
    }
    if message.starts_with("Traceback (most recent call last)") {
        return Some(Fact::Traceback);
    }
    let (file, rest) = match message.strip_prefix("File \"") {
        Some(rest) => rest.split_once("\", line ")?,
        None => message.strip_prefix("<FrameSummary file ")?.split_once(", line ")?,
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some(Fact::Frame { file, line: &rest[..digits] })
}

/// `tensor 'x' size mismatch` of `0/0: tensor 'x' size mismatch`.
fn without_id(reason: &str) -> &str {
    match reason.split_once(": ") {
        Some((id, rest)) if is_compile_id(id) => rest,
        _ => reason,
    }
}
