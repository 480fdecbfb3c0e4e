"""Is your GPU waiting for the bus, where, and which change saves how much?

>>> import busbound
>>> trace = busbound.open("run.json.gz")            # torch.profiler, Nsight Systems, busbound record
>>> diagnosis = trace.diagnose()
>>> diagnosis.verdict.bound
'transfer'
>>> diagnosis                                       # a card, in a notebook
>>> diagnosis.show()                                # the page with the timeline, in a notebook or a browser
>>> print(diagnosis)                                # same output as the command
>>> trace.copies().to_polars()                      # or to_pandas, to_arrow, DuckDB
"""

from __future__ import annotations

from ._native import VERSION as __version__
from ._native import (
    BusboundError,
    NotFoundError,
    OptionError,
    StorageError,
    Table,
    UnreadableError,
)
from ._profiler import profiler_handler
from ._trace import Trace, compare, merge, open, summarize, whatif

__all__ = [
    "BusboundError",
    "NotFoundError",
    "OptionError",
    "Profile",
    "ProfilerCost",
    "StorageError",
    "Table",
    "Trace",
    "UnreadableError",
    "__version__",
    "compare",
    "history",
    "log_scalars",
    "measure_profiler",
    "merge",
    "offload",
    "open",
    "options",
    "phase",
    "profile",
    "profiler_handler",
    "ray",
    "summarize",
    "whatif",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import offload, options, ray
    from ._history import history
    from ._measure import ProfilerCost, measure_profiler
    from ._phase import phase
    from ._profile import Profile, profile
    from ._scalars import log_scalars
else:

    def __getattr__(name):
        # Imported lazily: Ray takes a second to import and may not be installed, and few programs measure, offload, mark phases, look back or write curves.
        import importlib

        if name in ("offload", "options", "ray"):
            return importlib.import_module(f".{name}", __name__)
        if name in ("history", "phase"):
            return getattr(importlib.import_module(f"._{name}", __name__), name)
        if name in ("ProfilerCost", "measure_profiler"):
            return getattr(importlib.import_module("._measure", __name__), name)
        if name in ("Profile", "profile"):
            return getattr(importlib.import_module("._profile", __name__), name)
        if name == "log_scalars":
            return getattr(importlib.import_module("._scalars", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
