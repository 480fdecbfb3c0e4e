//! Dumps in the layout of version 2.5, put together by hand.

use serde_json::json;

use super::*;

fn entry(sequence: u64, state: &str, ms: Option<f64>) -> Value {
    json!({
        "frames": [
            {"name": "all_reduce", "filename": "/usr/lib/python3/torch/distributed/c10d.py", "line": 12},
            {"name": "train", "filename": "train.py", "line": 30},
        ],
        "record_id": sequence, "pg_id": 0, "process_group": ["0", "default_pg"],
        "collective_seq_id": sequence, "p2p_seq_id": 0, "op_id": sequence,
        "profiling_name": "nccl:all_reduce", "time_created_ns": 1_724_779_239_936_775_119u64,
        "input_sizes": [[3, 4], [1024]], "input_dtypes": ["Float", "BFloat16"], "duration_ms": ms,
        "state": state, "is_p2p": false,
    })
}

fn dump(rank: u32, entries: &[Value]) -> (String, Vec<u8>) {
    let dump = json!({"version": "2.5", "pg_config": {}, "entries": entries});
    (format!("/tmp/nccl_trace_rank_{rank}"), serde_json::to_vec(&dump).unwrap())
}

#[test]
fn collectives_are_counted_and_those_that_hang_are_named() {
    let dumps = [
        dump(
            0,
            &[entry(1, "completed", Some(2.0)), entry(2, "completed", Some(4.0)), entry(3, "started", None)],
        ),
        dump(1, &[entry(1, "completed", Some(3.0)), entry(2, "scheduled", None)]),
    ];
    let read = FlightRecorder::parse(&dumps).unwrap();
    assert_eq!((read.version.as_deref(), read.ranks.len(), read.ranks[1].rank), (Some("2.5"), 2, 1));
    let [all] = read.collectives.as_slice() else { panic!("{:?}", read.collectives) };
    // 12 floats and 1024 bf16.
    assert_eq!((all.operation.as_str(), all.bytes, all.count, all.finished), ("all_reduce", 48 + 2048, 5, 3));
    assert_eq!((all.group.as_str(), all.ms), ("default_pg (0)", Some(3.0)));
    let open: Vec<_> = read.unfinished.iter().map(|one| (one.rank, one.sequence, one.state)).collect();
    assert_eq!(open, [(1, 2, State::Scheduled), (0, 3, State::Started)]);
    assert_eq!(read.unfinished[0].place.as_deref(), Some("train.py:30 train"));
    let behind = Behind { group: "default_pg (0)".to_owned(), ranks: vec![1], issued: 2, furthest: 3 };
    assert_eq!(read.behind, [behind]);
}

#[test]
fn ranks_that_came_equally_far_are_not_behind() {
    let same = [entry(1, "completed", None)];
    let read = FlightRecorder::parse(&[dump(0, &same), dump(3, &same)]).unwrap();
    assert_eq!((read.behind.len(), read.unfinished.len(), read.ranks[1].rank), (0, 0, 3));
}

#[test]
fn other_files_are_refused() {
    for other in [&b"{\"traceEvents\": []}"[..], b"\x80\x02cos\nsystem\n.", b"[]", b""] {
        assert!(FlightRecorder::parse(&[("x".to_owned(), other.to_vec())]).is_err());
        assert!(!FlightRecorder::is_one(other));
    }
    assert!(FlightRecorder::is_one(&dump(0, &[]).1));
}
