"""Answers as types: every member of the JSON is an attribute of the same name.

Written by generate.py from the JSON schemas in docs/.
"""

from __future__ import annotations

from ._record import Answer, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal


class Apart(Record):
    """A rank whose figure is far from the median."""

    rank: str
    path: str
    value: float


class BlockTime(Record):
    name: str
    depth: int
    """0 for the outermost."""
    count: float
    """How often it runs in a step."""
    host_ms: float
    """Between its begin and its end on the host."""
    gpu_ms: float
    """Work of the device launched under it, by correlation and over all streams: the sum of its pieces."""
    compute_ms: float
    communication_ms: float
    copy_ms: float
    """Copies over the bus, and how much of them ran with no kernel beside them."""
    copy_bytes: float
    exposed_ms: float
    share: float
    """Share of the step at which work of this block was on the device, 0 to 1. Blocks that run beside each other
    share time, so that these need not add up to 1."""


class Attribution(Record):
    """Time by block, in milliseconds per step."""

    asked: bool
    """Whether the user chose the blocks."""
    blocks: list[BlockTime]
    """In the order of the tree: each block before those within it. What a block launched counts in those around it
    too."""
    outside: BlockTime
    """Work of the device launched under no block. With the outermost blocks it is all there is."""
    synchronized: str | None
    """Set where blocks end in a synchronization of the device: these figures then serve attribution, and not
    throughput."""

    _records = {"blocks": BlockTime, "outside": BlockTime}


class Blocking(Record):
    count: int
    ms: float


class PartChange(Record):
    """A part of the step in the first and in the last run."""

    part: str
    before_ms: float
    after_ms: float


class Change(Record):
    """How the step of the last run differs from that of the first."""

    outcome: Literal['faster', 'slower', 'no_clear_difference']
    factor: float
    """The longer median step divided by the shorter one, at least 1."""
    before_ms: float
    after_ms: float
    largest_part: PartChange | None
    """The part of the step that changed most in the same direction; `null` without a clear difference."""
    spread_ms: float | None
    """How far a step typically is from the median of its run (median absolute deviation; the larger one of both
    runs). `null` if a run has fewer than two steps."""

    _records = {"largest_part": PartChange}


class ComparedRun(Record):
    path: str
    label: str
    verdict: str
    complete: bool
    steps: int | None


class Figure(Record):
    """One figure of each run, in the order of the runs."""

    name: str
    group: Literal['other', 'step', 'part', 'copies', 'block', 'kernel', 'compiled']
    unit: str
    values: list[float]
    delta: float
    """Last minus first."""
    delta_pct: float | None
    """`null` if the first is zero."""


class StageChange(Record):
    score_before: float
    score_after: float
    period_pct: float
    stages: list[list[Any]]
    """Name of each stage, and by how many percent it became longer."""
    statement: str
    gained_share: float | None
    """How much of the additional overlap shortened the period, 0 to 1."""


class Growth(Record):
    part: str
    added_ms: float
    beyond_ms: float
    """Time beyond growth in proportion to the label."""
    factor: float | None
    """`null` if it was zero in the first run."""


class Sweep(Record):
    """How the figures follow the label."""

    key: str
    values: list[float]
    throughput: list[float]
    """Label units per second: samples per second if the label is the batch size."""
    grew_faster: list[Growth]
    """Parts of the step that grew more than the label, most added time first."""

    _records = {"grew_faster": Growth}


class Comparison(Answer):
    """Two runs, or a sweep over a label."""

    schema: str
    statement: str
    runs: list[ComparedRun]
    figures: list[Figure]
    appeared: list[Literal['pageable_copies', 'pageable_d2h', 'non_blocking_pageable', 'serialized_copies', 'late_prefetch', 'bandwidth_deficit', 'small_copies', 'sync_in_loop', 'input_wait', 'launch_bound', 'allocation_in_loop', 'exposed_communication', 'copy_collective_contention', 'unneeded_offload', 'slow_link', 'narrow_link', 'managed_thrashing', 'managed_faults', 'device_copies', 'profiler_distortion', 'power_limited']]
    """Findings of the last run that the first run does not have."""
    gone: list[Literal['pageable_copies', 'pageable_d2h', 'non_blocking_pageable', 'serialized_copies', 'late_prefetch', 'bandwidth_deficit', 'small_copies', 'sync_in_loop', 'input_wait', 'launch_bound', 'allocation_in_loop', 'exposed_communication', 'copy_collective_contention', 'unneeded_offload', 'slow_link', 'narrow_link', 'managed_thrashing', 'managed_faults', 'device_copies', 'profiler_distortion', 'power_limited']]
    """Findings of the first run that the last run does not have."""
    stayed: list[Literal['pageable_copies', 'pageable_d2h', 'non_blocking_pageable', 'serialized_copies', 'late_prefetch', 'bandwidth_deficit', 'small_copies', 'sync_in_loop', 'input_wait', 'launch_bound', 'allocation_in_loop', 'exposed_communication', 'copy_collective_contention', 'unneeded_offload', 'slow_link', 'narrow_link', 'managed_thrashing', 'managed_faults', 'device_copies', 'profiler_distortion', 'power_limited']]
    limitations: list[str]
    change: Change | None
    """How the step of the last run differs from the first; `null` if the runs cannot be compared."""
    stages: StageChange | None
    """How the stages of a pipeline changed; `null` unless the first and the last run have the same stages."""
    sweep: Sweep | None

    _records = {"change": Change, "figures": Figure, "runs": ComparedRun, "stages": StageChange, "sweep": Sweep}


