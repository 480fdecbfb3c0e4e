//! What does one line of `NCCL_DEBUG=INFO` say?

use super::{Channels, Link, Transport, TreePlace};

/// One line of NCCL.
pub(super) struct Line<'a> {
    pub(super) host: Option<&'a str>,
    /// `host:pid:tid`, or empty.
    pub(super) thread: &'a str,
    pub(super) fact: Fact<'a>,
}

/// What a line states.
pub(super) enum Fact<'a> {
    Version(&'a str),
    Network(&'a str),
    Setting(&'a str, &'a str),
    Warning(&'a str),
    Communicator { id: Option<&'a str>, ranks: u32, nodes: Option<u32> },
    Ring(usize, Vec<u32>),
    Trees(Vec<TreePlace>),
    Channels(Channels),
    Link(Link),
    NvLink { gbps: f64, to_switch: bool },
    Multicast(bool),
    Nothing,
}

impl<'a> Line<'a> {
    /// `None` if the line is not NCCL's.
    pub(super) fn of(line: &'a str) -> Option<Self> {
        if let Some((before, message)) = line.split_once(" NCCL INFO ") {
            let thread = thread_of(before);
            let host = thread.split(':').next().filter(|host| !host.is_empty());
            return Some(Self { host, thread, fact: info(message.trim()) });
        }
        if let Some((before, message)) = line.split_once(" NCCL WARN ") {
            return Some(Self { host: None, thread: thread_of(before), fact: Fact::Warning(message.trim()) });
        }
        let version = line.trim().strip_prefix("NCCL version ")?;
        Some(Self { host: None, thread: "", fact: Fact::Version(version.trim()) })
    }
}

/// `gpu5:1789224:1789735` of `[rank0]: gpu5:1789224:1789735 [0]`.
fn thread_of(before: &str) -> &str {
    let is_thread = |word: &&str| word.split(':').count() == 3 && word.split(':').skip(1).all(is_number);
    before.split_whitespace().rev().find(is_thread).unwrap_or("")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn info(message: &str) -> Fact<'_> {
    setting(message)
        .or_else(|| link(message))
        .or_else(|| ring(message))
        .or_else(|| trees(message))
        .or_else(|| communicator(message))
        .or_else(|| channels(message))
        .or_else(|| nvlink(message))
        .or_else(|| other(message))
        .unwrap_or(Fact::Nothing)
}

/// `NCCL_P2P_DISABLE set by environment to 1.`
fn setting(message: &str) -> Option<Fact<'_>> {
    let (name, rest) = message.split_once(" set ")?;
    let is_name = name.starts_with("NCCL_") && !name.contains(' ');
    let (_, value) = rest.split_once("to ").filter(|_| is_name)?;
    Some(Fact::Setting(name, value.trim_end_matches('.')))
}

/// `Channel 00/0 : 5[5] -> 6[6] [send] via P2P/direct pointer/read`; older versions write `Ring 00 : 34 -> 33 …`.
fn link(message: &str) -> Option<Fact<'_>> {
    let (head, via) = message.split_once(" via ")?;
    let (_, pair) =
        head.split_once(" : ").filter(|_| head.starts_with("Channel ") || head.starts_with("Ring "))?;
    let (from, to) = pair.split_once("->")?;
    let (from, to) = (leading_number(from)?, leading_number(to)?);
    let (word, rest) = via.split_once('/').unwrap_or((via, ""));
    let transport = Transport::ALL.into_iter().find(|transport| transport.name() == word.trim())?;
    let gpu_direct =
        matches!(transport, Transport::Net | Transport::Collnet).then(|| rest.contains("GDRDMA"));
    let rest = rest.trim().trim_end_matches(" comm").split(" comm ").next().unwrap_or(rest).trim();
    Some(Fact::Link(Link { from, to, transport, via: rest.to_owned(), gpu_direct, channels: 1 }))
}

/// `Channel 00/02 :    0   1   2   3`.
fn ring(message: &str) -> Option<Fact<'_>> {
    let (head, order) = message.strip_prefix("Channel ")?.split_once(" :")?;
    let channel = head.split('/').next()?.parse().ok()?;
    let order: Option<Vec<u32>> = order.split_whitespace().map(|rank| rank.parse().ok()).collect();
    order.filter(|order| order.len() > 1).map(|order| Fact::Ring(channel, order))
}

/// `Trees [0] 5/-1/-1->4->3 [1] …`: children, this rank, parent.
fn trees(message: &str) -> Option<Fact<'_>> {
    let rest = message.strip_prefix("Trees ")?;
    let place = |part: &str| {
        let (channel, nodes) = part.split_once(']')?;
        let mut nodes = nodes.trim().split("->");
        let children = nodes.next()?.split('/').filter_map(|rank| rank.parse().ok()).collect();
        let rank = nodes.next()?.parse().ok()?;
        let parent = nodes.next()?.trim().parse().ok();
        Some(TreePlace { channel: channel.trim().parse().ok()?, rank, parent, children })
    };
    let places: Vec<TreePlace> = rest.split('[').filter_map(place).collect();
    (!places.is_empty()).then_some(Fact::Trees(places))
}

/// `… comm 0x55 rank 0 nranks 8 … commId 0xd13 - Init START`, `comm 0x55 rank 6 nRanks 16 nNodes 2 …`.
fn communicator(message: &str) -> Option<Fact<'_>> {
    message.contains("comm 0x").then_some(())?;
    let words: Vec<&str> = message.split_whitespace().collect();
    let after =
        |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1)).copied();
    let ranks = after("nRanks").or_else(|| after("nranks"))?.parse().ok()?;
    let nodes = after("nNodes").and_then(|nodes| nodes.parse().ok());
    Some(Fact::Communicator { id: after("commId"), ranks, nodes })
}

/// `24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer`.
fn channels(message: &str) -> Option<Fact<'_>> {
    let of = |kind: &str| {
        let part = message.split(',').find(|part| part.trim_end().ends_with(kind))?;
        leading_number(part)
    };
    let collective = of("coll channels").filter(|_| message.contains("coll channels"))?;
    Some(Fact::Channels(Channels {
        collective,
        collnet: of("collnet channels").unwrap_or(0),
        nvls: of("nvls channels").unwrap_or(0),
        point_to_point: of("p2p channels").unwrap_or(0),
    }))
}

/// `+ NVL[360.0] - NVS/0`, `+ NVL[48.0] - GPU/B000`.
fn nvlink(message: &str) -> Option<Fact<'_>> {
    let (_, rest) = message.split_once("NVL[")?;
    let (gbps, to) = rest.split_once(']')?;
    Some(Fact::NvLink { gbps: gbps.parse().ok()?, to_switch: to.contains("NVS/") })
}

fn other(message: &str) -> Option<Fact<'_>> {
    if let Some(rest) = message.strip_prefix("NVLS multicast support is ") {
        return Some(Fact::Multicast(rest.starts_with("available")));
    }
    if let Some(version) = message.strip_prefix("NCCL version ") {
        return Some(Fact::Version(version));
    }
    if let Some(network) = message.strip_prefix("Using network ") {
        return Some(Fact::Network(network));
    }
    // Not a warning in every version, but it says that something is wrong.
    message.starts_with("P2P is disabled between").then_some(Fact::Warning(message))
}

/// The number that a text begins with: 5 of `5[5]`.
fn leading_number(text: &str) -> Option<u32> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..digits].parse().ok()
}
