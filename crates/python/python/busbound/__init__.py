"""Is your GPU waiting for the bus, where, and what do you gain by which change?

>>> import busbound
>>> trace = busbound.open("run.json.gz")            # torch.profiler, Nsight Systems, busbound record
>>> diagnosis = trace.diagnose()
>>> diagnosis.verdict.bound
'transfer'
>>> print(diagnosis)                                # what the command shows
>>> trace.copies()                                  # Arrow: for Polars, pandas, PyArrow, DuckDB
"""

from __future__ import annotations

from ._native import VERSION as __version__
from ._native import BusboundError, Table
from ._profiler import profiler_handler
from ._trace import Trace, compare, merge, open, summarize, whatif

__all__ = [
    "BusboundError",
    "Table",
    "Trace",
    "__version__",
    "compare",
    "merge",
    "open",
    "profiler_handler",
    "ray",
    "summarize",
    "whatif",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import ray
else:

    def __getattr__(name):
        # Not with the package: it imports Ray, which takes a second and may not be there.
        if name == "ray":
            import importlib

            return importlib.import_module(".ray", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