class Compiled(Record):
    """What the trace shows of compiled code. All zero where there is none."""

    regions: int
    """Entries into compiled regions."""
    frames: int
    """Different frames among them: where one function was compiled, more than one means that its graph broke."""
    resumed: int
    """Frames that continue after a break, where the trace has stacks: then a break is certain."""
    recompiled: int
    """Versions beyond the first of a frame: it was compiled again, mostly for another shape."""
    compiling_ms: float
    """Time spent compiling within the trace."""
    breaks: int | None
    """Graph breaks; `null` if unknown: several frames and no Python stacks."""
    statement: str | None
    """What that means; `null` where nothing is amiss."""


class Contention(Record):
    """The same work with and without company."""

    what: str
    """`h2d copies of 16 to 100 MB`, or a collective's name."""
    beside: str
    count_alone: int
    count_beside: int
    slower_pct: float
    """How much longer it took beside the other, in percent."""
    low_pct: float
    """95 % confidence interval of that."""
    high_pct: float


class CopyClass(Record):
    """Copies that go the same way between the same kinds of memory."""

    direction: Literal['h2d', 'd2h', 'h2h', 'unknown', 'd2d', 'p2p']
    src: Literal['device', 'managed', 'pageable', 'pinned', 'unknown']
    dst: Literal['device', 'managed', 'pageable', 'pinned', 'unknown']
    count: int
    bytes: int
    """Bytes of those that tell them."""
    without_bytes: int
    total_ns: int


class Rates(Record):
    weighted: float
    """All bytes over the time at which at least one of the copies ran."""
    p10: float
    p50: float
    p90: float


class HistogramBin(Record):
    from_gbps: float
    count: int
    bytes: int
    ms: float
    to_gbps: float | None
    """`null` for the last, which has no upper end."""


class SizeClass(Record):
    label: str
    from_bytes: int
    count: int
    bytes: int
    ms: float
    gbps: float
    expected_gbps: float | None
    """What the link gives for copies of these sizes; only for copies that cross it, from 64 KiB on."""
    to_bytes: int | None
    """`null` for the last, which has no upper end."""


class CopyStream(Record):
    device: int
    stream: int
    count: int
    bytes: int
    busy_ms: float
    kernels_on_stream: int
    """Kernels that ran on the same stream: copies there can never overlap them."""


class CopyGroup(Record):
    """Copies that go the same way between the same kinds of memory."""

    direction: Literal['h2d', 'd2h', 'h2h', 'unknown', 'd2d', 'p2p']
    src: Literal['device', 'managed', 'pageable', 'pinned', 'unknown']
    dst: Literal['device', 'managed', 'pageable', 'pinned', 'unknown']
    count: int
    bytes: int
    without_bytes: int
    """Copies that do not tell their bytes; they are in no rate."""
    busy_ms: float
    """Time at which at least one of them ran."""
    total_ms: float
    """Their durations added up."""
    exposed_ms: float
    """Time of them with no kernel running."""
    blocking: Blocking
    """Host time inside the copying call, where the call waited for the copy."""
    waited_after: Blocking
    """Host time in a synchronization that directly followed the call."""
    histogram: list[HistogramBin]
    sizes: list[SizeClass]
    streams: list[CopyStream]
    gbps: Rates | None
    of_expected: float | None
    """Mean rate of copies from 64 KiB on, over what the link gives for their sizes from pinned memory."""
    utilization: float | None
    """Mean rate over the link's peak; for copies that cross it."""

    _records = {"blocking": Blocking, "gbps": Rates, "histogram": HistogramBin, "sizes": SizeClass, "streams": CopyStream, "waited_after": Blocking}


class CpuCopies(Record):
    """Copy operators of one class."""

    class_: Literal['undecided', 'bus_transfer', 'gpu_internal', 'asynchronous_launch']
    count: int
    bytes: int
    host_ms: float
    gbps: float | None
    """Bytes over operator time; only for transfers over the bus."""


