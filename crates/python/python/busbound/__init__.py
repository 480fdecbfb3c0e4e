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
    "summarize",
    "whatif",
]
