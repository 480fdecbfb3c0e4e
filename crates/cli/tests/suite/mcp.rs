//! `busbound mcp`, as a client sees it: the real program, over its standard input and output.

#![expect(clippy::expect_used, reason = "a test that cannot continue should panic")]

use crate::common;

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use proptest::prelude::*;
use serde_json::{Value, json};

/// A server that runs, and the end of the pipes that a client has.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    next_id: u64,
}

impl Server {
    fn at(root: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_busbound"))
            .arg("mcp")
            .arg("--root")
            .arg(root)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { input: child.stdin.take(), output, child, next_id: 1 }
    }

    fn of_fixtures() -> Self {
        Self::at(Path::new(&common::fixture("")), &[])
    }

    fn send(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn receive(&mut self) -> Value {
        let line = self.output.next().expect("the server has ended").unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(request.to_string().as_bytes());
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        answer["result"].take()
    }

    /// The code of the error that a raw line gets, with its id.
    fn refuses(&mut self, line: &str) -> (Value, i64) {
        self.send(line.as_bytes());
        let answer = self.receive();
        (answer["id"].clone(), answer["error"]["code"].as_i64().unwrap())
    }

    /// Whether it still answers, after whatever it still had to say.
    fn is_alive(&mut self) -> bool {
        self.send(br#"{"jsonrpc":"2.0","id":"still there?","method":"ping"}"#);
        loop {
            let answer = self.receive();
            if answer["id"] == "still there?" {
                return answer["result"] == json!({});
            }
        }
    }

    fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

#[test]
fn versions_of_the_protocol_are_negotiated() {
    let mut server = Server::of_fixtures();
    for (wanted, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("1999-01-01", "2025-06-18"),
    ] {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": wanted, "capabilities": {}, "clientInfo": info });
        let answer = server.ask("initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], given);
        assert_eq!(answer["result"]["serverInfo"]["name"], "busbound");
        assert!(answer["result"]["capabilities"]["tools"].is_object());
    }
    assert_eq!(server.ask("initialize", json!({}))["error"]["code"], -32602);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_tools_say_what_they_take_and_that_they_only_read() {
    let mut server = Server::of_fixtures();
    let listed = server.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["survey", "diagnose", "whatif", "compare", "explain", "plan"]);
    for tool in tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["inputSchema"]["type"], "object");
        for (name, property) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(!property["type"].is_null(), "{name}");
            assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        }
    }
}

#[test]
fn an_agent_goes_from_survey_to_compare() {
    let mut server = Server::of_fixtures();
    let slow = "off_block_pageable_c4.json.gz";
    let survey = server.call("survey", json!({ "paths": [slow] }));
    let headline = survey["structuredContent"]["headline"].as_str().unwrap();
    assert!(headline.starts_with("Complete trace: 432 GPU events on 1 GPU"), "{headline}");
    assert_eq!(survey["structuredContent"]["next"][0]["tool"], "diagnose");

    let diagnosis = server.call("diagnose", json!({ "paths": [slow] }));
    let text = diagnosis["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Transfer-bound: 274 ms/step"), "{text}");
    let answer = &diagnosis["structuredContent"];
    assert_eq!(
        (&answer["verdict"]["bound"], &answer["confidence"], &answer["inconclusive"]),
        (&json!("transfer"), &json!("high"), &Value::Null)
    );
    let first = &answer["findings"][0];
    assert_eq!((first["id"].as_str(), &first["apply"]), (Some("pageable_copies"), &json!(["pin"])));
    assert!(first["saves_ms_per_step"]["low"].as_f64().is_some_and(|ms| ms > 150.0));
    assert!(first["fix"].as_str().is_some_and(|fix| fix.contains("pin_memory")));

