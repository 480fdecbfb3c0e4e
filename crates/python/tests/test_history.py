"""The history of a job: from folders and from a store, as Parquet, and the queries that docs/history.md shows."""

import json
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

import busbound

COMMAND = Path(sysconfig.get_path("scripts")) / "busbound"
START_MS = 1_793_491_200_000  # 2026-11-01
HOUR_MS = 3_600_000
RECORDINGS = 40
RANKS = 6


def run(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], check=True, capture_output=True, text=True)


@pytest.fixture
def job(fixtures, tmp_path):
    """40 recordings of six ranks, one per hour; rank 4 is the one with slow copies, and rank 1 gets slower."""
    run("summarize", fixtures / "ranks", "-o", tmp_path / "once", "-q")
    job = tmp_path / "job"
    for file in (tmp_path / "once").glob("*.rank.json"):
        summary = json.loads(file.read_text())
        for at in range(RECORDINGS):
            summary["recorded_ms"] = START_MS + at * HOUR_MS
            summary["path"] = f"{at}/{file.name}"
            if summary["rank"]["rank"] == 1 and at == 25:
                for figure in ("span_ms", "exposed_comm_ms"):
                    summary["time"][figure] += 10
            day = job / f"day{at // 24}"
            day.mkdir(parents=True, exist_ok=True)
            (day / f"{at}-{file.name}").write_text(json.dumps(summary))
    return job


@pytest.fixture
def tables(job, tmp_path):
    done = run("history", job, "--parquet", tmp_path / "tables")
    assert done.stderr.startswith("busbound: wrote 240 recordings to ")
    return tmp_path / "tables"


@pytest.fixture
def store():
    """fsspec's file system in memory, empty."""
    fs = pytest.importorskip("fsspec").filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs
    fs.store.clear()


def put(store, job, where):
    for file in job.rglob("*.rank.json"):
        store.pipe_file(f"{where}/{file.relative_to(job).as_posix()}", file.read_bytes())


def test_the_result_is_that_of_the_command(job):
    history = busbound.history(job)
    assert history.to_json() == run("history", job, "--format", "json").stdout
    assert str(history) == run("history", job).stdout
    (one,) = history.jobs
    assert (one.job, one.ranks, one.recordings) == (str(job), RANKS, RANKS * RECORDINGS)
    (change,) = history.changes
    assert (change.figure, change.ranks) == ("span_ms", ["rank 1"])
    assert change.after_unix_ms == START_MS + 25 * HOUR_MS
    assert change.parts[0].figure == "exposed_comm_ms"


def test_a_store_gives_what_the_same_folder_gives(job, store):
    put(store, job, "/summaries/job7")
    # Neither of these is a summary, by its name.
    store.pipe_file("/summaries/job7/notes.txt", b"not a summary")
    store.pipe_file("/summaries/job7/day0/rank-0.json", b"{}")
    local = busbound.history(job)
    remote = busbound.history("memory://summaries/job7/")
    assert remote.jobs[0].job == "memory://summaries/job7"
    assert remote.unread == [] and remote.limitations == []
    assert remote.to_json() == local.to_json().replace(str(job), "memory://summaries/job7")
    # What is added later is found too.
    store.pipe_file("/summaries/job7/day2/new.rank.json", b"torn")
    assert [file.path for file in busbound.history("memory://summaries/job7").unread] == [
        "memory:///summaries/job7/day2/new.rank.json"
    ]


def test_patterns_of_folders_are_several_jobs(job, store, tmp_path):
    for name in ("a", "b"):
        put(store, job, f"/summaries/{name}")
        (tmp_path / "jobs").mkdir(exist_ok=True)
        (tmp_path / "jobs" / name).symlink_to(job)
    remote = busbound.history("memory://summaries/*")
    assert [one.job for one in remote.jobs] == ["memory:///summaries/a", "memory:///summaries/b"]
    assert len(remote.changes) == 2
    local = busbound.history(tmp_path / "jobs" / "*")
    assert [one.job for one in local.jobs] == [str(tmp_path / "jobs" / name) for name in "ab"]
    mixed = busbound.history(job, "memory://summaries/a/*/*.rank.json")
    assert [one.recordings for one in mixed.jobs] == [240, 240]


def test_parquet_is_written_to_a_store(job, store, tables):
    busbound.history(job, parquet="memory://tables/history")
    written = store.find("/tables/history")
    local = sorted(path.relative_to(tables).as_posix() for path in tables.rglob("*.parquet"))
    assert len(local) == 12
    assert [path.removeprefix("/tables/history/") for path in written] == local
    for path, name in zip(written, local, strict=True):
        assert store.cat_file(path) == (tables / name).read_bytes()


def test_what_cannot_be_read_is_listed(job, store):
    put(store, job, "/job")
    store.pipe_file("/job/torn.rank.json", b'{"schema": "busbound.rank')
    store.pipe_file("/job/binary.rank.json", b"\xff\xfe")
    history = busbound.history("memory://job")
    assert history.jobs[0].recordings == 240
    why = {file.path: file.why for file in history.unread}
    assert sorted(why) == ["memory:///job/binary.rank.json", "memory:///job/torn.rank.json"]
    assert "can't decode" in why["memory:///job/binary.rank.json"]
    store.pipe_file("/nothing/torn.rank.json", b"{")
    with pytest.raises(busbound.UnreadableError, match="torn.rank.json"):
        busbound.history("memory://nothing")


