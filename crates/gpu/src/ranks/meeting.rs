//! How do all ranks find rank 0? It listens until all of this job have come, and no longer. Whoever does not greet as one of
//! them is refused.

use std::io::{BufReader, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::error::{RankList, RanksError};
use super::launch::Launch;
use super::lines::{next_line, say};
use super::message::{Command, Greeting, MAGIC, Welcome};

/// How often rank 0 looks for others, and others look for rank 0.
const LOOKS_EVERY: Duration = Duration::from_millis(5);
const TRIES_EVERY: Duration = Duration::from_millis(100);
/// To say the first line, and to answer it.
const GREETS_WITHIN: Duration = Duration::from_secs(10);
/// One try to connect: a firewall may not answer at all.
const CONNECTS_WITHIN: Duration = Duration::from_secs(5);
/// Longer than any greeting.
const LONGEST_GREETING: usize = 512;
/// Strangers that may be connected at the same time, in addition to all ranks.
const MOST_STRANGERS: usize = 64;

impl Launch {
    fn greeting(&self) -> Greeting {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Greeting { version, rank: self.rank, size: self.size, job: self.job.clone() }
    }

    fn place(&self) -> String {
        format!("{}:{}", self.address, self.port)
    }
}

/// For rank 0: the connections of all others, by rank.
pub(crate) fn gather(
    launch: &Launch,
    within: Duration,
    stop: &AtomicBool,
) -> Result<Vec<TcpStream>, RanksError> {
    let listener = listen(launch)?;
    let deadline = Instant::now() + within;
    let mut door = Door::new(launch.greeting());
    while !door.missing().is_empty() {
        if stop.load(Ordering::Relaxed) {
            door.send_home();
            return Err(RanksError::Stopped);
        }
        if Instant::now() >= deadline {
            door.send_home();
            let (missing, refused) = (RankList(door.missing()), door.refused);
            return Err(RanksError::Missing { missing, size: launch.size, within, refused });
        }
        while let Ok((stream, _)) = listener.accept() {
            door.knock(stream);
        }
        door.look();
        thread::sleep(LOOKS_EVERY);
    }
    Ok(door.came.into_iter().flatten().collect())
}

/// On the address that the others use, if this machine has it; on all of them only if it does not know it by that name.
fn listen(launch: &Launch) -> Result<TcpListener, RanksError> {
    let port = launch.port;
    let failed = |why: std::io::Error| RanksError::Listen { port, why: why.to_string() };
    let bound = match own_address(launch) {
        Some(address) => match TcpListener::bind((address, port)) {
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => {
                TcpListener::bind((anywhere_like(address), port))
            }
            bound => bound,
        },
        None => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)),
    };
    let listener = bound.map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// `None` if others may resolve the name differently: many systems know their own name as 127.0.1.1.
fn own_address(launch: &Launch) -> Option<IpAddr> {
    if launch.is_one_node || launch.address == "localhost" {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    if let Ok(address) = launch.address.parse() {
        return Some(address);
    }
    let known = (launch.address.as_str(), launch.port).to_socket_addrs().ok()?;
    known.map(|known| known.ip()).find(|address| !address.is_loopback())
}

fn anywhere_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Who has come, and who has connected but not yet said who it is.
struct Door {
    expected: Greeting,
    /// By rank, without rank 0.
    came: Vec<Option<TcpStream>>,
    outside: Vec<Guest>,
    refused: u32,
}

struct Guest {
    stream: TcpStream,
    said: Vec<u8>,
    since: Instant,
}

/// What is known about a guest.
enum Heard {
    NotYet,
    Greeting(Greeting),
    /// Not one of ours.
    Stranger,
}

impl Door {
    fn new(expected: Greeting) -> Self {
        let came = (1..expected.size).map(|_| None).collect();
        Self { expected, came, outside: Vec::new(), refused: 0 }
    }

    fn missing(&self) -> Vec<u32> {
        let of_rank = self.came.iter().zip(1..);
        of_rank.filter(|(came, _)| came.is_none()).map(|(_, rank)| rank).collect()
    }

    fn knock(&mut self, stream: TcpStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.outside.len() >= self.came.len() + MOST_STRANGERS {
            self.outside.remove(0);
            self.refused += 1;
        }
        self.outside.push(Guest { stream, said: Vec::new(), since: Instant::now() });
    }

    fn look(&mut self) {
        for mut guest in std::mem::take(&mut self.outside) {
            match guest.heard() {
                Heard::NotYet => self.outside.push(guest),
                Heard::Stranger => self.refused += 1,
                Heard::Greeting(greeting) => match self.objection(&greeting) {
                    None => self.let_in(guest.stream, greeting.rank),
                    Some(why) => {
                        let _ = say(&guest.stream, &Welcome::No(why));
                        self.refused += 1;
                    }
                },
            }
        }
    }

    /// Why a process is not one of this job's ranks that are missing.
    fn objection(&self, guest: &Greeting) -> Option<String> {
        let ours = &self.expected;
        if guest.job != ours.job {
            return Some(
                "it belongs to another job: choose another port with --port, for all ranks".to_owned(),
            );
        }
        if guest.version != ours.version {
            return Some(format!("it has busbound {}, and this rank has {}", ours.version, guest.version));
        }
        if guest.size != ours.size {
            return Some(format!("it expects {} ranks, and this rank expects {}", ours.size, guest.size));
        }
        match guest.rank.checked_sub(1).and_then(|at| self.came.get(at as usize)) {
            Some(None) => None,
            Some(Some(_)) => Some(format!("rank {} has come already: is this another job?", guest.rank)),
            None => Some(format!("there is no rank {}", guest.rank)),
        }
    }

    /// Rank 0 says why.
    fn send_home(&self) {
        self.came.iter().flatten().for_each(|stream| drop(say(stream, &Command::GiveUp)));
    }

    fn let_in(&mut self, stream: TcpStream, rank: u32) {
        let ready = stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true));
        // One that is gone already is missing.
        if ready.and_then(|()| say(&stream, &Welcome::Yes)).is_ok() {
            self.came[rank as usize - 1] = Some(stream);
        }
    }
}

