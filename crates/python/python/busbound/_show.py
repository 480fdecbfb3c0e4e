"""Shows pages: inside a notebook, or in a browser."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_in_notebook() -> bool:
    """Whether this is a notebook's kernel, which displays HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def display(shown: Any) -> None:
    """Displays an object in the notebook."""
    _ipython().display(shown)


def _ipython() -> Any:
    # Without types: the same result of type checkers with and without IPython installed.
    import importlib

    return importlib.import_module("IPython.display")


def frame(page: str, height: int) -> str:
    """The page in a frame that can neither reach the notebook nor the network."""
    import html

    # The page's script draws its charts. Without allow-same-origin it cannot reach the notebook around it.
    return (
        f'<div><iframe sandbox="allow-scripts" srcdoc="{html.escape(page)}" title="busbound"'
        f' style="width:100%;height:{int(height)}px;border:1px solid rgba(128,128,128,.45);border-radius:6px"></iframe></div>'
    )


def show_in_notebook(page: str, height: int) -> None:
    """Displays the page in a frame."""
    display(_ipython().HTML(frame(page, height)))


def show_in_browser(page: str) -> str:
    """Writes the page to a temporary file, opens it if there is a screen, and returns its path."""
    import tempfile
    import webbrowser
    from pathlib import Path

    file, path = tempfile.mkstemp(prefix="busbound-", suffix=".html")
    with os.fdopen(file, "w", encoding="utf-8") as page_file:
        page_file.write(page)
    if _has_screen():
        webbrowser.open(Path(path).as_uri())
    return path


def _has_screen() -> bool:
    # Without one, webbrowser may start a browser for text that takes over the terminal.
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