class PathShare(Record):
    class_: Literal['compute', 'communication', 'memset', 'copy', 'staging', 'launch', 'host', 'input', 'synchronization', 'contended', 'turnaround', 'unexplained']
    ms: float
    share: float


class PathEdges(Record):
    """How the pieces are joined, over all steps walked. Orders of streams and launches are certain."""

    stream_order: int
    launch: int
    recorded_waits: int
    """Waits of streams and of the host that the trace records."""
    inferred_waits: int
    """Waits that fit the times."""


class PathPiece(Record):
    class_: Literal['compute', 'communication', 'memset', 'copy', 'staging', 'launch', 'host', 'input', 'synchronization', 'contended', 'turnaround', 'unexplained']
    name: str
    start_ms: float
    """From the start of the step."""
    ms: float


class CriticalPath(Record):
    steps: int
    """Steps walked; shares are of all of them."""
    step_ms: float
    """Their time, and how much of it the path covers."""
    path_ms: float
    classes: list[PathShare]
    """Time of each class per step, most first, and its share of the path."""
    longest: list[PathPiece]
    """The ten longest pieces of the step of median length."""
    pieces: int
    """Number of pieces of that step's path."""
    edges: PathEdges

    _records = {"classes": PathShare, "edges": PathEdges, "longest": PathPiece}


class Demand(Record):
    """What the ranks ask of a way in one direction, added up."""

    direction: Literal['h2d', 'd2h', 'h2h', 'unknown', 'd2d', 'p2p']
    at_once_gbps: float
    """The rates that they reached while they copied: what they would ask if all copied at once."""
    mean_gbps: float
    """Bytes over the length of a step."""


class Stream(Record):
    id: int
    """−1 for events that concern the whole device."""
    kernels: int
    copies: int
    memsets: int
    synchronizations: int
    work_ns: int


class Device(Record):
    id: int
    streams: list[Stream]
    name: str | None
    """From the list of GPUs; `None` where the trace has none."""

    _records = {"streams": Stream}


class Overlaps(Record):
    """Times at which two sorts of work ran at once."""

    comm_compute_ms: float
    copy_compute_ms: float
    copy_comm_ms: float
    host_copy_compute_ms: float
    host_copy_comm_ms: float
    memset_compute_ms: float
    memset_copy_ms: float
    memset_comm_ms: float
    comm_compute_pct_of_comm: float | None
    """Share of communication that compute ran beside; `null` without communication."""


class Times(Record):
    """Times in milliseconds: unions per device, summed over devices."""

    span_ms: float
    busy_ms: float
    compute_ms: float
    copy_ms: float
    comm_ms: float
    memset_ms: float
    idle_ms: float
    exposed_copy_ms: float
    """Copies while no kernel runs."""
    exposed_bus_copy_ms: float
    """Of these, copies over the link between host and device."""
    exposed_unplaced_copy_ms: float
    """Of these, copies of which the trace does not record where they go, while no other copy runs."""
    exposed_comm_ms: float
    """Communication while no compute kernel runs."""


class DeviceFacts(Record):
    device: int
    time: Times
    overlap: Overlaps

    _records = {"overlap": Overlaps, "time": Times}


class Saving(Record):
    """Milliseconds a step (or trace, where there are no steps) that a fix saves."""

    low: float
    high: float


class Finding(Record):
    id: Literal['pageable_copies', 'pageable_d2h', 'non_blocking_pageable', 'serialized_copies', 'late_prefetch', 'bandwidth_deficit', 'small_copies', 'sync_in_loop', 'input_wait', 'launch_bound', 'allocation_in_loop', 'exposed_communication', 'copy_collective_contention', 'unneeded_offload', 'slow_link', 'narrow_link', 'managed_thrashing', 'managed_faults', 'device_copies', 'profiler_distortion', 'power_limited']
    severity: Literal['low', 'medium', 'high']
    title: str
    seen: str
    """What was seen, in one or two sentences."""
    evidence: dict[str, Any]
    """The figures behind it."""
    precondition: str
    """What must be true for the fix to pay."""
    saves_ms_per_step: Saving
    saving_basis: str
    """How the saving was reached."""
    fix: str
    docs: str
    fix_code: str | None
    """The fix in PyTorch, where it is code."""

    _records = {"saves_ms_per_step": Saving}


class IdlePlace(Record):
    place: str
    count: int
    ms: float


class IdleCause(Record):
    """Idle time of one cause."""

    cause: Literal['copy', 'launch', 'synchronization', 'input', 'turnaround', 'unexplained']
    count: int
    ms: float
    longest_ms: float
    before_copies_ms: float
    """Of the time, that before a copy over the bus and not before a kernel."""
    places: list[IdlePlace]
    """Where the program was when the longest of these gaps ended, by time."""
    longest_place: str | None
    """Where the program was when the longest ended."""

    _records = {"places": IdlePlace}


