"""A model that is being offloaded: end it, and ask what it takes."""

from __future__ import annotations

from statistics import median
from types import TracebackType
from typing import Any

from ._compare import Decision, decide
from ._engine import Engine
from ._plan import BOUNDS, LOG, Plan, caller
from ._sizes import OffloadError, text_of
from ._updates import StreamedOptimizer, Updates

#: Passes that are timed before those that are recorded: they show what recording costs.
_UNRECORDED = 5


class Handle:
    """Offload of one model. Leaves the model as it was at ``close`` or at the end of the ``with`` block."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._updates = _updates_of(plan)
        self._engine = Engine(plan.store, plan.resident, plan.slots, updates=self._updates)
        self._engine.open()
        self._optimizer = None
        if self._updates is not None:
            engine = self._engine
            self._optimizer = StreamedOptimizer(self._updates, engine.end_backward, engine.end_step)
        self._decision = self._compared()

    def _compared(self) -> Decision | None:
        """Ends the offload if it gains nothing."""
        plan = self.plan
        if plan.rival is None or plan.run is None or plan.aside is not None:
            return None
        try:
            decision = decide(plan.rival, plan.run, plan.store.device, plan.model)
        except BaseException:
            self.close()
            raise
        self._engine.forget_passes()
        if not decision.is_faster:
            self.close()
            LOG.warning(decision.line)
        return decision

    @property
    def aside(self) -> str | None:
        """Why nothing is streamed, in one line; ``None`` if something is."""
        if self._decision is not None and not self._decision.is_faster:
            return self._decision.line
        return self.plan.aside

    @property
    def model(self) -> Any:
        return self.plan.model

    @property
    def optimizer(self) -> StreamedOptimizer:
        """The optimizer of the weights that are trained. Its ``step`` waits for what is left after backward.

        Raises:
            OffloadError: No ``optimizer=`` was given.
        """
        if self._optimizer is None:
            raise OffloadError("no optimizer= was given: busbound.offload(model, ..., optimizer=lambda params: ...)")
        return self._optimizer

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Moves everything back to where it was."""
        if self._updates is not None:
            self._updates.close()
        self._engine.close()
        self.plan.store.move_home()

    def report(self) -> Report:
        """What passes took so far, against the plan and the limit. The host waits for the last pass that began.

        Returns:
            Predicted against measured. Printing it shows both.
        """
        return Report(self.plan, self._engine, self._updates, self.aside)

    def explain(self, example_inputs: Any = None, *, passes: int = 3, directory: str | None = None) -> str | None:
        """Records a few passes with torch.profiler and shows the page with their timeline, in a notebook or a browser.

        Args:
            example_inputs: As in ``busbound.offload.plan``; by default those of the plan.
            passes: Number of passes to record.
            directory: Where to write the trace; by default a new temporary directory.

        Returns:
            Outside a notebook, the path of the page's temporary file; it is opened if there is a screen.

        Raises:
            OffloadError: There are no inputs, the offload has ended, or nothing was recorded.
        """
        # Not at the top: few need it, and it imports the profiler.
        from .._profile import profile

        if not self._engine.is_open:
            raise OffloadError("the offload has ended: explain records passes while it lasts")
        run = self.plan.run if example_inputs is None else caller(self.model, example_inputs)
        if run is None:
            raise OffloadError("explain runs passes, and needs inputs for them: give example_inputs here or to plan")
        with profile(steps=passes, wait=_UNRECORDED, warmup=1, directory=directory, quiet=True) as recorded:
            while not recorded.done:
                run()
                # Each pass with its own kernels and copies.
                self._engine.synchronize()
                recorded.step()
        if recorded.diagnosis is None:
            raise OffloadError("torch.profiler recorded nothing: the reason is above")
        return recorded.diagnosis.show()


def _updates_of(plan: Plan) -> Updates | None:
    if plan.training is None:
        return None
    resident = set(plan.resident)
    streamed = [index for index in range(len(plan.store.blocks)) if index not in resident]
    try:
        return Updates(plan.store, streamed, plan.training.make, plan.training.max_norm)
    except BaseException:
        # The model is as before.
        plan.store.move_home()
        raise


class Report:
    """Predicted against measured. A pass is the time from one use of the first streamed block to the next."""

    def __init__(self, plan: Plan, engine: Engine, updates: Updates | None = None, aside: str | None = None) -> None:
        self.plan = plan
        #: Why nothing is streamed, in one line.
        self.aside = aside
        #: Milliseconds per step in which the CPU updates weights, and in which the step waits for it after backward.
        self.update_ms: float | None = median(updates.update_ms) if updates is not None and updates.update_ms else None
        self.update_wait_ms: float | None = median(updates.wait_ms) if updates is not None and updates.wait_ms else None
        self.passes_ms: list[float] = engine.pass_times()
        #: The first pass pays for everything that is done once.
        steady = self.passes_ms[1:] or self.passes_ms
        self.pass_ms: float | None = median(steady) if steady else None
        #: The median of the last uses of blocks: what the engine does for one, without the block's own forward. Where the
        #: host runs far ahead, the driver's queue is full and its calls wait: synchronize after each pass to exclude that.
        self.host_us_per_block = median(engine.host_ns) / 1e3 if engine.host_ns else 0.0
        self.misses = engine.misses
        self.streamed_bytes = engine.streamed_bytes
        self.notes = [*plan.store.notes, *engine.notes]

    @property
    def share_of_limit(self) -> float | None:
        """1 is as fast as the bus or the GPU allows."""
        limit = self.plan.limit_ms
        return None if limit is None or not self.pass_ms else limit / self.pass_ms

    @property
    def is_as_predicted(self) -> bool | None:
        """Whether passes are inside the predicted range."""
        known = self.plan.range_ms
        return None if known is None or self.pass_ms is None else known[0] <= self.pass_ms <= known[1]

    def __str__(self) -> str:
        if self.pass_ms is None:
            # Passes are timed where blocks are streamed.
            return self.aside or "offload: no complete pass yet"
        lines = [f"offload: {self.pass_ms:.1f} ms per {self.plan.unit} (median of {max(1, len(self.passes_ms) - 1)})"]
        if self.plan.step_ms is not None and self.plan.range_ms is not None:
            low, high = self.plan.range_ms
            lines.append(f"predicted {self.plan.step_ms:.1f} ms ({low:.1f}\u2013{high:.1f})")
        if self.share_of_limit is not None and self.plan.limit_ms is not None:
            by = BOUNDS[str(self.plan.bound)]
            lines.append(f"{self.share_of_limit:.0%} of the limit, {self.plan.limit_ms:.1f} ms, set by {by}")
        if self.streamed_bytes:
            lines.append(self._streamed())
        lines.append(f"host time {self.host_us_per_block:.0f} µs per block; {self.misses} blocks were not copied ahead")
        if self.update_ms is not None:
            lines.append(
                f"the CPU updates weights for {self.update_ms:.1f} ms per step; the step waits {self.update_wait_ms:.1f} ms after backward"
            )
        lines.extend(f"note: {note}" for note in self.notes[:8])
        return "\n".join(lines)

    def _streamed(self) -> str:
        if self.plan.unit == "step":
            # How much of it is copied twice depends on the slots.
            return f"streamed {text_of(self.streamed_bytes)}, forward and backward"
        gbps = self.streamed_bytes / float(self.pass_ms or 1.0) / 1e6
        return f"streamed {text_of(self.streamed_bytes)} per pass, {gbps:.1f} GB/s on average"
