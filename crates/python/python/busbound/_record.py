"""Base classes of results: the members of the JSON as attributes."""

from __future__ import annotations

import json
import shutil
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, TypeVar

    from ._native import Answer as NativeAnswer
    from ._source import Source

    Whole = TypeVar("Whole", bound="Answer")


class Record:
    """A part of a result. Its attributes have the names of the JSON."""

    #: Attributes that are records themselves, or lists or dictionaries of them.
    _records: ClassVar[dict[str, type[Record]]] = {}

    def __init__(self, members: dict[str, Any]) -> None:
        for name, value in members.items():
            kind = self._records.get(name)
            self.__dict__[name] = value if kind is None else _with_records(value, kind)

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            # A member whose name is a Python keyword: `class_`.
            if name.endswith("_") and name[:-1] in self.__dict__:
                return self.__dict__[name[:-1]]
            # An optional member that the JSON leaves out.
            if name in type(self).__annotations__:
                return None
            raise AttributeError(f"{type(self).__name__} has no member {name}")

    def to_dict(self) -> dict[str, Any]:
        """The JSON as dictionaries, lists, strings and numbers.

        Returns:
            A new dictionary.
        """
        return {name: _plain(value) for name, value in self.__dict__.items() if not name.startswith("_")}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self.__dict__.items() if not name.startswith("_"))
        return f"{type(self).__name__}({shown})"


class Answer(Record):
    """A complete result. ``print`` shows the same output as the command; a notebook shows a diagnosis as a card.

    Results can be copied and pickled.
    """

    _native: NativeAnswer | Saved
    _json: str
    #: What it was diagnosed from, for the page's drawings.
    _source: Source | None

    @classmethod
    def _of(cls: type[Whole], native: NativeAnswer | Saved, source: Source | None = None) -> Whole:
        text = native.json()
        answer = cls(json.loads(text))
        answer._native, answer._json, answer._source = native, text, source
        return answer

    def to_json(self) -> str:
        """The exact output of the command with ``--format json``.

        Returns:
            The JSON, as one text.
        """
        return self._json

    def to_markdown(self) -> str:
        """The output of the command with ``--format markdown``.

        Returns:
            The Markdown, as one text.
        """
        return self._native.markdown()

    def to_html(self) -> str:
        """The page that the command writes with ``-o page.html``: one file that fetches nothing.

        The timeline is drawn from the trace. If the ``Trace`` is not in memory any more, its file is read again; if that
        is gone or has changed, the page has only text and tables.

        Returns:
            The page, as one text.

        Raises:
            NotFoundError: The result was pickled, and the trace is not where it was.
        """
        if self._source is not None:
            page = self._source.page()
            if page is not None:
                return page
        return self._native.html()

    def show(self, *, height: int = 700) -> str | None:
        """Opens the page: in a frame of the notebook, or else in a browser.

        Args:
            height: The frame's height in pixels.

        Returns:
            Outside a notebook, the path of the page's temporary file; it is opened if there is a screen.
        """
        from . import _show

        page = self.to_html()
        if not _show.is_in_notebook():
            return _show.show_in_browser(page)
        _show.show_in_notebook(page, height)
        return None

    def __str__(self) -> str:
        # Same as the command: the width of the terminal, or 80 columns without one.
        width = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else 80
        return self._native.text(max(60, min(140, width)))

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str | None:
        return self._native.card()

    def __copy__(self: Whole) -> Whole:
        return type(self)._of(self._native, self._source)

    def __deepcopy__(self: Whole, memo: dict[int, Any]) -> Whole:
        # What is shared cannot change.
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (type(self), Saved.of(self._native), self._source))


class Saved:
    """What a pickled result keeps of the native one."""

    __slots__ = ("_card", "_json", "_markdown", "_text")

    def __init__(self, json: str, text: str, markdown: str, card: str | None) -> None:
        self._json, self._text, self._markdown, self._card = json, text, markdown, card

    @classmethod
    def of(cls, native: NativeAnswer | Saved) -> Saved:
        if isinstance(native, Saved):
            return native
        return cls(native.json(), native.text(80), native.markdown(), native.card())

    def __reduce__(self) -> tuple[Any, ...]:
        return (Saved, (self._json, self._text, self._markdown, self._card))

    def json(self) -> str:
        return self._json

    def text(self, width: int) -> str:
        return self._text

    def markdown(self) -> str:
        return self._markdown

    def card(self) -> str | None:
        return self._card

    def html(self) -> str:
        from ._native import NotFoundError

        raise NotFoundError("a result that was pickled has no page: the trace is not where it was")


def _restored(kind: type[Whole], saved: Saved, source: Source | None) -> Whole:
    return kind._of(saved, source)


def _with_records(value: Any, kind: type[Record]) -> Any:
    if isinstance(value, dict):
        return kind(value)
    if isinstance(value, list):
        return [_with_records(one, kind) for one in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


def _short(value: Any) -> str:
    text = f"[{len(value)}]" if isinstance(value, list) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