class Matched(Record):
    kernels: int
    found_in_trace: int


class Geometry(Record):
    grid: list[int]
    block: list[int]
    registers_per_thread: int
    shared_memory_bytes: int


class Roofline(Record):
    """Where a kernel stands under its device's roof."""

    bound: Literal['memory', 'compute', 'latency'] | None
    """`null` where the export has no shares of the peak."""
    bytes: float | None
    compute_pct: float | None
    duration_us: float | None
    intensity: float | None
    """Operations a byte."""
    memory_gbps: float | None
    memory_pct: float | None
    of_precision_roof: float | None
    """Of the roof of that precision, 0 to 1."""
    of_roof: float | None
    """Share of the roof that it reaches, 0 to 1: of the memory's or of the multiprocessors', whichever is
    nearer."""
    operations: float | None
    """Operations of all precisions, and the rate of those it does most of."""
    precision: str | None
    tflops: float | None


class KernelTime(Record):
    name: str
    runs_per_step: float
    ms_per_step: float
    share: float
    """Of the time of all kernels, 0 to 1."""
    median_us: float
    geometry: Geometry | None
    """Geometry of most of its runs; `null` where the trace has none."""
    roofline: Roofline | None
    """What Nsight Compute measured of it."""

    _records = {"geometry": Geometry, "roofline": Roofline}


class Kernels(Record):
    top: list[KernelTime]
    """Most time first."""
    different: int
    """Different kernels in all, and their time per step as the sum of their runs."""
    ms_per_step: float
    measured: Matched | None
    """Whether an export of Nsight Compute was given, and how many of its kernels the trace has."""

    _records = {"measured": Matched, "top": KernelTime}


class LaunchingOperator(Record):
    operator: str
    share: float
    """Share of the launches, 0 to 1; from a sample where there are many."""


class LaunchQueue(Record):
    """Pieces of work launched and not begun, over all streams of all devices."""

    mean_depth: float
    """Weighted by time."""
    max_depth: int
    empty_share: float
    """Share of the time with nothing waiting to begin, 0 to 1."""
    over_time: list[float]
    """Mean depth in equal parts of the time, in order."""


class Launches(Record):
    kernels: int
    kernels_per_second: float
    """Over the time that the devices' work spans."""
    median_kernel_us: float
    calls: int
    """Host calls that launch."""
    median_call_us: float
    """Host time of a launching call, median."""
    long_calls: int
    """Calls of more than a millisecond: kernels loaded at first use, or a full queue."""
    long_calls_ms: float
    graph_launches: int
    calls_ms_per_step: float
    """Host time inside launching calls, per step."""
    compiled: Compiled
    operators: list[LaunchingOperator]
    """Operators that launched most kernels."""
    queue: LaunchQueue | None
    """Launched and not begun; `null` where launches and work cannot be joined."""

    _records = {"compiled": Compiled, "operators": LaunchingOperator, "queue": LaunchQueue}


class Limitation(Record):
    id: Literal['lost', 'events', 'gpu_activity', 'gpu_tail', 'runtime_calls', 'correlation', 'operators', 'copy_bytes', 'copy_direction', 'memory_kind', 'gpu_names', 'gpu_of_process', 'graph_nodes', 'graph_work', 'page_faults', 'shapes', 'stacks', 'memory', 'synchronizations', 'steps', 'steps_by_period', 'early_work', 'outliers_left_out', 'warm_up', 'link_assumed', 'link_state', 'unlike_gpus', 'link_wrong', 'no_kernels', 'managed_in_kernels', 'profiler_cost', 'one_rank', 'lost_rows', 'no_end', 'cpu_only', 'asynchronous', 'undecided', 'no_shapes', 'stages', 'blocks']
    text: str


class LinkFacts(Record):
    """A GPU's link to its host."""

    name: str
    peak_gbps: float
    """Line peak of one direction."""
    source: Literal['measured', 'given', 'catalog', 'assumed', 'recorded']
    nvlink_gbps: float | None
    """GB/s to other GPUs over links of their own; 0 where there are none, `None` if not known."""
    reached_gbps: float | None
    """What large pinned copies reach, where that is known and not reckoned from the peak."""


class GpuLink(Record):
    device: int
    link: LinkFacts
    name: str | None

    _records = {"link": LinkFacts}


class MachineFacts(Record):
    gpus: list[GpuLink]
    listed: int
    """GPUs that the trace lists, used in it or not."""

    _records = {"gpus": GpuLink}


class RankedAs(Record):
    """Which process of the job this is, and how that is known."""

    rank: int
    origin: Literal['distributed_info', 'file_name']
    backend: str | None
    world_size: int | None