def test_errors_say_what_is_wrong(job, store, tmp_path, monkeypatch):
    store.pipe_file("/empty/notes.txt", b"")
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    cases = [
        (busbound.OptionError, "one path or more", lambda: busbound.history()),
        (busbound.OptionError, "storage_options are for addresses", lambda: busbound.history(job, storage_options={"anon": True})),
        (busbound.OptionError, "nosuch", lambda: busbound.history("nosuch://bucket/x")),
        (busbound.NotFoundError, "absent", lambda: busbound.history("memory://absent")),
        (busbound.NotFoundError, "no files match memory://absent/", lambda: busbound.history("memory://absent/*.rank.json")),
        (busbound.NotFoundError, "ends in .rank.json or .fleet.json", lambda: busbound.history("memory://empty")),
        (busbound.NotFoundError, "holds no summary", lambda: busbound.history(nothing)),
        (TypeError, "did you mean 'parquet'", lambda: busbound.history(job, parket="x")),
    ]
    for kind, words, action in cases:
        with pytest.raises(kind, match=re.escape(words)):
            action()
    # One file of the store fails, and then all of them.
    put(store, job, "/job")
    cat, failing = store.cat_file, "/0-rank-0"

    def cat_file(path, **more):
        if failing in path:
            raise OSError(f"{path}: throttled")
        return cat(path, **more)

    monkeypatch.setattr(type(store), "cat_file", staticmethod(cat_file))
    history = busbound.history("memory://job")
    assert history.jobs[0].recordings == 239 and "throttled" in history.unread[0].why
    failing = "rank"
    with pytest.raises(busbound.StorageError, match="throttled"):
        busbound.history("memory://job")


class NoCredentialsError(Exception):
    """As botocore's: the error of a store's client, which is no OSError."""


def test_errors_of_a_stores_client_are_errors_of_the_storage(job, store, fixtures, monkeypatch):
    put(store, job, "/job")
    store.pipe_file("/run.json", (fixtures / "ranks" / "rank-4.json").read_bytes())

    def refuse(*_, **__):
        raise NoCredentialsError("Unable to locate credentials")

    for method in ("find", "cat_file", "get_file"):
        with monkeypatch.context() as one:
            one.setattr(type(store), method, refuse)
            with pytest.raises(busbound.StorageError, match="^memory://.*: Unable to locate credentials"):
                busbound.open("memory://run.json") if method == "get_file" else busbound.history("memory://job")
    with monkeypatch.context() as one:
        one.setattr(type(store), "open", refuse)
        one.setattr(type(store), "put_file", refuse)
        with pytest.raises(busbound.StorageError, match="Unable to locate credentials"):
            busbound.history("memory://job", parquet="memory://tables")


def test_reads_at_the_same_time_are_bounded(job, store, monkeypatch):
    import threading

    put(store, job, "/job")
    cat, lock, now, most = store.cat_file, threading.Lock(), 0, 0
    several = threading.Event()

    def cat_file(path, **more):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            if most > 1:
                several.set()
        # The first one ends when a second one has begun.
        assert several.wait(60)
        text = cat(path, **more)
        with lock:
            now -= 1
        return text

    monkeypatch.setattr(type(store), "cat_file", staticmethod(cat_file))
    assert busbound.history("memory://job").jobs[0].recordings == 240
    assert 1 < most <= 16


def queries(root, heading):
    """The queries below a heading of the documentation."""
    (section,) = re.findall(rf"^### {heading}\n(.*?)(?=^#|\Z)", (root / "docs" / "history.md").read_text(), re.M | re.S)
    found = re.findall(r"^```sql\n(.*?)^```", section, re.M | re.S)
    assert len(found) == 3
    return found


def check_answers(by_day, slow, verdicts):
    assert len(by_day) == 12
    assert sum(row[-1] for row in by_day) == 240
    assert {str(row[2]) for row in by_day} == {"2026-11-01", "2026-11-02"}
    assert [(int(rank), round(ms)) for rank, ms in slow] == [(4, 50)]
    assert {(verdict, count) for _, verdict, count in verdicts} == {
        ("communication", 120),
        ("transfer", 24),
        ("communication", 80),
        ("transfer", 16),
    }


def test_the_queries_of_the_documentation_run_in_duckdb(tables, root):
    duckdb = pytest.importorskip("duckdb")
    check_answers(*(duckdb.sql(query.replace("'tables/", f"'{tables}/")).fetchall() for query in queries(root, "DuckDB")))


def test_the_queries_of_the_documentation_run_in_clickhouse(tables, root, job, monkeypatch):
    try:
        import chdb
    except ImportError:
        pytest.skip("chdb is not installed: it is too large to install for one test")
    monkeypatch.chdir(tables.parent)

    def ask(query):
        return [tuple(json.loads(line).values()) for line in str(chdb.query(query, "JSONEachRow")).splitlines()]

    by_day, slow, verdicts = map(ask, queries(root, "ClickHouse"))
    check_answers(by_day, slow, verdicts)
    assert {row[0] for row in by_day} == {str(job)}
