//! For tools that read nvbandwidth's JSON: the results that both tools measure, in nvbandwidth's names and layout.
//!
//! nvbandwidth writes one matrix of strings per test case; each GPU is a column.

use busbound_diagnosis::Benchmark;
use busbound_machine::MachineProfile;
use busbound_machine::bench::{Direction, Engine, Memory, Pace};
use serde_json::{Value, json};

use crate::Format;
use crate::answer::Answer;
use crate::error::RenderError;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "nvbandwidth",
    suffixes: &["json"],
    about: "",
    scope: Scope::Only(AnswerKind::Benchmark),
    render: Render::Text(|answer, _| match answer {
        Answer::Benchmark(bench) => bench_as_nvbandwidth(bench),
        other => Err(other.not_available(Format::Nvbandwidth)),
    }),
};

/// The object that `nvbandwidth -j` prints, with the test cases that were measured.
fn bench_as_nvbandwidth(bench: &Benchmark) -> Result<String, RenderError> {
    let profile = &bench.profile;
    let mut cases = Vec::new();
    let host = |direction, engine| {
        let curve = profile.curve(direction, Memory::Pinned, engine, Pace::BackToBack)?;
        curve.points.last().map(|point| point.gbps)
    };
    let to = "CPU(row) -> GPU(column) bandwidth (GB/s)";
    let from = "CPU(row) <- GPU(column) bandwidth (GB/s)";
    let duplex = profile.duplex;
    for (name, description, gbps) in [
        ("host_to_device_memcpy_ce", format!("memcpy CE {to}"), host(Direction::H2d, Engine::CopyEngine)),
        ("device_to_host_memcpy_ce", format!("memcpy CE {from}"), host(Direction::D2h, Engine::CopyEngine)),
        (
            "host_to_device_bidirectional_memcpy_ce",
            format!("memcpy CE {to}"),
            duplex.map(|both| both.h2d_loaded_gbps),
        ),
        (
            "device_to_host_bidirectional_memcpy_ce",
            format!("memcpy CE {from}"),
            duplex.map(|both| both.d2h_loaded_gbps),
        ),
        ("host_to_device_memcpy_sm", format!("memcpy SM {to}"), host(Direction::H2d, Engine::Kernel)),
        ("device_to_host_memcpy_sm", format!("memcpy SM {from}"), host(Direction::D2h, Engine::Kernel)),
    ] {
        if let Some(gbps) = gbps {
            cases.push(case(name, &description, &[vec![Some(gbps)]]));
        }
    }
    cases.extend(peers(profile));
    let (cuda, driver) = profile.identity.as_ref().map_or((0, String::new()), |identity| {
        let (major, minor) = identity.cuda.split_once('.').unwrap_or((&identity.cuda, "0"));
        let number = major.parse().unwrap_or(0) * 1000 + minor.parse().unwrap_or(0) * 10;
        (number, identity.driver.clone())
    });
    let document = json!({"nvbandwidth": {
        "CUDA Runtime Version": cuda,
        "Driver Version": driver,
        "git_version": format!("busbound {}", env!("CARGO_PKG_VERSION")),
        "testcases": cases,
    }});
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

fn peers(profile: &MachineProfile) -> Option<Value> {
    let gpus = profile.p2p.iter().map(|pair| pair.from.max(pair.to) + 1).max()?;
    let cell = |from: u32, to: u32| {
        profile.p2p.iter().find(|pair| (pair.from, pair.to) == (from, to)).map(|pair| pair.gbps)
    };
    let matrix: Vec<Vec<Option<f64>>> =
        (0..gpus).map(|from| (0..gpus).map(|to| cell(from, to)).collect()).collect();
    Some(case(
        "device_to_device_memcpy_write_ce",
        "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
        &matrix,
    ))
}

fn case(name: &str, description: &str, matrix: &[Vec<Option<f64>>]) -> Value {
    let known: Vec<f64> = matrix.iter().flatten().flatten().copied().collect();
    let sum: f64 = known.iter().sum();
    let text: Vec<Vec<String>> = matrix
        .iter()
        .map(|row| {
            row.iter().map(|cell| cell.map_or("N/A".to_owned(), |gbps| format!("{gbps:.2}"))).collect()
        })
        .collect();
    json!({
        "name": name,
        "status": "Passed",
        "bandwidth_description": description,
        "bandwidth_matrix": text,
        "sum": sum,
        "min": known.iter().copied().fold(f64::INFINITY, f64::min),
        "max": known.iter().copied().fold(0.0, f64::max),
        "average": sum / known.len().max(1) as f64,
    })
}