    // What to do next is a call that can be made as it is.
    let next = &answer["next"][0];
    assert_eq!(next["tool"], "whatif");
    let predicted = server.call("whatif", next["arguments"].clone());
    let scenario = &predicted["structuredContent"]["scenarios"][0];
    assert_eq!(scenario["apply"], json!(["pin"]));
    assert!(scenario["step_ms"].as_f64().is_some_and(|ms| (100.0..110.0).contains(&ms)));

    let paths = json!({ "paths": [slow, "off_block_pinned_c4.json.gz"] });
    let compared = server.call("compare", paths);
    assert_eq!(compared["structuredContent"]["change"]["outcome"], "faster");
    assert_eq!(compared["structuredContent"]["gone"][0], "pageable_copies");

    let meaning = server.call("explain", json!({ "id": "pageable_copies" }));
    assert_eq!(meaning["structuredContent"]["explanations"][0]["id"], "pageable_copies");
    let ids = server.call("explain", json!({}));
    assert!(ids["structuredContent"]["ids"].as_array().is_some_and(|ids| ids.len() > 50));
    assert_eq!(server.end(), Some(0));
}

#[test]
fn ranks_are_compared_with_each_other() {
    let answer = Server::of_fixtures().call("diagnose", json!({ "paths": ["ranks"] }));
    let answer = &answer["structuredContent"];
    let statement = answer["ranks"]["statement"].as_str().unwrap();
    assert!(statement.starts_with("6 ranks: 5 communication-bound, 1 transfer-bound"), "{statement}");
    assert_eq!(answer["runs"].as_array().map(Vec::len), Some(6));
}

