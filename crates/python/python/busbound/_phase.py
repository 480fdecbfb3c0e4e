"""Marks the phases of a run."""

from __future__ import annotations

import contextlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Marks a phase of the run, for torch.profiler and for ``busbound record``: reported apart from the steps.

    >>> with busbound.phase("load"):
    ...     model = AutoModel.from_pretrained("...").cuda()

    ``load``, ``eval`` and ``checkpoint`` have a meaning: their steps are left out of the figures of the others, and the
    diagnosis says what bounds loading. Other names are listed with their time. Without PyTorch in the process, nothing happens.

    Args:
        name: What the program does, in one word.

    Returns:
        A context manager.
    """
    torch = sys.modules.get("torch")
    mark = f"busbound:phase={name}"
    with contextlib.ExitStack() as marks:
        if torch is not None:
            marks.enter_context(torch.profiler.record_function(mark))
            if torch.cuda.is_available():
                # What is recorded begins with the first use of CUDA: a range that began earlier would be lost.
                if "CUDA_INJECTION64_PATH" in os.environ:
                    torch.cuda.init()
                torch.cuda.nvtx.range_push(mark)
                marks.callback(torch.cuda.nvtx.range_pop)
        yield
