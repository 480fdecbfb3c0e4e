"""Base classes of results: the members of the JSON as attributes."""

from __future__ import annotations

import json
import shutil
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, TypeVar

    from ._native import Answer as NativeAnswer

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
        """The JSON as dictionaries, lists, strings and numbers."""
        return {name: _plain(value) for name, value in self.__dict__.items() if not name.startswith("_")}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self.__dict__.items() if not name.startswith("_"))
        return f"{type(self).__name__}({shown})"


class Answer(Record):
    """A complete result. ``print`` shows the same output as the command."""

    _native: NativeAnswer
    _json: str

    @classmethod
    def _of(cls: type[Whole], native: NativeAnswer) -> Whole:
        text = native.json()
        answer = cls(json.loads(text))
        answer._native, answer._json = native, text
        return answer

    def to_json(self) -> str:
        """The exact output of the command with ``--format json``."""
        return self._json

    def to_markdown(self) -> str:
        """The output of the command with ``--format markdown``."""
        return self._native.markdown()

    def __str__(self) -> str:
        # Same as the command: the width of the terminal, or 80 columns without one.
        width = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else 80
        return self._native.text(max(60, min(140, width)))

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def __getstate__(self) -> Any:
        raise TypeError("results cannot be pickled: use to_json() or to_dict()")


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