class LostPart(Record):
    what: Literal['ends_inside_event', 'ends_between_events', 'ends_before_events', 'ends_after_events', 'damaged_event', 'stray_bytes', 'damaged_metadata', 'too_long', 'not_an_event', 'gzip_truncated', 'gzip_damaged', 'gzip_checksum', 'gzip_trailing_bytes', 'memory_bound', 'damaged_chunk', 'ends_inside_chunk', 'ends_without_mark', 'dropped_record', 'read_error', 'database_cut', 'rows_in_journal', 'damaged_table', 'unusable_row', 'not_collected']
    text: str
    where: int
    """Byte offset of the first occurrence; 0 where there is none to tell."""
    in_compressed_bytes: bool
    """Whether the offset counts bytes of the compressed file and not of the JSON in it."""
    count: int
    bytes: int
    table: str | None
    """The table it happened in, for files that have tables."""


class SourceFacts(Record):
    """The file and how much of it could be read."""

    path: str
    format: str
    complete: bool
    file_bytes: int
    compressed: bool
    """Whether the file is compressed, so that `json_bytes` counts other bytes than `file_bytes`."""
    json_bytes: int
    objects: int
    """Objects in the list of events, kept or not."""
    events: int
    lost: list[LostPart]

    _records = {"lost": LostPart}


class Item(Record):
    stages_ms: list[float]
    hidden_ms: float | None
    period_ms: float | None
    """`null` for the first, which follows none."""


class StageTime(Record):
    name: str
    pattern: str
    count: int
    median_ms: float


class Stages(Record):
    stages: list[StageTime]
    items: int
    """Items that passed every stage."""
    period_ms: float
    """Median time from the end of one item to the end of the next."""
    hidden_ms: float
    """What the stages take together less the period."""
    overlap_score: float
    """`hidden` over the sum of all stages but the longest: 1 where the period is the longest stage, 0 where the
    stages take turns."""
    shape: Literal['between', 'longest', 'sum', 'more']
    on_device: bool
    """Whether the times are the device's; without its events they are the host's."""
    statement: str
    each: list[Item]
    """Of many items, the first thousand."""

    _records = {"each": Item, "stages": StageTime}


class SyncTotal(Record):
    reason: Literal['blocking_copy', 'value_read', 'explicit']
    count: int
    host_ms: float
    within_step: int
    """Those that are not the last of their step: the step cannot be queued ahead of them."""
    within_step_ms: float
    place: str | None


class Throughput(Record):
    """What a run processes per second."""

    name: str
    """The figure in requirements, e.g. `tokens_per_s`."""
    per_step: float
    per_s: float | None
    """Divided by the median step after the warm-up, outliers included. `null` if the trace marks no steps: a
    detected iteration may be a part of a step."""


class Verdict(Record):
    bound: Literal['transfer', 'communication', 'compute', 'launch', 'sync', 'input', 'mixed', 'unknown']
    share: float
    """Share of the device's time that goes to it, 0 to 1."""
    statement: str


class Difference(Record):
    what: Literal['synchronization', 'input', 'copy', 'kernel', 'allocation', 'capture', 'compilation', 'creation', 'launch']
    ms: float
    median_ms: float
    count: int
    median_count: int
    bytes: int
    median_bytes: int


class OutlierStep(Record):
    """A step that took clearly longer than the others."""

    index: int
    """Which one of all steps, from 0."""
    ms: float
    differences: list[Difference]
    """What it did more of than the median step, most first. Parts may overlap in time."""
    statement: str

    _records = {"differences": Difference}


class StepTimes(Record):
    """Length of steps in milliseconds."""

    count: int
    pattern: str
    found: Literal['given', 'annotation', 'period']
    p50_ms: float
    p90_ms: float
    p99_ms: float
    min_ms: float
    max_ms: float
    warmup_dropped: int
    """Steps at the beginning that no figure of this answer speaks of."""
    outliers_dropped: int
    """Steps after them that no figure speaks of, because steps among them took clearly longer."""
    each_ms: list[float]
    """Each step's length, in order; of many steps, the first thousand."""


class WindowFacts(Record):
    span_ms: float
    """First to last work of the devices, summed over them."""
    outliers: list[OutlierStep]
    """Steps that took clearly longer than the others, and what they did differently; of many, the longest."""
    outlier_count: int
    rounds: float
    """What totals are divided by for figures per step: the steps, and what was recorded of work launched before the
    first of them; 1 where no steps are marked."""
    steps: StepTimes | None
    """`null` where no steps are found; figures "per step" are then for the whole trace."""
    with_outliers: StepTimes | None
    """All steps after the warm-up, where `steps` leaves some of them out."""

    _records = {"outliers": OutlierStep, "steps": StepTimes, "with_outliers": StepTimes}


