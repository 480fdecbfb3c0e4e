"""The examples in the guides run and give the documented output."""

import re
import subprocess
import sys

import pytest

import busbound


def examples(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


@pytest.fixture
def exported(fixtures, in_tmp):
    trace = fixtures / "off_block_pageable_c4.json.gz"
    subprocess.run([sys.executable, "-m", "busbound", "export", trace, "--to", "parquet", "-o", "run", "-q"], check=True)
    return in_tmp


def test_sql_of_the_tables(root, exported):
    duckdb = pytest.importorskip("duckdb")
    queries = examples((root / "docs" / "tables.md").read_text(), "sql")
    answers = [duckdb.sql(query).fetchall() for query in queries]
    assert len(answers) == 4 and all(answers)
    assert answers[0][0][:5] == ("h2d", "pageable", "device", "aten::copy_", 48)
    ((_, step_ms),) = answers[3]
    assert step_ms == pytest.approx(274, abs=1)


def test_parquet_metadata_has_the_source(exported):
    parquet = pytest.importorskip("pyarrow.parquet")
    about = parquet.read_schema("run/steps.parquet").metadata
    file = parquet.read_metadata("run/steps.parquet")
    assert file.metadata[b"busbound.schema"] == b"busbound.tables/2"
    assert file.metadata[b"busbound.version"].decode() == busbound.__version__
    assert b"H200" in file.metadata[b"busbound.gpus"]
    assert about[b"busbound.table"] == b"steps"


def test_polars_of_the_tables(root, exported, capsys):
    pytest.importorskip("polars")
    for example in examples((root / "docs" / "tables.md").read_text(), "python"):
        exec(compile(example, "tables.md", "exec"), {})
    assert "exposed_copy_ns" in capsys.readouterr().out


def test_the_guide(root, fixtures, in_tmp, capsys):
    for module in ("polars", "pandas", "pyarrow", "duckdb"):
        pytest.importorskip(module)
    for name, fixture in [("run", "off_block_pageable_c4"), ("before", "off_block_pageable_c4"), ("after", "off_block_pinned_c4")]:
        (in_tmp / f"{name}.json.gz").write_bytes((fixtures / f"{fixture}.json.gz").read_bytes())
    given = {}
    parts = [part for part in examples((root / "docs" / "python.md").read_text(), "python") if "from torch" not in part]
    assert len(parts) > 5
    for part in parts:
        exec(compile(part, "python.md", "exec"), given)
    output = capsys.readouterr().out
    assert "75% of each 274 ms step waits" in output
