"""The tables as data frames, without a copy and with the same figures as the diagnosis."""

import sys

import pytest

import busbound

COPIES = ["event", "start_ns", "duration_ns", "device", "stream", "direction", "src", "dst", "bytes", "gbps", "exposed_ns"]


@pytest.fixture
def trace(fixtures):
    return busbound.open(fixtures / "off_block_pageable_c4.json.gz")


def test_a_table_has_a_name_columns_and_rows(trace):
    copies = trace.copies()
    assert isinstance(copies, busbound.Table)
    assert (copies.name, len(copies)) == ("copies", 48)
    assert copies.column_names[: len(COPIES)] == COPIES
    assert repr(copies) == "<busbound.Table copies: 48 rows>"
    assert len(trace.events()) == len(trace)
    assert (len(trace.steps()), len(trace.steps(steps="^no such step$"))) == (4, 0)


def test_pyarrow_reads_it(trace):
    pa = pytest.importorskip("pyarrow")
    copies = pa.table(trace.copies())
    assert copies.num_rows == 48
    assert copies.schema.field("exposed_ns").metadata[b"unit"] == b"ns"
    assert copies.schema.field("src").type == pa.dictionary(pa.int32(), pa.string())
    assert pa.schema(trace.copies()).equals(copies.schema)
    (group,) = trace.diagnose().copies
    analyzed = copies.filter(copies["analyzed"])
    assert sum(analyzed["bytes"].to_pylist()) == group.bytes
    assert sum(analyzed["exposed_ns"].to_pylist()) / 1e6 == pytest.approx(group.exposed_ms)
    # A table can be read more than once.
    table = trace.gaps()
    assert pa.table(table).equals(pa.table(table))


def test_the_rows_outlive_the_trace(fixtures):
    pa = pytest.importorskip("pyarrow")
    events = pa.table(busbound.open(fixtures / "launch_bound.json.gz").events())
    assert set(events["kind"].unique().to_pylist()) >= {"kernel", "operator", "runtime_call"}
    names = events["name"].combine_chunks()
    assert names.dictionary.null_count == 0 and len(names) == len(events)


def test_arrow_memory_is_released(trace):
    pa = pytest.importorskip("pyarrow")
    before = pa.total_allocated_bytes()
    for _ in range(100):
        stream = trace.events().__arrow_c_stream__()
        schema = trace.events().__arrow_c_schema__()
        del stream, schema
        reader = pa.RecordBatchReader.from_stream(trace.events())
        reader.read_next_batch()
        del reader
    assert pa.total_allocated_bytes() == before


def test_polars_reads_it(trace):
    pl = pytest.importorskip("polars")
    steps = pl.DataFrame(trace.steps())
    assert steps["step"].to_list() == [0, 1, 2, 3]
    copies = pl.DataFrame(trace.copies())
    assert copies.filter("analyzed")["bytes"].sum() == trace.diagnose().copies[0].bytes
    assert copies["src"].cast(pl.String).unique().to_list() == ["pageable"]


def test_pandas_reads_it(trace):
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    copies = pa.table(trace.copies()).to_pandas()
    assert copies["src"].dtype == "category"
    if hasattr(pd.DataFrame, "from_arrow"):
        assert len(pd.DataFrame.from_arrow(trace.copies())) == 48


def test_duckdb_reads_it(trace):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    copies = trace.copies()  # noqa: F841 — the query names it
    ((count, mb),) = duckdb.sql("select count(*), sum(bytes) // 1000000 from copies where analyzed").fetchall()
    assert (count, mb) == (48, trace.diagnose().copies[0].bytes // 1000000)


def test_a_table_converts_itself(trace):
    pl, pd, pa = (pytest.importorskip(name) for name in ("polars", "pandas", "pyarrow"))
    copies = trace.copies()
    assert copies.to_arrow().equals(pa.table(copies))
    assert copies.to_polars().equals(pl.DataFrame(copies))
    frame = copies.to_pandas()
    assert isinstance(frame, pd.DataFrame) and frame["src"].dtype == "category" and len(frame) == 48


def test_a_missing_package_is_named(trace, monkeypatch):
    for name, method in [("polars", "to_polars"), ("pandas", "to_pandas"), ("pyarrow", "to_arrow")]:
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"{method} needs {name}: pip install {name}"):
            getattr(trace.copies(), method)()