class Diagnosis(Answer):
    """Everything `busbound diagnose` tells of one trace. Renderers see nothing else."""

    schema: str
    source: SourceFacts
    machine: MachineFacts
    window: WindowFacts
    verdict: Verdict
    time: Times
    overlap: Overlaps
    devices: list[DeviceFacts]
    copies: list[CopyGroup]
    cpu_copies: list[CpuCopies]
    """Copy operators of a trace without GPU events."""
    idle: list[IdleCause]
    contention: list[Contention]
    throughput: list[Throughput]
    """What the run processes per second; empty if it is not given how much a step processes."""
    launches: Launches
    synchronizations: list[SyncTotal]
    findings: list[Finding]
    limitations: list[Limitation]
    attribution: Attribution | None
    """Where a step's time goes, by the blocks that the program names; `null` where it names none."""
    critical_path: CriticalPath | None
    """`null` without work of a device."""
    kernels: Kernels | None
    """The kernels that take most time, where compute bounds the run or Nsight Compute measured them."""
    rank: RankedAs | None
    """Which process of a job this is; `null` where neither the trace nor its name tells."""
    stages: Stages | None
    """The stages of a pipeline; `null` where none are given and none named."""

    _records = {"attribution": Attribution, "contention": Contention, "copies": CopyGroup, "cpu_copies": CpuCopies, "critical_path": CriticalPath, "devices": DeviceFacts, "findings": Finding, "idle": IdleCause, "kernels": Kernels, "launches": Launches, "limitations": Limitation, "machine": MachineFacts, "overlap": Overlaps, "rank": RankedAs, "source": SourceFacts, "stages": Stages, "synchronizations": SyncTotal, "throughput": Throughput, "time": Times, "verdict": Verdict, "window": WindowFacts}


class Spread(Record):
    """One figure over the ranks that have it."""

    figure: str
    unit: str
    ranks: int
    """Ranks that have it."""
    min: float
    p10: float
    p50: float
    p90: float
    max: float
    min_rank: str
    """Whose they are."""
    max_rank: str
    apart: list[Apart]
    """Ranks far from the rest, the farthest first."""

    _records = {"apart": Apart}


class SharedFinding(Record):
    """A finding and the ranks that have it."""

    id: str
    title: str
    ranks: int
    saves_ms_per_step: Saving
    """Of the median rank that has it."""
    note: str | None
    """What the ranks together show that none of them does alone."""

    _records = {"saves_ms_per_step": Saving}


class RankCopies(Record):
    """Copies that go the same way between the same kinds of memory."""

    kind: str
    """`H2D pageable`."""
    direction: Literal['h2d', 'd2h', 'h2h', 'unknown', 'd2d', 'p2p']
    src: Literal['device', 'managed', 'pageable', 'pinned', 'unknown']
    dst: Literal['device', 'managed', 'pageable', 'pinned', 'unknown']
    count: float
    bytes: float
    ms: float
    exposed_ms: float
    gbps: float | None
    """All bytes over the time at which at least one of the copies ran; `null` where bytes are not recorded."""


class RankFinding(Record):
    id: str
    title: str
    saves_ms_per_step: Saving

    _records = {"saves_ms_per_step": Saving}


class RankGpu(Record):
    device: int
    """As its process counts them."""
    link: str
    peak_gbps: float
    name: str | None


class RankKernels(Record):
    count: float
    median_us: float


class StepSketch(Record):
    """Counts of lengths by bin."""

    bins: dict[str, int]
    """Bin n holds lengths from 1.02ⁿ ms up to the next."""


class RankSteps(Record):
    count: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    min_ms: float
    max_ms: float
    lengths: StepSketch
    """The lengths of all steps, of more than a thousand the first."""

    _records = {"lengths": StepSketch}


class IdlePart(Record):
    cause: Literal['copy', 'launch', 'synchronization', 'input', 'turnaround', 'unexplained']
    ms: float


class Parts(Record):
    """Where the device's time goes. These parts never overlap and sum to `span_ms`: `compute_ms`,
    `exposed_comm_ms`, `exposed_bus_copy_ms`, `exposed_peer_copy_ms`, `device_copy_ms`, `unplaced_copy_ms`,
    `exposed_memset_ms`, `idle_ms`."""

    span_ms: float
    """From the first work of the device to the last."""
    compute_ms: float
    exposed_comm_ms: float
    """Communication with no compute kernel running."""
    exposed_copy_ms: float
    """Copies on any route with no kernel running."""
    exposed_bus_copy_ms: float
    """Of these, copies over the link between host and device."""
    exposed_peer_copy_ms: float
    """Of these, copies from one GPU to another while no bus copy runs."""
    device_copy_ms: float
    """Of these, copies within the device while no other copy runs."""
    unplaced_copy_ms: float
    """Of these, copies of which the trace does not record where they go, while no other copy runs."""
    exposed_memset_ms: float
    """Memsets with no kernel and no copy running."""
    idle_ms: float
    idle: list[IdlePart]
    """`idle_ms` by cause."""
    comm_ms: float
    """All communication."""
    copy_ms: float
    """All copies."""

    _records = {"idle": IdlePart}


