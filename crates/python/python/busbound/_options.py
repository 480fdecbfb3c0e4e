"""Misspelled options are errors that say which option was meant."""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with such errors for its keywords."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def with_known_options(*args: P.args, **options: P.kwargs) -> R:
        check(options, known, function.__name__)
        return function(*args, **options)

    return with_known_options


def check(options: Mapping[str, Any], known: Iterable[str], function: str) -> None:
    """Raises TypeError, as Python itself does, for options that ``function`` does not have."""
    known = list(known)
    for name in options:
        if name not in known:
            raise TypeError(f"{function}() has no option {name!r}{_meant(name, known)}")


def _meant(name: str, known: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f": did you mean {close[0]!r}?"
    return f": its options are {', '.join(one for one in known if one != 'self')}"
