"""The history of a job as Parquet, and the queries that docs/history.md shows."""

import json
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

COMMAND = Path(sysconfig.get_path("scripts")) / "busbound"
START_MS = 1_793_491_200_000  # 2026-11-01
HOUR_MS = 3_600_000


def run(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], check=True, capture_output=True, text=True)


@pytest.fixture
def tables(fixtures, tmp_path):
    """40 recordings of six ranks, one per hour; rank 4 is the one with slow copies."""
    run("summarize", fixtures / "ranks", "-o", tmp_path / "once", "-q")
    job = tmp_path / "job"
    job.mkdir()
    for file in (tmp_path / "once").glob("*.rank.json"):
        summary = json.loads(file.read_text())
        for at in range(40):
            summary["recorded_ms"] = START_MS + at * HOUR_MS
            summary["path"] = f"{at}/{file.name}"
            (job / f"{at}-{file.name}").write_text(json.dumps(summary))
    done = run("history", job, "--parquet", tmp_path / "tables")
    assert done.stderr.startswith("busbound: wrote 240 recordings to ")
    return tmp_path / "tables"


def test_the_queries_of_the_documentation_run(tables, root):
    duckdb = pytest.importorskip("duckdb")
    queries = re.findall(r"```sql\n(.*?)```", (root / "docs" / "history.md").read_text(), re.DOTALL)
    assert len(queries) == 3
    by_day, slow, verdicts = (duckdb.sql(query.replace("'tables/", f"'{tables}/")).fetchall() for query in queries)
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
