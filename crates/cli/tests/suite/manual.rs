//! Manual pages and completions match the command line.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn busbound(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_busbound")).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The commands in `--help`.
fn commands(of: &[&str]) -> Vec<String> {
    let help = busbound(&[of, &["--help"]].concat());
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

/// Runs a checker over a text, if it is installed, and returns its messages.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn messages(checker: &str, args: &[&str], text: &str) -> Option<String> {
    let started = Command::new(checker)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        eprintln!("skipped: {checker} is not installed");
        return None;
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&said).into_owned() + if output.status.success() { "" } else { "failed" })
}

#[test]
fn every_command_can_be_completed_in_every_shell() {
    let commands = commands(&[]);
    assert_eq!(commands.first().unwrap(), "diagnose");
    assert!(commands.len() >= 16, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = busbound(&["completions", shell]);
        for command in
            commands.iter().map(String::as_str).chain(["offload", "--heartbeat", "--format", "markdown"])
        {
            let bare = command.trim_start_matches('-');
            assert!(script.contains(bare), "{shell} does not know {command}");
        }
    }
}

#[test]
fn completions_offer_machines_figures_and_changes() {
    // Those of PowerShell and Elvish have no values.
    for shell in ["bash", "zsh", "fish"] {
        let script = busbound(&["completions", shell]);
        for name in ["h100-pcie", "pcie5x16", "overlap_score", "prefetch="] {
            assert!(script.contains(name), "{shell} does not offer {name}");
        }
    }
}

#[test]
fn shells_accept_their_completions() {
    for (shell, args) in [("bash", &["-n"][..]), ("zsh", &["-n"]), ("fish", &["-n"])] {
        let said = messages(shell, args, &busbound(&["completions", shell]));
        assert!(said.as_deref().is_none_or(str::is_empty), "{shell}: {said:?}");
    }
}

#[test]
fn bash_completes_commands_and_values() {
    let complete = |words: &str, index: usize| {
        let script = format!(
            "{}\nCOMP_WORDS=({words}); COMP_CWORD={index}; _busbound busbound \"${{COMP_WORDS[{index}]}}\" \
             \"${{COMP_WORDS[{}]}}\"; echo \"${{COMPREPLY[*]}}\"\n",
            busbound(&["completions", "bash"]),
            index - 1
        );
        messages("bash", &["-s"], &script)
    };
    let Some(commands) = complete("busbound wh", 1) else { return };
    assert_eq!(commands, "whatif\n");
    assert_eq!(complete("busbound plan off", 2).unwrap(), "offload\n");
    assert_eq!(complete("busbound diagnose --format m", 3).unwrap(), "markdown\n");
    assert_eq!(complete("busbound diagnose --machine h100-p", 3).unwrap(), "h100-pcie\n");
    assert_eq!(complete("busbound whatif --apply pr", 3).unwrap(), "prefetch=\n");
    assert_eq!(complete("busbound gate --require overlap_", 3).unwrap(), "overlap_score\n");
}

#[test]
fn every_command_has_a_page() {
    let directory = tempfile::tempdir().unwrap();
    busbound(&["man", "-o", &directory.path().display().to_string()]);
    let written = fs::read_dir(directory.path()).unwrap();
    let written: BTreeSet<String> =
        written.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let mut expected = BTreeSet::from(["busbound.1".to_owned()]);
    expected.extend(commands(&[]).iter().map(|name| format!("busbound-{name}.1")));
    expected.extend(commands(&["plan"]).iter().map(|name| format!("busbound-plan-{name}.1")));
    assert_eq!(written, expected);
    for name in written {
        check_page(&directory.path().join(name));
    }
}

/// The page has the examples of `--help`, and mandoc warns only about what clap's generator writes.
fn check_page(path: &Path) {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let command: Vec<&str> = name.split('-').skip(1).collect();
    let help = busbound(&[&command[..], &["--help"]].concat());
    let page = fs::read_to_string(path).unwrap();
    let title = format!(".TH {name} 1 \"\" \"busbound {}\" busbound\n", env!("CARGO_PKG_VERSION"));
    assert!(page.contains(&title), "{page}");
    let plain = page.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\\\", "\\");
    let examples = help.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
    for example in examples.take_while(|line| line.starts_with("  busbound")) {
        assert!(plain.lines().any(|line| line.starts_with(example.trim())), "{name}: {example}");
    }
    assert_eq!(help.contains("\nExample"), page.contains(".SH EXAMPLES\n.nf\n"), "{name}");
    let said = messages("mandoc", &["-T", "lint", "-W", "warning"], &page).unwrap_or_default();
    let unexpected: Vec<&str> = said
        .lines()
        .filter(|line| {
            !["missing date", "br before sp", "br after sp", "failed"]
                .iter()
                .any(|known| line.contains(known))
        })
        .collect();
    assert!(unexpected.is_empty(), "{name}: {unexpected:#?}");
}

#[test]
fn the_first_page_is_printed() {
    let page = busbound(&["man"]);
    assert!(page.contains(".SH NAME\nbusbound \\- Find out whether your GPU waits for the bus"), "{page}");
    assert!(page.contains(".SH \"EXIT STATUS\"\n.nf\n0  success"), "{page}");
    assert_eq!(page.matches(".ds Aq").count(), 2, "{page}");
}
