//! What do ranks say to each other? One line each.

use std::fmt;
use std::str::FromStr;

use crate::nccl::UniqueId;

/// What every first line begins with: the protocol and its version.
pub(super) const MAGIC: &str = "busbound-ranks/1";

/// The first line of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) version: String,
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) job: String,
}

/// What rank 0 answers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Welcome {
    Yes,
    No(String),
}

/// What rank 0 asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Only of rank 0: make an ID for all.
    Invite,
    Join(UniqueId),
    /// Prepare buffers of this many bytes.
    Measure {
        bytes: u64,
    },
    /// Once, aligned with all others.
    Go,
    /// Is the result right?
    Check,
    End,
    /// Another rank has failed, or rank 0 has, which says why.
    GiveUp,
}

/// Where a rank is, and what it may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seated {
    /// The same for all ranks on one node. A word.
    pub(crate) node: String,
    /// Different for every GPU. A word.
    pub(crate) gpu: String,
    /// The largest buffer.
    pub(crate) largest: u64,
    /// Of the library.
    pub(crate) nccl: String,
}

/// What each rank answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Without being asked, first of all.
    Seated(Seated),
    Id(UniqueId),
    Ready,
    Ns(u64),
    Verified(bool),
    Failed(String),
}

/// A line that is none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown line")]
pub(crate) struct UnknownLine;

/// A word and the rest of the line.
fn first_word(line: &str) -> (&str, &str) {
    line.split_once(' ').unwrap_or((line, ""))
}

fn parsed<T: FromStr>(text: &str) -> Result<T, UnknownLine> {
    text.parse().map_err(|_| UnknownLine)
}

impl fmt::Display for Greeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MAGIC} {} {} {} {}", self.version, self.rank, self.size, self.job)
    }
}

impl FromStr for Greeting {
    type Err = UnknownLine;

    fn from_str(line: &str) -> Result<Self, UnknownLine> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [MAGIC, version, rank, size, job] => Ok(Self {
                version: version.to_owned(),
                rank: parsed(rank)?,
                size: parsed(size)?,
                job: job.to_owned(),
            }),
            _ => Err(UnknownLine),
        }
    }
}

impl fmt::Display for Welcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yes => write!(f, "{MAGIC} welcome"),
            Self::No(why) => write!(f, "{MAGIC} refused {why}"),
        }
    }
}

impl FromStr for Welcome {
    type Err = UnknownLine;

    fn from_str(line: &str) -> Result<Self, UnknownLine> {
        match line.strip_prefix(MAGIC).map(|rest| first_word(rest.trim_start())) {
            Some(("welcome", "")) => Ok(Self::Yes),
            Some(("refused", why)) => Ok(Self::No(why.to_owned())),
            _ => Err(UnknownLine),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invite => f.write_str("invite"),
            Self::Join(id) => write!(f, "join {id}"),
            Self::Measure { bytes } => write!(f, "measure {bytes}"),
            Self::Go => f.write_str("go"),
            Self::Check => f.write_str("check"),
            Self::End => f.write_str("end"),
            Self::GiveUp => f.write_str("give-up"),
        }
    }
}

impl FromStr for Command {
    type Err = UnknownLine;

    fn from_str(line: &str) -> Result<Self, UnknownLine> {
        Ok(match first_word(line) {
            ("invite", "") => Self::Invite,
            ("join", id) => Self::Join(parsed(id)?),
            ("measure", bytes) => Self::Measure { bytes: parsed(bytes)? },
            ("go", "") => Self::Go,
            ("check", "") => Self::Check,
            ("end", "") => Self::End,
            ("give-up", "") => Self::GiveUp,
            _ => return Err(UnknownLine),
        })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seated(Seated { node, gpu, largest, nccl }) => {
                write!(f, "seated {node} {gpu} {largest} {nccl}")
            }
            Self::Id(id) => write!(f, "id {id}"),
            Self::Ready => f.write_str("ready"),
            Self::Ns(ns) => write!(f, "ns {ns}"),
            Self::Verified(verified) => write!(f, "verified {verified}"),
            Self::Failed(why) => write!(f, "failed {}", in_one_line(why)),
        }
    }
}

impl FromStr for Answer {
    type Err = UnknownLine;

    fn from_str(line: &str) -> Result<Self, UnknownLine> {
        Ok(match first_word(line) {
            ("seated", rest) => {
                let mut words = rest.splitn(4, ' ');
                let mut word = || words.next().ok_or(UnknownLine);
                let (node, gpu, largest, nccl) = (word()?, word()?, word()?, word()?);
                Self::Seated(Seated {
                    node: node.to_owned(),
                    gpu: gpu.to_owned(),
                    largest: parsed(largest)?,
                    nccl: nccl.to_owned(),
                })
            }
            ("id", id) => Self::Id(parsed(id)?),
            ("ready", "") => Self::Ready,
            ("ns", ns) => Self::Ns(parsed(ns)?),
            ("verified", verified) => Self::Verified(parsed(verified)?),
            ("failed", why) => Self::Failed(in_one_line(why)),
            _ => return Err(UnknownLine),
        })
    }
}

/// It comes from another process and goes to the terminal.
fn in_one_line(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).take(1000).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_as_it_was_said() {
        let id: UniqueId = "0a".repeat(128).parse().unwrap();
        let commands = [
            Command::Invite,
            Command::Join(id),
            Command::Measure { bytes: 65_536 },
            Command::Go,
            Command::Check,
        ];
        for command in commands.into_iter().chain([Command::End, Command::GiveUp]) {
            assert_eq!(command.to_string().parse(), Ok(command));
        }
        let (node, gpu, nccl) = ("n1".to_owned(), "g1".to_owned(), "NCCL 2.21.5".to_owned());
        let seated = Seated { node, gpu, largest: 7, nccl };
        let answers = [Answer::Seated(seated), Answer::Id(id), Answer::Ready, Answer::Ns(8)];
        let failed = Answer::Failed("no GPU 1: CUDA shows 1".to_owned());
        for answer in answers.into_iter().chain([Answer::Verified(false), failed]) {
            assert_eq!(answer.to_string().parse(), Ok(answer));
        }
        let greeting = Greeting { version: "1.0".to_owned(), rank: 1, size: 2, job: "a/b".to_owned() };
        assert_eq!(greeting.to_string().parse(), Ok(greeting));
        for welcome in [Welcome::Yes, Welcome::No("it is another job".to_owned())] {
            assert_eq!(welcome.to_string().parse(), Ok(welcome));
        }
    }

    #[test]
    fn what_another_process_says_cannot_move_the_cursor() {
        assert_eq!(Answer::Failed("a\nns 1\u{1b}[2J".to_owned()).to_string(), "failed a ns 1 [2J");
        for line in ["", "ns", "ns -1", "go on", "GET / HTTP/1.1", "seated a b 1"] {
            assert!(line.parse::<Answer>().is_err() && line.parse::<Command>().is_err(), "{line}");
        }
    }
}
