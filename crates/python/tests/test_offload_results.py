"""The page of measured results is what the script makes of the raw results, and no section is required."""

import json
import subprocess
import sys

import pytest


def report(root, results):
    script = root / "fixtures" / "offload" / "report.py"
    run = subprocess.run([sys.executable, "-X", "utf8", script, results], capture_output=True, encoding="utf-8", check=True)
    return run.stdout


def test_the_page_is_made_of_the_raw_results(root):
    page = (root / "docs" / "results" / "offload.md").read_text(encoding="utf-8")
    assert report(root, root / "fixtures" / "offload" / "results.json") == page


@pytest.mark.parametrize("section", ["decoder", "identical", "all"])
def test_missing_sections_are_named(root, tmp_path, section):
    raw = json.loads((root / "fixtures" / "offload" / "results.json").read_text())
    left = {name: each for name, each in raw.items() if name == "about" or section not in (name, "all")}
    (tmp_path / "results.json").write_text(json.dumps(left))
    page = report(root, tmp_path / "results.json")
    missing = page.split("## Not measured")[1]
    for name in ("rates", "decoder", "identical", "activations", "training"):
        assert (f"- `{name}`" in missing) == (name not in left)


def test_a_section_that_was_cut_off_is_shown(root, tmp_path):
    raw = json.loads((root / "fixtures" / "offload" / "results.json").read_text())
    found = raw["decoder"]
    found["busbound half"] = {"prefill": [], "decode": [], "identical": {}}
    found["FSDP2"] = {"error": "RuntimeError('no memory')"}
    raw["activations"] = {"saved_bytes": 10**9, "forward_ms": 30.0, "ways": {"resident": {"ms": [101.0], "identical": True}}}
    raw["errors"] = {"activations": "KeyboardInterrupt()"}
    (tmp_path / "results.json").write_text(json.dumps(raw))
    page = report(root, tmp_path / "results.json")
    assert "| busbound half | not measured | not measured |" in page
    assert "| FSDP2 | failed |" in page and "it failed: KeyboardInterrupt()" in page
    assert "| resident | 101.0 | 1 |" in page
