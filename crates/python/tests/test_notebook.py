"""Results in a real notebook kernel: the card, the page in a frame, and the profile of a loop."""

import html
import re

import pytest

import busbound
from busbound import _show

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")


def run(tmp_path, *cells):
    """The outputs of the cells, each as a list of their bundles."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_diagnosis_is_a_card_and_its_page_a_frame(fixtures, tmp_path):
    path = str(fixtures / "off_block_pageable_c4.json.gz")
    _, (card,), (page,), (survey,) = run(
        tmp_path,
        f"import busbound\ntrace = busbound.open({path!r})",
        "trace.diagnose()",
        "trace.diagnose().show(height=321)",
        "trace.survey()",
    )
    text = card["data"]["text/html"]
    assert "Transfer-bound: 274 ms/step" in text and "H2D copies from pageable memory" in text
    assert "(274 → 104 ms)" in text and "buf.pin_memory()" in text
    assert "<script" not in text and "<style" not in text and "http" not in text
    assert card["data"]["text/markdown"].startswith("#") or "Transfer-bound" in card["data"]["text/markdown"]
    frame = page["data"]["text/html"]
    assert frame.count("<iframe") == 1 and 'sandbox="allow-scripts"' in frame and "height:321px" in frame
    (inside,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(inside) == busbound.open(path).diagnose().to_html()
    # Not a diagnosis: Markdown, no card.
    assert "text/markdown" in survey["data"] and "text/html" not in survey["data"]


def test_the_profile_of_a_loop_is_shown_as_a_card(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: it is too large to install for one test")
    _, outputs, (bound,) = run(
        tmp_path,
        "import busbound, torch",
        "with busbound.profile(steps=3, wait=9) as p:\n"
        "    while not p.done:\n"
        "        torch.ones(64, 64) @ torch.ones(64, 64)\n"
        "        p.step()",
        "p.diagnosis.verdict.bound",
    )
    cards = [output["data"]["text/html"] for output in outputs if output["output_type"] == "display_data"]
    assert len(cards) == 1 and "<script" not in cards[0]
    assert bound["data"]["text/plain"].startswith("'")


def test_the_page_cannot_leave_its_frame():
    page = '"></iframe><script>parent.alert(1)</script>&quot;'
    frame = _show.frame(page, 100)
    assert "<script" not in frame and frame.count("</iframe>") == 1
    (inside,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(inside) == page
    assert "allow-same-origin" not in frame