#[test]
fn inconclusive_is_an_answer_with_its_reasons() {
    let folder = tempfile::tempdir().unwrap();
    let operator = r#"[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":200}]"#;
    fs::write(folder.path().join("cpu.json"), operator).unwrap();
    let mut server = Server::at(folder.path(), &[]);
    let diagnosis = server.call("diagnose", json!({ "paths": ["cpu.json"] }));
    assert_eq!(diagnosis["isError"], false);
    let answer = &diagnosis["structuredContent"];
    assert_eq!((&answer["verdict"]["bound"], &answer["confidence"]), (&json!("unknown"), &json!("none")));
    assert!(answer["inconclusive"]["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty()));
    assert_eq!(answer["next"][0]["tool"], "survey");
    let predicted = server.call("whatif", json!({ "paths": ["cpu.json"] }));
    assert_eq!(predicted["isError"], false, "{predicted}");
    assert!(predicted["structuredContent"]["inconclusive"]["reasons"][0].is_string());
}

#[test]
fn plans_take_the_options_of_the_command() {
    let mut server = Server::of_fixtures();
    let reduced = server.call("plan", json!({ "question": "allreduce", "params": 7e9, "ranks": [2, 8] }));
    let answer = &reduced["structuredContent"];
    assert_eq!((&answer["plan"], answer["result"].as_array().map(Vec::len)), (&json!("allreduce"), Some(2)));
    let offload = json!({ "question": "offload", "trace": "off_block_pinned_c4.json.gz", "pageable": true });
    assert_eq!(server.call("plan", offload)["structuredContent"]["plan"], "offload");
    for (arguments, why) in [
        (json!({ "question": "allreduce", "params": "7B" }), "--ranks"),
        (json!({ "question": "allreduce", "layers": 3 }), "allreduce does not take `layers`"),
        (json!({ "question": "budget", "bytes": "2GB", "link": "/etc/passwd" }), "/etc/passwd"),
        (json!({ "question": "offload", "trace": "../Cargo.toml" }), "outside the directories"),
        (
            json!({ "question": "budget", "bytes": "2GB", "link": "../machine.json" }),
            "outside the directories",
        ),
    ] {
        let answer = server.call("plan", arguments.clone());
        assert_eq!(answer["isError"], true, "{arguments}");
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(why), "{text}");
        assert!(!text.contains(".json, as machine profiles do"), "says whether a file exists: {text}");
    }
}

#[test]
fn wrong_messages_get_the_codes_of_json_rpc() {
    let mut server = Server::of_fixtures();
    let null = Value::Null;
    assert_eq!(server.refuses("{"), (null.clone(), -32700));
    assert_eq!(server.refuses(&"[".repeat(5000)), (null.clone(), -32700));
    assert_eq!(server.refuses("\u{1}"), (null.clone(), -32700));
    assert_eq!(server.refuses("3"), (null.clone(), -32600));
    assert_eq!(server.refuses("[]"), (null.clone(), -32600));
    assert_eq!(server.refuses(r#"{"id":1,"method":"ping"}"#), (json!(1), -32600));
    assert_eq!(server.refuses(r#"{"jsonrpc":"2.0","id":[],"method":"ping"}"#), (null.clone(), -32600));
    assert_eq!(server.refuses(r#"{"jsonrpc":"2.0","id":2,"method":"resources/list"}"#), (json!(2), -32601));
    assert_eq!(server.refuses(r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}"#), (json!(3), -32602));
    assert_eq!(server.refuses(&format!("{{\"a\":\"{}\"}}", "x".repeat(2 << 20))), (null, -32600));
    for params in [
        json!({}),
        json!({ "name": "delete" }),
        json!({ "name": "diagnose" }),
        json!({ "name": "diagnose", "arguments": [] }),
        json!({ "name": "diagnose", "arguments": { "paths": "run.json" } }),
        json!({ "name": "diagnose", "arguments": { "paths": ["run.json"], "output": "x" } }),
        json!({ "name": "compare", "arguments": { "paths": ["run.json"] } }),
        json!({ "name": "plan", "arguments": { "question": "lunch" } }),
        json!({ "name": "plan", "arguments": { "question": "budget", "output": "x" } }),
    ] {
        assert_eq!(server.ask("tools/call", params.clone())["error"]["code"], -32602, "{params}");
    }
    // Notifications and answers get nothing, and a batch gets a list.
    server.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    server.send(br#"{"jsonrpc":"2.0","method":"no/such/notification","params":3}"#);
    server.send(br#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    server.send(br#"[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","method":"x"},7]"#);
    let batch = server.receive();
    assert_eq!(batch[0], json!({ "jsonrpc": "2.0", "id": 4, "result": {} }));
    assert_eq!((batch.as_array().map(Vec::len), &batch[1]["error"]["code"]), (Some(2), &json!(-32600)));
    assert!(server.is_alive());
    assert_eq!(server.end(), Some(0));
}

#[cfg(unix)]
#[test]
fn nothing_outside_the_roots_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(&root).unwrap();
    let trace = fs::read(common::fixture("launch_bound.json.gz")).unwrap();
    fs::write(folder.path().join("secret.json.gz"), trace).unwrap();
    std::os::unix::fs::symlink("../secret.json.gz", root.join("link.json.gz")).unwrap();
    std::os::unix::fs::symlink("..", root.join("up")).unwrap();
    let absolute = folder.path().join("secret.json.gz").display().to_string();
    let absent = folder.path().join("none.json.gz").display().to_string();
    let mut server = Server::at(&root, &[]);
    for path in [
        "../secret.json.gz",
        "../none.json.gz",
        "link.json.gz",
        "up/secret.json.gz",
        "up/*.json.gz",
        "*",
        ".",
        "-",
        "",
        "link.json.gz\0",
        "s3://bucket/run.json",
        "file:///etc/passwd",
        &absolute,
        &absent,
        "/etc/passwd",
    ] {
        for tool in ["survey", "diagnose", "whatif"] {
            let answer = server.call(tool, json!({ "paths": [path] }));
            assert_eq!(answer["isError"], true, "{tool} {path}: {answer}");
        }
    }
    // The words do not depend on whether something is there.
    let mut why = |path: &str| {
        let answer = server.call("survey", json!({ "paths": [path] }));
        answer["content"][0]["text"].as_str().unwrap().replace(path, "PATH")
    };
    assert_eq!(why("../secret.json.gz"), why("../none.json.gz"));
    assert_eq!(why(&absolute), why(&absent));
    assert_eq!(why("up/secret.json.gz"), why("up/none.json.gz"));
}

#[test]
fn answers_are_cut_and_say_how_much_was_left_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut events = Vec::new();
    for number in 0..3000 {
        let name = format!("kernel {number} {}", "\u{1f600}\"<\\".repeat(400));
        let (pid, at) = (number % 500, number * 100);
        events.push(json!({"ph":"X","cat":"kernel","name":name,"pid":pid % 8,"tid":7,"ts":at,"dur":40,"args":{"device":pid % 8,"stream":number % 160}}));
        events.push(json!({"ph":"X","cat":"cpu_op","name":name,"pid":pid,"tid":number,"ts":at,"dur":40}));
        let copy = json!({"device":pid % 8,"stream":number % 160,"bytes":1 << (number % 30)});
        events.push(json!({"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":pid % 8,"tid":7,"ts":at + 40,"dur":60,"args":copy}));
    }
    let trace = json!({ "traceEvents": events }).to_string();
    fs::write(folder.path().join("huge.json"), &trace).unwrap();
    fs::write(folder.path().join("again.json"), &trace).unwrap();
    for (more, most) in [(&[][..], 16_000), (&["--max-answer", "4kB"][..], 4_000)] {
        let mut server = Server::at(folder.path(), more);
        for (tool, paths) in [
            ("survey", json!(["huge.json"])),
            ("diagnose", json!(["huge.json"])),
            ("diagnose", json!(["."])),
            ("whatif", json!(["huge.json"])),
            ("compare", json!(["huge.json", "again.json"])),
        ] {
            let answer = server.ask("tools/call", json!({ "name": tool, "arguments": { "paths": paths } }));
            let bytes = answer.to_string().len();
            assert!(bytes <= most, "{tool}: {bytes} bytes");
            assert!(!answer["result"]["isError"].as_bool().unwrap(), "{answer}");
            if tool == "survey" {
                assert!(answer["result"]["structuredContent"]["left_off"].is_object(), "{answer}");
            }
        }
        assert_eq!(server.end(), Some(0));
    }
}

#[test]
fn a_small_limit_or_a_root_that_is_no_directory_is_wrong_usage() {
    let run = |args: &[&str]| common::text(&common::busbound(args).output().unwrap());
    let (out, error, code) = run(&["mcp", "--max-answer", "100"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(error.contains("--max-answer must be at least 2000 bytes"), "{error}");
    let (_, error, code) = run(&["mcp", "--root", &common::fixture("walls.json")]);
    assert_eq!(code, Some(2), "{error}");
    // Nothing to read: standard input is empty, and standard output has nothing but the protocol.
    let (out, _, code) = run(&["mcp"]);
    assert_eq!((out.as_str(), code), ("", Some(0)));
}

/// Valid messages to mutate.
const SEEDS: [&str; 4] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"explain","arguments":{"id":"transfer"}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"survey","arguments":{"paths":["walls.json"]}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"plan","arguments":{"question":"budget","bytes":"2GB","link":"h200"}}}"#,
];

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..6);
    (0..SEEDS.len(), edits).prop_map(|(seed, edits)| {
        let mut line = SEEDS[seed].as_bytes().to_vec();
        for (at, byte, kind) in edits {
            let at = at.index(line.len());
            match kind {
                0 => line[at] = byte,
                1 => line.insert(at, byte),
                _ => line.truncate(at.max(1)),
            }
        }
        line
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_ends_the_server(
        lines in prop::collection::vec(prop_oneof![mutated(), prop::collection::vec(any::<u8>(), 0..200)], 1..20)
    ) {
        let mut server = Server::of_fixtures();
        for line in &lines {
            server.send(line);
        }
        prop_assert!(server.is_alive());
        prop_assert_eq!(server.end(), Some(0));
    }
}