class RankSummary(Answer):
    """One rank. Times are milliseconds a step (or round, or trace: see `unit`), of several devices the mean."""

    schema: str
    path: str
    complete: bool
    """Whether all of the file could be read."""
    events: int
    gpus: list[RankGpu]
    """GPUs it worked on."""
    gpus_listed: int
    """GPUs that its trace lists, used or not."""
    verdict: Verdict
    unit: Literal['step', 'round', 'trace']
    time: Parts
    copies: list[RankCopies]
    kernels: RankKernels
    findings: list[RankFinding]
    limitations: int
    """How many things its diagnosis says that it cannot tell."""
    comm_compute_pct_of_comm: float | None
    """Share of communication that compute ran beside, in percent; `null` without communication."""
    host: str | None
    """The machine it ran on, where the file's name or the user tells."""
    rank: RankedAs | None
    """`null` where neither the trace nor its name tells."""
    steps: RankSteps | None
    """`null` where no steps are found."""

    _records = {"copies": RankCopies, "findings": RankFinding, "gpus": RankGpu, "kernels": RankKernels, "rank": RankedAs, "steps": RankSteps, "time": Parts, "verdict": Verdict}


class FleetSteps(Record):
    """Lengths of the steps of all ranks, each to a percent."""

    count: int
    p50_ms: float
    p90_ms: float
    p99_ms: float


class FleetDifference(Record):
    """A part of its time that is longer than the median rank's."""

    part: str
    ms: float
    median_ms: float
    because: list[str]
    """Why, as far as its figures tell."""


class Straggler(Record):
    """A rank with clearly more time of its own than the others."""

    rank: str
    path: str
    own_ms: float
    """Time outside of communication, a step."""
    median_own_ms: float
    excess_ms: float
    statement: str
    """The answer in a few sentences."""
    differences: list[FleetDifference]
    """What explains most of it first."""
    findings_of_its_own: list[str]
    """Findings that it has and most ranks do not."""
    others_wait_ms: float | None
    """What the others wait for it, a step; `null` where nothing shows that they do."""

    _records = {"differences": FleetDifference}


class Unread(Record):
    """A file that could not be read."""

    path: str
    why: str
    rank: int | None
    """By its name."""


class SharedUplink(Record):
    """A hop that several ranks' GPUs have on their way to the host."""

    address: str
    """The PCI address of the port below it."""
    ranks: list[str]
    gbps: float
    """What it carries each way."""
    demands: list[Demand]
    """By direction; those without copies are left out."""
    statement: str
    host: str | None

    _records = {"demands": Demand}


class VerdictCount(Record):
    bound: Literal['transfer', 'communication', 'compute', 'launch', 'sync', 'input', 'mixed', 'unknown']
    ranks: int


class FleetAnswer(Answer):
    schema: str
    statement: str
    """The answer in a sentence."""
    unit: Literal['step', 'round', 'trace']
    """What times are for; ranks with another unit are in no figure."""
    verdicts: list[VerdictCount]
    """Most ranks first."""
    figures: list[Spread]
    """Each figure over the ranks."""
    stragglers: list[Straggler]
    """The worst first."""
    uplinks: list[SharedUplink]
    """Ways to the host that ranks share, where the topology is given."""
    findings: list[SharedFinding]
    """What to change, by how many ranks it is found on."""
    unread: list[Unread]
    limitations: list[str]
    ranks: list[RankSummary]
    others: list[RankSummary]
    """Summaries among them that are no ranks of this run, or twice; they are in no figure."""
    evidence: str | None
    """How it is known that these are ranks of one run; `null` where it is not."""
    not_one_run: str | None
    """Why they cannot be ranks of one run; then none is measured against another. `null` where they can."""
    steps: FleetSteps | None
    """The steps of all ranks together; `null` where none are marked."""
    world_size: int | None
    """Ranks of the job, where a trace tells."""

    _records = {"figures": Spread, "findings": SharedFinding, "others": RankSummary, "ranks": RankSummary, "steps": FleetSteps, "stragglers": Straggler, "unread": Unread, "uplinks": SharedUplink, "verdicts": VerdictCount}


class RecordedLink(Record):
    """A PCIe link as the driver told it during the run. The generation is the highest that was seen: links save
    power when nothing crosses them."""

    generation: int
    lanes: int
    most_generation: int
    """What GPU and slot could have."""
    most_lanes: int


class Gpu(Record):
    """One device as `deviceProperties` lists it. All of the machine's devices are listed, used or not."""

    id: int
    name: str
    compute_capability: list[Any] | None
    link: RecordedLink | None
    """Its PCIe link during the run, where the file tells."""
    memory: int | None
    multiprocessors: int | None

    _records = {"link": RecordedLink}