impl Guest {
    /// Reads what has arrived.
    fn heard(&mut self) -> Heard {
        let mut bytes = [0; LONGEST_GREETING];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Heard::Stranger,
            Ok(read) => self.said.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return Heard::Stranger,
        }
        if let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.said[..end]);
            return line.parse().map_or(Heard::Stranger, Heard::Greeting);
        }
        let may_be_ours = self.said.iter().zip(MAGIC.as_bytes()).all(|(said, ours)| said == ours);
        let may_go_on = self.said.len() < LONGEST_GREETING && self.since.elapsed() < GREETS_WITHIN;
        if may_be_ours && may_go_on { Heard::NotYet } else { Heard::Stranger }
    }
}

/// For all others: the connection to rank 0.
pub(crate) fn attend(launch: &Launch, within: Duration, stop: &AtomicBool) -> Result<TcpStream, RanksError> {
    let deadline = Instant::now() + within;
    let unreachable = |why: String| {
        let (rank, address) = (launch.rank, launch.place());
        RanksError::Unreachable { rank, address, within, why }
    };
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(RanksError::Stopped);
        }
        // Rank 0 may start later, and its name may be known later.
        let why = match connect(launch)
            .and_then(|stream| introduce(launch, &stream).map(|welcome| (stream, welcome)))
        {
            Ok((stream, Some(Welcome::Yes))) => return Ok(stream),
            Ok((_, Some(Welcome::No(why)))) => {
                let (rank, address) = (launch.rank, launch.place());
                return Err(RanksError::Refused { rank, address, why });
            }
            Ok((_, None)) => {
                "what listens there is not `busbound bench`, or has ended: choose another port with --port"
                    .to_owned()
            }
            Err(error) => error.to_string(),
        };
        if Instant::now() >= deadline {
            return Err(unreachable(why));
        }
        thread::sleep(TRIES_EVERY);
    }
}

fn connect(launch: &Launch) -> std::io::Result<TcpStream> {
    let places: Vec<SocketAddr> = (launch.address.as_str(), launch.port).to_socket_addrs()?.collect();
    let mut last = ErrorKind::AddrNotAvailable.into();
    for place in places {
        match TcpStream::connect_timeout(&place, CONNECTS_WITHIN) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What rank 0 says to our greeting; `None` if what listens there is not rank 0.
fn introduce(launch: &Launch, stream: &TcpStream) -> std::io::Result<Option<Welcome>> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(GREETS_WITHIN))?;
    say(stream, &launch.greeting())?;
    // Rank 0 says nothing more until all have come and answered, so that nothing is lost with this buffer.
    let line = next_line(&mut BufReader::new(stream.try_clone()?));
    stream.set_read_timeout(None)?;
    Ok(line.and_then(|line| line.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(rank: u32) -> Greeting {
        Greeting { version: "1".to_owned(), rank, size: 3, job: "7/0".to_owned() }
    }

    #[test]
    fn only_missing_ranks_of_the_same_job_and_version_are_let_in() {
        let door = Door::new(greeting(0));
        assert_eq!(door.missing(), [1, 2]);
        assert_eq!(door.objection(&greeting(2)), None);
        let words = |guest: Greeting| door.objection(&guest).unwrap_or_default();
        assert!(words(greeting(0)).contains("no rank 0"));
        assert!(words(greeting(3)).contains("no rank 3"));
        assert!(words(Greeting { job: "8/0".to_owned(), ..greeting(1) }).contains("another job"));
        assert!(words(Greeting { version: "2".to_owned(), ..greeting(1) }).contains("busbound 1"));
        assert!(words(Greeting { size: 4, ..greeting(1) }).contains("expects 3 ranks"));
    }

    /// Nobody outside this machine can connect if all ranks are on it.
    #[test]
    fn rank_0_listens_only_where_others_need_it() {
        let variable = |local: &'static str| {
            move |name: &str| {
                let value = match name {
                    "RANK" => "0",
                    "WORLD_SIZE" => "2",
                    "LOCAL_WORLD_SIZE" => local,
                    "MASTER_ADDR" => "192.0.2.7",
                    _ => return None,
                };
                Some(value.to_owned())
            }
        };
        let launch = |local| Launch::of(&variable(local), Some(0)).unwrap().unwrap();
        assert_eq!(own_address(&launch("2")), Some(Ipv4Addr::LOCALHOST.into()));
        assert!(listen(&launch("2")).unwrap().local_addr().unwrap().ip().is_loopback());
        assert_eq!(own_address(&launch("1")), Some(Ipv4Addr::new(192, 0, 2, 7).into()));
        // An address that is none of this machine's: a container's or a router's.
        assert!(listen(&launch("1")).unwrap().local_addr().unwrap().ip().is_unspecified());
    }
}
