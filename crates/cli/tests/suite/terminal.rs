//! What only a terminal gets: colors, and lines as wide as the terminal.

#![cfg(unix)]
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

const ESCAPE: char = '\u{1b}';

fn busbound(args: &[&str]) -> Command {
    let root: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbound"));
    command.args(args).current_dir(root).env("TERM", "xterm-256color").stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    command
}

/// Both ends of a terminal of that many columns.
fn terminal(columns: u16) -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(ours), theirs)
}

/// The output of a command at a terminal of that many columns.
fn at_a_terminal(mut command: Command, columns: u16) -> String {
    let (mut ours, theirs) = terminal(columns);
    let mut child = command.stdout(theirs).stderr(Stdio::null()).spawn().unwrap();
    // The command holds the terminal's other end too; while it exists, reading never ends.
    drop(command);
    let mut bytes = Vec::new();
    // On Linux, a closed other end is an error.
    let _ = ours.read_to_end(&mut bytes);
    assert!(child.wait().unwrap().code().is_some_and(|code| code < 2));
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

fn in_a_pipe(mut command: Command) -> String {
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

fn without_styles(text: &str) -> String {
    let mut parts = text.split(ESCAPE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn a_terminal_gets_colors_unless_no_color_is_set() {
    let shown = at_a_terminal(busbound(&["demo"]), 80);
    assert!(shown.starts_with("\u{1b}[1mTransfer-bound"), "{shown}");
    assert!(shown.contains(ESCAPE));
    let mut none = busbound(&["demo"]);
    none.env("NO_COLOR", "1");
    let plain = at_a_terminal(none, 80);
    assert!(plain.starts_with("Transfer-bound") && !plain.contains(ESCAPE), "{plain}");
    assert_eq!(plain, without_styles(&shown));
    let piped = in_a_pipe(busbound(&["demo"]));
    assert_eq!(piped, plain, "a pipe gets what a terminal of 80 columns shows, without styles");
    // CLICOLOR_FORCE gives colors in a pipe, and NO_COLOR wins over it.
    let mut forced = busbound(&["demo"]);
    forced.env("CLICOLOR_FORCE", "1");
    assert!(in_a_pipe(forced).contains(ESCAPE));
    let mut both = busbound(&["demo"]);
    both.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert!(!in_a_pipe(both).contains(ESCAPE));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let commands = [
        "demo",
        "plan allreduce --params 7e9 --ranks 8 --compare",
        "plan ddp --params 7e9 --ranks 8 --compute 300",
        "plan offload --layers 32 --bytes 400MB --compute 5",
        "plan offload --trace fixtures/off_block_pageable_c4.json.gz --pageable",
        "plan parallel --layers 32 --hidden 4096 --heads 32 --batch 64 --sequence 4096 --ranks 16 --gpu h100-sxm",
        "plan budget --bytes 2GB --step 100 --link pcie4x16",
        "diagnose fixtures/ncu/kernels.json.gz --ncu fixtures/ncu/raw.csv",
        "compare fixtures/off_block_pageable_c4.json.gz fixtures/off_block_pinned_c4.json.gz fixtures/off_layerwise_d2_c4.json.gz --label batch=2,4,8",
        "gate fixtures/train_pageable.json.gz --require exposed_copy_ms<5 --require idle_share<10%",
        "top --replay fixtures/top/made.jsonl --once",
    ];
    for words in commands {
        let args: Vec<&str> = words.split(' ').collect();
        for columns in [60, 80, 100, 140] {
            let text = without_styles(&at_a_terminal(busbound(&args), columns));
            assert!(!text.is_empty());
            for line in text.lines() {
                let length = line.chars().count();
                // A path longer than the line is alone on it.
                let fits = length <= usize::from(columns) || !line.trim_start().contains(' ');
                assert!(fits, "{words}: {length} of {columns} columns:\n{line}");
            }
        }
    }
}

#[test]
fn the_help_is_at_most_100_columns_wide() {
    let commands = [
        "",
        "demo",
        "record",
        "export",
        "summarize",
        "merge",
        "completions",
        "man",
        "survey",
        "diagnose",
        "compare",
        "gate",
        "whatif",
        "bench",
        "top",
        "topo",
        "plan",
        "plan allreduce",
        "plan ddp",
        "plan offload",
        "plan parallel",
        "plan budget",
    ];
    for command in commands {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        for text in [in_a_pipe(busbound(&args)), without_styles(&at_a_terminal(busbound(&args), 200))] {
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!((40..=100).contains(&longest), "{command}: {longest} columns\n{text}");
        }
    }
}

/// `top` takes the terminal and restores it, however it is quit.
#[test]
fn top_quits_on_keys_and_signals_and_restores_the_terminal() {
    const TAKEN: &str = "\u{1b}[?1049h";
    const GIVEN_BACK: &str = "\u{1b}[?1049l";
    for way_out in ["q", "\u{1b}", "\u{3}", "SIGTERM"] {
        let (mut ours, theirs) = terminal(100);
        let before = rustix::termios::tcgetattr(&theirs).unwrap();
        let mut command = busbound(&["top", "--replay", "fixtures/top/made.jsonl", "--interval", "0.1"]);
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut shown = Vec::new();
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&shown).contains("to the device") {
            let read = ours.read(&mut piece).unwrap();
            shown.extend_from_slice(&piece[..read]);
        }
        match way_out {
            "SIGTERM" => {
                let pid = rustix::process::Pid::from_child(&child);
                rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            }
            key => ours.write_all(key.as_bytes()).unwrap(),
        }
        while !String::from_utf8_lossy(&shown).contains(GIVEN_BACK) {
            let read = ours.read(&mut piece).unwrap();
            shown.extend_from_slice(&piece[..read]);
        }
        assert_eq!(child.wait().unwrap().code(), Some(0), "{way_out:?}");
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert!(shown.contains(TAKEN) && shown.contains("GPU 0"), "{shown}");
        let after = rustix::termios::tcgetattr(&theirs).unwrap();
        assert_eq!(after.local_modes, before.local_modes, "{way_out:?}");
    }
}

/// A program at a terminal, with a keyboard.
struct Screen {
    child: std::process::Child,
    keyboard: File,
    shown: std::sync::mpsc::Receiver<Vec<u8>>,
    seen: String,
}

impl Screen {
    fn of(args: &[&str]) -> Self {
        let (ours, theirs) = terminal(100);
        let mut command = busbound(args);
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let (send, shown) = std::sync::mpsc::channel();
        let mut reading = ours.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // On Linux, a closed other end is an error.
            while let Ok(count) = reading.read(&mut bytes)
                && count > 0
                && send.send(bytes[..count].to_vec()).is_ok()
            {}
        });
        Self { child, keyboard: ours, shown, seen: String::new() }
    }

    /// Presses a key, and waits until the screen shows these words.
    fn press(&mut self, key: &str, words: &str) {
        self.keyboard.write_all(key.as_bytes()).unwrap();
        self.seen.clear();
        let mut bytes = Vec::new();
        while !self.seen.contains(words) {
            let patience = std::time::Duration::from_secs(60);
            let Ok(more) = self.shown.recv_timeout(patience) else { panic!("no {words:?}: {:?}", self.seen) };
            bytes.extend(more);
            self.seen = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Only cells that change are sent to the terminal, so that words are looked for, not sentences.
#[test]
fn a_log_on_the_screen_can_be_stopped_and_searched() {
    let mut screen = Screen::of(&["top", "--replay", "fixtures/top/made.jsonl", "--interval", "3600"]);
    screen.press("", "GPU");
    screen.press("?", " Help ");
    screen.press("?", "B/s");
    screen.press(" ", "paused");
    // To the end, and back to the beginning.
    screen.press("\u{1b}[F", "47.1");
    screen.press("\u{1b}[H", "11.1");
    screen.press("q", "\u{1b}[?1049l");
    assert_eq!(screen.child.wait().unwrap().code(), Some(0));
}