class KindTotal(Record):
    """How many events of a kind, and the sum of their durations (overlaps count twice)."""

    kind: Literal['kernel', 'copy', 'memset', 'operator', 'annotation', 'gpu_annotation', 'python_frame', 'runtime_call', 'driver_call', 'synchronization', 'event_record', 'page_fault', 'profiler_overhead', 'profiler_span', 'other']
    count: int
    total_ns: int


class Missing(Record):
    """One thing the trace does not have."""

    id: Literal['lost', 'events', 'gpu_activity', 'gpu_tail', 'runtime_calls', 'correlation', 'operators', 'copy_bytes', 'copy_direction', 'memory_kind', 'gpu_names', 'gpu_of_process', 'graph_nodes', 'graph_work', 'page_faults', 'shapes', 'stacks', 'memory', 'synchronizations', 'steps', 'steps_by_period', 'early_work', 'outliers_left_out', 'warm_up', 'link_assumed', 'link_state', 'unlike_gpus', 'link_wrong', 'no_kernels', 'managed_in_kernels', 'profiler_cost', 'one_rank', 'lost_rows', 'no_end', 'cpu_only', 'asynchronous', 'undecided', 'no_shapes', 'stages', 'blocks']
    what: str
    """What is not there, and why, as far as that can be told."""
    prevents: str
    """Which answers that rules out."""
    remedy: str
    """How to have it next time."""


class Thread(Record):
    id: str
    events: int
    name: str | None


class Process(Record):
    id: str
    threads: list[Thread]
    name: str | None

    _records = {"threads": Thread}


class Recorded(Record):
    """What the profiler was made to record, as seen in the events themselves."""

    gpu_activity: bool
    operators: bool
    runtime_calls: bool
    shapes: bool
    stacks: bool
    memory: bool
    synchronizations: bool
    collective_sizes: bool


class Scenario(Record):
    """Some changes, made in order."""

    apply: list[str]
    step_ms: float
    low_ms: float
    high_ms: float
    gain_ms: float
    """Milliseconds a step less than now."""
    extra_bytes: int
    """Device memory that it takes beyond what the run takes now."""
    power: float
    """What matrix kernels lose because the device rests less, as a multiple of their time."""
    applies: bool
    """Whether the trace has anything that the changes could change."""
    effort: str
    """What has to be written."""
    precondition: str
    """What has to be so."""


class Span(Record):
    """A stretch of time, from the first start to the last end."""

    start_ns: int
    length_ns: int


class StepPattern(Record):
    """Annotations of one name, where digits stand for any number."""

    pattern: str
    """`ProfilerStep#*`, `layer*`, `step`."""
    count: int
    p50_ns: int
    total_ns: int
    is_profiler_step: bool
    """Written by `torch.profiler` itself at each `step()`."""


class Survey(Answer):
    """Everything `busbound survey` tells of one trace."""

    schema: str
    headline: str
    """The answer in one sentence."""
    source: SourceFacts
    versions: dict[str, str]
    settings: dict[str, bool]
    gpus: list[Gpu]
    """Every GPU of the machine, used in this trace or not."""
    kinds: list[KindTotal]
    devices: list[Device]
    copies: list[CopyClass]
    processes: list[Process]
    steps: list[StepPattern]
    recorded: Recorded
    missing: list[Missing]
    not_kept: dict[str, int]
    unknown_categories: dict[str, int]
    repairs: dict[str, int]
    profiler_messages: list[str]
    gpu_span: Span | None
    rank: RankedAs | None
    span: Span | None

    _records = {"copies": CopyClass, "devices": Device, "gpu_span": Span, "gpus": Gpu, "kinds": KindTotal, "missing": Missing, "processes": Process, "rank": RankedAs, "recorded": Recorded, "source": SourceFacts, "span": Span, "steps": StepPattern}


class WhatIf(Answer):
    """What a run takes, and what it would take."""

    schema: str
    path: str
    statement: str
    """The answer in a sentence."""
    baseline_ms: float
    """Milliseconds of the middle step as measured, from one step's end to the next one's."""
    unit: Literal['step', 'round', 'trace']
    """What the milliseconds are of."""
    replay_error: float
    """How far the unchanged replay is from the trace, as a share."""
    recorded_waits: int
    """Waits between streams and threads: named by the trace, and told by the times alone."""
    inferred_waits: int
    unexplained: float
    """Share of the time in which the device waited for something that the trace does not tell."""
    link: str
    knows_power: bool
    """Whether the machine's profile says what the power limit does."""
    scenarios: list[Scenario]
    """In the order asked for, or the best first."""
    notes: list[str]
    """What the answer rests on and cannot know."""

    _records = {"scenarios": Scenario}
