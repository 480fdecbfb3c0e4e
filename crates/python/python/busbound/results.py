"""Result types: every member of the JSON is an attribute of the same name.

Written by generate.py from the JSON schemas in docs/.
"""

from __future__ import annotations

from ._record import Answer, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal


class RankClock(Record):
    rank: str
    offset_ms: float
    """What its clock shows more than the reference, at its first common collective."""
    drift_ppm: float
    """How much faster its clock runs, in parts per million."""
    error_us: float
    """Nine of ten collectives end within this time of where the aligned clock puts them."""
    collectives: int
    """Collectives that it was aligned by."""


class Alignment(Record):
    """The clocks of the ranks, relative to one of them."""

    reference: str
    """The rank whose clock the others are compared with."""
    error_us: float
    """The largest error of an aligned rank."""
    ranks: list[RankClock]
    not_aligned: list[str]
    """Ranks that have too few collectives in common with the others, or whose collectives contradict each other."""
    statement: str
    """The answer in a sentence."""

    _records = {"ranks": RankClock}


class AppliedFix(Record):
    """One fix, made after those before it."""

    finding: Literal['pageable_copies', 'pageable_d2h', 'non_blocking_pageable', 'serialized_copies', 'late_prefetch', 'bandwidth_deficit', 'float_input', 'link_saturated', 'zero_copy', 'copy_calls', 'copied_back', 'round_trip', 'page_faults', 'sync_in_loop', 'input_wait', 'launch_bound', 'cpu_optimizer', 'host_gather', 'cpu_casts', 'cpu_operators', 'framework_hooks', 'python_time', 'allocation_in_loop', 'pinning_in_loop', 'exposed_communication', 'shm_transport', 'collective_waiting', 'slow_collective', 'small_collectives', 'copy_collective_contention', 'unneeded_offload', 'unused_offload', 'pinned_rounding', 'slow_link', 'narrow_link', 'wrong_numa_node', 'managed_thrashing', 'managed_faults', 'device_copies', 'fp32_matmul', 'unfused_attention', 'copy_race', 'profiler_distortion', 'power_limited']
    """The finding that it fixes. A fix that pays only after those before it has no finding in the list yet."""
    apply: list[str]
    """As `busbound whatif --apply` takes them."""
    together_with: list[Literal['pageable_copies', 'pageable_d2h', 'non_blocking_pageable', 'serialized_copies', 'late_prefetch', 'bandwidth_deficit', 'float_input', 'link_saturated', 'zero_copy', 'copy_calls', 'copied_back', 'round_trip', 'page_faults', 'sync_in_loop', 'input_wait', 'launch_bound', 'cpu_optimizer', 'host_gather', 'cpu_casts', 'cpu_operators', 'framework_hooks', 'python_time', 'allocation_in_loop', 'pinning_in_loop', 'exposed_communication', 'shm_transport', 'collective_waiting', 'slow_collective', 'small_collectives', 'copy_collective_contention', 'unneeded_offload', 'unused_offload', 'pinned_rounding', 'slow_link', 'narrow_link', 'wrong_numa_node', 'managed_thrashing', 'managed_faults', 'device_copies', 'fp32_matmul', 'unfused_attention', 'copy_race', 'profiler_distortion', 'power_limited']]
    """Other findings that the same changes fix: the gain is of all of them together."""
    before_ms: float
    """Milliseconds per step before and after."""
    after_ms: float


class Meantime(Record):
    part: Literal['compute', 'copies', 'input', 'idle']
    ms: float
    median_ms: float
    """On the median of the other ranks."""


class LateRank(Record):
    rank: str
    last_in: int
    """Compared collectives in which it arrives last."""
    delay_ms: float
    """From the second-latest arrival to its own, per step: what the job gains if only this rank is on time."""
    meantime: list[Meantime]
    """What it did longer than the median of the other ranks since the previous collective, per step, most first."""

    _records = {"meantime": Meantime}


class RankArrival(Record):
    """One rank's arrival at a collective."""

    rank: str
    after_ms: float
    """Since the first arrival."""


class CollectiveArrival(Record):
    """One collective."""

    at_ms: float
    """Since the first recorded collective."""
    first: str
    last: str
    spread_ms: float
    """From the first arrival to the last."""
    delay_ms: float
    """From the second-latest arrival to the last."""
    ranks: int
    """Ranks of its process group whose traces are known."""
    order: list[RankArrival]
    """In the order of their arrival; of many ranks, the first and the last."""

    _records = {"order": RankArrival}


class Arrivals(Record):
    """The order in which ranks arrive at collectives, by aligned clocks."""

    collectives: int
    """Collectives compared: a sample of a few hundred."""
    decided: int
    """In how many of them the last arrival is later than the others by more than the clocks' error."""
    late: list[LateRank]
    """Ranks that arrive last, longest wait first; at most eight."""
    longest: list[CollectiveArrival]
    """The collectives with the longest waits; at most sixteen."""
    statement: str
    """The answer in a few sentences."""

    _records = {"late": LateRank, "longest": CollectiveArrival}


class AtOnce(Record):
    """The time in which two or more ranks use an uplink at once."""

    what: Literal['h2d_copies', 'd2h_copies', 'copies_and_collectives']
    compared_ms: float
    """The time that the lanes of all ranks cover."""
    ms: float
    """By the clocks as they are aligned."""
    low_ms: float
    """If the clocks are off by their error, at least this much …"""
    high_ms: float
    """… and at most this much."""
    any_ms: float
    """The time in which at least one of the ranks copies."""
    decided: bool
    """Whether the clocks are good enough to say it."""


class BlockTime(Record):
    name: str
    depth: int
    """0 for the outermost."""
    count: float
    """How often it runs per step."""
    host_ms: float
    """From its start to its end on the host."""
    gpu_ms: float
    """GPU work launched in it, by correlation and over all streams: the sum of the durations."""
    compute_ms: float
    communication_ms: float
    copy_ms: float
    """Copies over the bus."""
    copy_bytes: float
    exposed_ms: float
    """Bus copies not overlapped with any kernel, and communication not overlapped with compute."""
    share: float
    """Share of the step in which work of this block ran on the device, 0 to 1. Blocks can overlap, so shares need
    not sum to 1."""


class Attribution(Record):
    """Time by block, in milliseconds per step."""

    asked: bool
    """Whether the user chose the blocks."""
    blocks: list[BlockTime]
    """In tree order: each block before the blocks within it. Work launched in a block also counts for the blocks
    around it."""
    outside: BlockTime
    """GPU work launched outside of all blocks. RunGroup with the outermost blocks, it is all GPU work."""
    synchronized: str | None
    """Set if blocks end in a device synchronization: then these figures show where time goes, but not the
    throughput without the synchronizations."""

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
    """The longer mean step divided by the shorter one, at least 1."""
    before_ms: float
    after_ms: float
    largest_part: PartChange | None
    """The part of the step that changed most in the same direction; `null` without a clear difference."""
    spread_ms: float | None
    """How far a step typically is from the median of its run (median absolute deviation; the larger one of both
    runs). `null` if a run has fewer than two steps."""

    _records = {"largest_part": PartChange}


class CollectiveGroup(Record):
    """Collectives of one operation with the same message, within one process group."""

    op: Literal['all_reduce', 'all_gather', 'reduce_scatter', 'all_to_all', 'broadcast', 'reduce', 'gather', 'scatter', 'send_recv', 'barrier', 'other']
    count: int
    ms: float
    """Sum of their durations."""
    exposed_ms: float
    """Of that, time in which no compute kernel ran."""
    fastest_ms: float
    median_ms: float
    algbw_gbps: float | None
    """Bytes over the time of the fastest, which is at least the transfer."""
    busbw_gbps: float | None
    """The same times nccl-tests' factor for the operation and the number of ranks; `null` for a single rank."""
    bytes: int | None
    """Bytes of one message, as nccl-tests counts them: of the largest buffer on any rank; `null` if not recorded.
    The rates and the waiting are then `null`, too."""
    dtype: str | None
    exposed_waiting_ms: float | None
    """Of that, time in which no compute kernel ran."""
    group: str | None
    """The process group's description if it has one, else its name."""
    link: str | None
    """The link between these GPUs, if they are known to be in one machine."""
    measured_busbw_gbps: float | None
    """Bus bandwidth of the all-reduce that `busbound bench` measured with as many ranks, at the nearest size."""
    ranks: int | None
    """Ranks in the process group."""
    share_of_link: float | None
    """Bus bandwidth over the peak of that link."""
    waiting_ms: float | None
    """What they take longer than the fastest; `null` for fewer than three."""


class CollectiveTimes(Record):
    """Collectives of one rank, in time order; all lists have the same length. Times are nanoseconds on its own
    clock."""

    per_step: float
    """Collectives per step that all ranks have to arrive at."""
    keys: list[int]
    """What identifies the collective on all ranks: process group, number, operation and size, hashed."""
    group_sizes: list[int]
    """Ranks in its process group."""
    starts_ns: list[int]
    durations_ns: list[int]
    compute_ns: list[int]
    """What the device did between the previous collective and this one: compute. Without a device, operators on the
    host."""
    copy_ns: list[int]
    """Exposed copies."""
    input_ns: list[int]
    """Idle while the host waited for input."""
    idle_ns: list[int]
    """Idle for any other reason. Without a device, everything outside of operators and input."""


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


class Series(Record):
    """Runs that differ only in the label."""

    name: str
    """`memory=pinned`."""
    runs: list[int]
    """The positions of its runs, in the order of their values."""
    statement: str
    """The answer in a sentence."""
    grew_faster: list[Growth]
    """Parts of the step that grew more than the label, most added time first."""

    _records = {"grew_faster": Growth}


class Sweep(Record):
    """How the figures follow the label."""

    key: str
    values: list[float]
    throughput: list[float]
    """Label units per second: samples per second if the label is the batch size."""
    step_ms: list[float]
    """Milliseconds of a step."""
    busy_share: list[float | None]
    """Share of the time in which the GPU ran anything; `null` without GPU events."""
    exposed_copy_share: list[float | None]
    """Share of the time in which only copies ran; `null` without GPU events."""
    grew_faster: list[Growth]
    """Parts of the step that grew more than the label, most added time first. Empty if there are several series."""
    series: list[Series]
    """The runs by what else they differ in; empty if that is nothing."""

    _records = {"grew_faster": Growth, "series": Series}


class Comparison(Answer):
    """Two runs, or a sweep over a label."""

    schema: str
    statement: str
    runs: list[ComparedRun]
    figures: list[Figure]
    appeared: list[Literal['pageable_copies', 'pageable_d2h', 'non_blocking_pageable', 'serialized_copies', 'late_prefetch', 'bandwidth_deficit', 'float_input', 'link_saturated', 'zero_copy', 'copy_calls', 'copied_back', 'round_trip', 'page_faults', 'sync_in_loop', 'input_wait', 'launch_bound', 'cpu_optimizer', 'host_gather', 'cpu_casts', 'cpu_operators', 'framework_hooks', 'python_time', 'allocation_in_loop', 'pinning_in_loop', 'exposed_communication', 'shm_transport', 'collective_waiting', 'slow_collective', 'small_collectives', 'copy_collective_contention', 'unneeded_offload', 'unused_offload', 'pinned_rounding', 'slow_link', 'narrow_link', 'wrong_numa_node', 'managed_thrashing', 'managed_faults', 'device_copies', 'fp32_matmul', 'unfused_attention', 'copy_race', 'profiler_distortion', 'power_limited']]
    """Findings of the last run that the first run does not have."""
    gone: list[Literal['pageable_copies', 'pageable_d2h', 'non_blocking_pageable', 'serialized_copies', 'late_prefetch', 'bandwidth_deficit', 'float_input', 'link_saturated', 'zero_copy', 'copy_calls', 'copied_back', 'round_trip', 'page_faults', 'sync_in_loop', 'input_wait', 'launch_bound', 'cpu_optimizer', 'host_gather', 'cpu_casts', 'cpu_operators', 'framework_hooks', 'python_time', 'allocation_in_loop', 'pinning_in_loop', 'exposed_communication', 'shm_transport', 'collective_waiting', 'slow_collective', 'small_collectives', 'copy_collective_contention', 'unneeded_offload', 'unused_offload', 'pinned_rounding', 'slow_link', 'narrow_link', 'wrong_numa_node', 'managed_thrashing', 'managed_faults', 'device_copies', 'fp32_matmul', 'unfused_attention', 'copy_race', 'profiler_distortion', 'power_limited']]
    """Findings of the first run that the last run does not have."""
    stayed: list[Literal['pageable_copies', 'pageable_d2h', 'non_blocking_pageable', 'serialized_copies', 'late_prefetch', 'bandwidth_deficit', 'float_input', 'link_saturated', 'zero_copy', 'copy_calls', 'copied_back', 'round_trip', 'page_faults', 'sync_in_loop', 'input_wait', 'launch_bound', 'cpu_optimizer', 'host_gather', 'cpu_casts', 'cpu_operators', 'framework_hooks', 'python_time', 'allocation_in_loop', 'pinning_in_loop', 'exposed_communication', 'shm_transport', 'collective_waiting', 'slow_collective', 'small_collectives', 'copy_collective_contention', 'unneeded_offload', 'unused_offload', 'pinned_rounding', 'slow_link', 'narrow_link', 'wrong_numa_node', 'managed_thrashing', 'managed_faults', 'device_copies', 'fp32_matmul', 'unfused_attention', 'copy_race', 'profiler_distortion', 'power_limited']]
    environment: list[str]
    """What differs in the environment of the runs, as far as their traces have it."""
    limitations: list[str]
    change: Change | None
    """How the step of the last run differs from the first; `null` if the runs cannot be compared."""
    stages: StageChange | None
    """How the stages of a pipeline changed; `null` unless the first and the last run have the same stages."""
    sweep: Sweep | None

    _records = {"change": Change, "figures": Figure, "runs": ComparedRun, "stages": StageChange, "sweep": Sweep}


class GraphBreak(Record):
    """A place where compiled code ends."""

    reason: str
    count: int
    """How often it is in the log."""
    hint: str | None
    """What PyTorch recommends, if it does."""
    place: str | None
    """`model.py:102`, with the path as in the log; `null` if the log does not say."""


class Recompiled(Record):
    """A function that was compiled again."""

    function: str
    place: str
    reason: str
    """The guard that failed, as it was printed the first time."""
    count: int


class LoggedCompiles(Record):
    """What a log of torch.compile says about the rank or process that the trace is of."""

    breaks: list[GraphBreak]
    """The most frequent ones of the whole log, at most 10."""
    recompiled: list[Recompiled]
    """The most frequent ones of the whole log, at most 10."""
    graph_breaks: int | None
    """Distinct places where a graph breaks; `null` if the log does not show that breaks are logged."""
    recompilations: int | None
    """`null` if the log does not show that recompilations are logged."""

    _records = {"breaks": GraphBreak, "recompiled": Recompiled}


class Compiled(Record):
    """What the trace shows of compiled code. All zero if there is none."""

    regions: int
    """Entries into compiled regions."""
    frames: int
    """Distinct frames among them. If only one function was compiled, more than one frame means a graph break."""
    resumed: int
    """Frames that resume after a graph break; known only if the trace has stacks. Then the break is certain."""
    recompiled: int
    """Versions of a frame beyond its first: recompilations, usually for another shape."""
    compiling_ms: float
    """Time spent compiling within the trace."""
    breaks: int | None
    """Graph breaks; `null` if unknown: several frames and no Python stacks."""
    log: LoggedCompiles | None
    """What a log of torch.compile says about the run; `null` if none was given."""
    statement: str | None
    """What that means; `null` if there is nothing to report."""

    _records = {"log": LoggedCompiles}


class Contention(Record):
    """The same work alone and overlapped."""

    what: str
    """`h2d copies of 16 to 100 MB`, or a collective's name."""
    other: str
    """What it overlapped."""
    count_alone: int
    count_overlapping: int
    slower_pct: float
    """How much longer it took while overlapped, in percent."""
    low_pct: float
    """95% confidence interval of `slower_pct`."""
    high_pct: float


class NearCopies(Record):
    copies: int
    bytes: int
    gap_ms: float | None
    """Median time between copy and collective; `null` without copies."""


class CopiesAround(Record):
    """Copies of 1 MiB or more before and after collectives of one operation and size."""

    op: Literal['all_reduce', 'all_gather', 'reduce_scatter', 'all_to_all', 'broadcast', 'reduce', 'gather', 'scatter', 'send_recv', 'barrier', 'other']
    count: int
    before: NearCopies
    """H2D copies that end at most 10 ms before such a collective and before no other."""
    after: NearCopies
    """D2H copies that begin at most 10 ms after such a collective and after no other."""
    bytes: int | None
    """Bytes of one message; `null` if not recorded."""

    _records = {"after": NearCopies, "before": NearCopies}


class CopyClass(Record):
    """Copies of one direction between the same kinds of memory."""

    direction: Literal['h2d', 'd2h', 'h2h', 'unknown', 'd2d', 'p2p']
    src: Literal['device', 'managed', 'pageable', 'pinned', 'unknown']
    dst: Literal['device', 'managed', 'pageable', 'pinned', 'unknown']
    count: int
    bytes: int
    """Bytes of the copies that record them."""
    without_bytes: int
    total_ns: int


class Rates(Record):
    weighted: float
    """All bytes over the time in which at least one of the copies ran."""
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
    """What the link reaches for copies of these sizes; only for copies of 64 KiB or more that cross the link."""
    to_bytes: int | None
    """`null` for the last, which has no upper end."""


class CopyStream(Record):
    device: int
    stream: int
    count: int
    bytes: int
    busy_ms: float
    kernels_on_stream: int
    """Kernels on the same stream: these copies can never overlap them."""


class CopyGroup(Record):
    """Copies of one direction between the same kinds of memory."""

    direction: Literal['h2d', 'd2h', 'h2h', 'unknown', 'd2d', 'p2p']
    src: Literal['device', 'managed', 'pageable', 'pinned', 'unknown']
    dst: Literal['device', 'managed', 'pageable', 'pinned', 'unknown']
    count: int
    bytes: int
    without_bytes: int
    """Copies whose bytes are not recorded; no rate includes them."""
    busy_ms: float
    """Time in which at least one of them ran."""
    total_ms: float
    """Sum of their durations."""
    exposed_ms: float
    """Time in which they ran and no kernel did."""
    blocking: Blocking
    """Host time inside the copy call, if the call waited for the copy."""
    waited_after: Blocking
    """Host time in a synchronization that directly followed the call."""
    histogram: list[HistogramBin]
    sizes: list[SizeClass]
    streams: list[CopyStream]
    gbps: Rates | None
    of_expected: float | None
    """Mean rate of copies of 64 KiB or more, over what the link reaches for their sizes with pinned memory."""
    utilization: float | None
    """Mean rate over the link's peak; only for copies that cross the link."""

    _records = {"blocking": Blocking, "gbps": Rates, "histogram": HistogramBin, "sizes": SizeClass, "streams": CopyStream, "waited_after": Blocking}


class CopyPlace(Record):
    """Copies of one part of the program."""

    place: str
    """The innermost annotation or Python function, or the operator that called."""
    count: int
    bytes: int
    host_ms: float


class Cost(Record):
    """What a fix costs."""

    effort: Literal['one_line', 'few_lines', 'setting', 'restructuring', 'machine']
    risk: str
    """What must hold; otherwise the fix gains less, or is wrong."""
    gpu_bytes: int | None
    """GPU memory that the fix needs in addition, as the replay counts it. `null` if it needs none."""
    host_bytes: int | None
    """The host memory that the process may use; `null` if that is not recorded, or the fix pins none."""
    pinned_bytes: int | None
    """Host memory that the fix pins, at most: all that a step copies. The operating system cannot use it for
    anything else. `null` if it pins none."""


class CpuCollective(Record):
    """Collectives of one name, as the host issued them."""

    name: str
    count: int
    host_ms: float
    """Host time inside these operators. What they took on the GPU is not visible."""
    copies_before: int
    """Copies whose next collective on the same thread is one of these, within 10 ms: for FSDP with CPU offload, the
    copy of the shard before its all-gather."""
    copied_bytes: int
    gap_ms: float | None
    """Median time from the end of such a copy to the collective."""


class HostTimes(Record):
    """Host time of one operator, in microseconds."""

    p10_us: float
    p50_us: float
    p90_us: float


class CpuCopies(Record):
    """Copy operators of one class."""

    class_: Literal['undecided', 'bus_transfer', 'gpu_internal', 'asynchronous_launch']
    count: int
    bytes: int
    host_ms: float
    sizes: list[SizeClass]
    histogram: list[HistogramBin]
    """By rate; only for transfers over the bus."""
    places: list[CopyPlace]
    """The parts of the program that copy, most host time first."""
    each: HostTimes | None
    """Host time of each copy: for asynchronous ones, what a launch costs."""
    gbps: float | None
    """Bytes over operator time; only for transfers over the bus."""
    rates: Rates | None
    """The same for each copy."""

    _records = {"each": HostTimes, "histogram": HistogramBin, "places": CopyPlace, "rates": Rates, "sizes": SizeClass}


class PathShare(Record):
    class_: Literal['compute', 'communication', 'memset', 'copy', 'staging', 'launch', 'host', 'input', 'synchronization', 'contended', 'kernel_gap', 'unexplained']
    ms: float
    share: float


class PathEdges(Record):
    """How the segments are connected, over all steps walked. Stream order and launches are certain."""

    stream_order: int
    launch: int
    recorded_waits: int
    """Waits of streams and of the host that the trace recorded."""
    inferred_waits: int
    """Waits inferred from timing."""


class LongSegment(Record):
    class_: Literal['compute', 'communication', 'memset', 'copy', 'staging', 'launch', 'host', 'input', 'synchronization', 'contended', 'kernel_gap', 'unexplained']
    name: str
    start_ms: float
    """From the start of the step."""
    ms: float


class CriticalPath(Record):
    steps: int
    """Steps walked; shares cover all of them."""
    step_ms: float
    """Their time, and how much of it the path covers."""
    path_ms: float
    classes: list[PathShare]
    """Time of each class per step, most first, and its share of the path."""
    longest: list[LongSegment]
    """The ten longest segments of the step of median length."""
    pieces: int
    """Number of segments on that step's path."""
    edges: PathEdges

    _records = {"classes": PathShare, "edges": PathEdges, "longest": LongSegment}


class Demand(Record):
    """The total demand of the ranks on an uplink, in one direction."""

    direction: Literal['h2d', 'd2h', 'h2h', 'unknown', 'd2d', 'p2p']
    at_once_gbps: float
    """Sum of the rates that they reached: the demand if all copy at the same time."""
    mean_gbps: float
    """Bytes per step over the length of a step."""


class Stream(Record):
    id: int
    """−1 for events of the whole device."""
    kernels: int
    copies: int
    memsets: int
    synchronizations: int
    work_ns: int


class Device(Record):
    id: int
    streams: list[Stream]
    name: str | None
    """From the list of GPUs; `None` if the trace has no list."""

    _records = {"streams": Stream}


class Overlaps(Record):
    """How long two kinds of work overlapped."""

    comm_compute_ms: float
    copy_compute_ms: float
    copy_comm_ms: float
    host_copy_compute_ms: float
    host_copy_comm_ms: float
    memset_compute_ms: float
    memset_copy_ms: float
    memset_comm_ms: float
    comm_compute_pct_of_comm: float | None
    """Percentage of communication overlapped with compute; `null` without communication."""


class Times(Record):
    """Times in milliseconds: unions per device, summed over devices."""

    span_ms: float
    """From the first to the last work."""
    analyzed_ms: float
    """All that is analyzed: also what the host does in a step before the first and after the last work. The sum of
    the exposed parts and idle time."""
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
    """Of these, copies whose direction the trace does not record, while no other copy runs."""
    exposed_comm_ms: float
    """Communication while no compute kernel runs."""


class DeviceFacts(Record):
    device: int
    time: Times
    overlap: Overlaps

    _records = {"overlap": Overlaps, "time": Times}


class ResourceBound(Record):
    """One resource, and what the steps would take without it."""

    resource: Literal['h2d', 'd2h', 'collectives', 'compute', 'peer', 'launch', 'host', 'input', 'sync']
    busy_ms: float
    """Milliseconds per step in which the resource is used."""
    exposed_ms: float
    """Milliseconds per step in which nothing hides it."""
    step_if_10pct_faster_ms: float
    step_if_free_ms: float


class Environment(Record):
    """What a trace says about the environment of its process."""

    cpus: int | None
    """CPUs that the process may run on; `null` if not recorded."""
    gpus: list[str] | None
    """GPUs that the process sees, by name."""
    hardware: dict[str, str] | None
    """Of the GPUs that the process used: `PCIe link`, `clock limit`, `power limit`, as far as recorded."""
    memory: int | None
    """Bytes of host memory that the process may use; `null` if not recorded."""
    variables: dict[str, str] | None
    """Variables that change how PyTorch, CUDA and NCCL run. `null` if not recorded, which is not the same as
    unset."""
    versions: dict[str, str] | None
    """By the name used in the trace: `torch`, `python`, `cuda_runtime_version`."""


class Saving(Record):
    """Milliseconds that a fix saves per step, or per trace if the trace has no steps."""

    low: float
    high: float


class WithoutCode(Record):
    """What a run gains without a change of the program."""

    command: str
    candidate: list[str]
    """The what-if changes that it makes."""
    step_ms: float
    low_ms: float
    high_ms: float


class Finding(Record):
    id: Literal['pageable_copies', 'pageable_d2h', 'non_blocking_pageable', 'serialized_copies', 'late_prefetch', 'bandwidth_deficit', 'float_input', 'link_saturated', 'zero_copy', 'copy_calls', 'copied_back', 'round_trip', 'page_faults', 'sync_in_loop', 'input_wait', 'launch_bound', 'cpu_optimizer', 'host_gather', 'cpu_casts', 'cpu_operators', 'framework_hooks', 'python_time', 'allocation_in_loop', 'pinning_in_loop', 'exposed_communication', 'shm_transport', 'collective_waiting', 'slow_collective', 'small_collectives', 'copy_collective_contention', 'unneeded_offload', 'unused_offload', 'pinned_rounding', 'slow_link', 'narrow_link', 'wrong_numa_node', 'managed_thrashing', 'managed_faults', 'device_copies', 'fp32_matmul', 'unfused_attention', 'copy_race', 'profiler_distortion', 'power_limited']
    severity: Literal['low', 'medium', 'high']
    title: str
    seen: str
    """The evidence, in one or two sentences."""
    evidence: dict[str, Any]
    """The figures behind the evidence."""
    precondition: str
    """When the fix is worth it."""
    saves_ms_per_step: Saving
    saving_known: bool
    """Whether it is known what the fix saves; if not, `saves_ms_per_step` is zero."""
    saving_basis: str
    """How the saving was computed."""
    candidate: list[str]
    """The what-if changes that are its fix, as `busbound whatif --apply` takes them; empty where there are none."""
    fix: str
    cost: Cost
    """What the fix costs."""
    docs: str
    fix_code: str | None
    """The fix in PyTorch, if it is code."""
    without_code: WithoutCode | None
    """What the run gains without a change of the program; `null` where that is not possible, or another finding
    says it."""

    _records = {"cost": Cost, "saves_ms_per_step": Saving, "without_code": WithoutCode}


class HostWork(Record):
    """Host time that a device waited for, by what the host did."""

    what: Literal['launching', 'copy_call', 'synchronizing', 'input', 'optimizer', 'gather', 'cast', 'random', 'allocation', 'operator', 'python', 'waiting', 'managed']
    operators: list[str]
    """The operators, calls, annotations or Python frames that took this time, most first; `not recorded` if the
    trace has none."""
    ms: float
    """Milliseconds per step."""


class IdlePlace(Record):
    place: str
    count: int
    ms: float


class IdleCause(Record):
    """Idle time of one cause."""

    cause: Literal['copy', 'launch', 'synchronization', 'input', 'host', 'queued', 'kernel_gap', 'unexplained']
    count: int
    """Gaps of the GPU's work that it is a cause of."""
    ms: float
    longest_ms: float
    before_copies_ms: float
    """The part of `ms` in gaps that end with a copy over the bus rather than with a kernel."""
    places: list[IdlePlace]
    """Where the program was when the longest of these gaps ended, most time first."""
    longest_place: str | None
    """Where the program was when the longest gap ended."""

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
    """Where a kernel is relative to the roofline of its GPU."""

    bound: Literal['memory', 'compute', 'latency'] | None
    """`null` if the export has no percentages of peak."""
    bytes: float | None
    compute_pct: float | None
    duration_us: float | None
    intensity: float | None
    """Operations per byte."""
    memory_gbps: float | None
    memory_pct: float | None
    of_precision_roof: float | None
    """Share of the roof of that precision, 0 to 1."""
    of_roof: float | None
    """Share of the roof that it reaches, 0 to 1: of the memory or the compute roof, whichever is nearer."""
    operations: float | None
    """Operations of all precisions."""
    precision: str | None
    """The precision with the most operations."""
    tflops: float | None
    """Rate of the operations in that precision."""


class KernelTime(Record):
    name: str
    runs_per_step: float
    ms_per_step: float
    share: float
    """Share of the time of all kernels, 0 to 1."""
    median_us: float
    geometry: Geometry | None
    """Launch geometry of most of its runs; `null` if not recorded."""
    roofline: Roofline | None
    """What Nsight Compute measured."""

    _records = {"geometry": Geometry, "roofline": Roofline}


class Kernels(Record):
    top: list[KernelTime]
    """Most time first."""
    different: int
    """Number of distinct kernels."""
    ms_per_step: float
    """Sum of the durations of all kernels, per step."""
    measured: Matched | None
    """How many kernels of an Nsight Compute export the trace contains; `null` without an export."""

    _records = {"measured": Matched, "top": KernelTime}


class LaunchingOperator(Record):
    operator: str
    share: float
    """Share of the launches, 0 to 1; from a sample if the trace has many."""


class LaunchQueue(Record):
    """Number of kernels, copies and memsets launched but not started, over all streams of all devices."""

    mean_depth: float
    """Weighted by time."""
    max_depth: int
    empty_share: float
    """Share of the time with an empty queue, 0 to 1."""
    over_time: list[float]
    """Mean depth in equal slices of the time, in order."""


class Launches(Record):
    kernels: int
    kernels_per_second: float
    """Over the time from the first to the last work of each device."""
    median_kernel_us: float
    calls: int
    """Host calls that launch."""
    median_call_us: float
    """Host time of a launch call, median."""
    long_calls: int
    """Calls longer than 1 ms: kernels loaded on first use, or a full launch queue."""
    long_calls_ms: float
    graph_launches: int
    calls_ms_per_step: float
    """Host time inside launch calls, per step."""
    compiled: Compiled
    operators: list[LaunchingOperator]
    """Operators that launched the most kernels."""
    queue: LaunchQueue | None
    """Work launched but not started; `null` if launches cannot be matched to GPU work."""

    _records = {"compiled": Compiled, "operators": LaunchingOperator, "queue": LaunchQueue}


class LayerWait(Record):
    device: int
    name: str
    waited_in: int
    """Steps in which it waited."""
    median_ms: float
    """Of all steps: 0 if it waited in less than half of them."""
    longest_ms: float
    copies: float
    """Copies that it needs, per step."""
    copy_bytes: float


class LayerWaits(Record):
    """Waits of layers for their copies to the device."""

    named_by: Literal['annotation', 'module', 'position']
    steps: int
    """Steps that the waits are from."""
    ms_per_step: float
    """Waits of all layers, also of those that are not listed: the mean of the steps."""
    count: int
    """Layers that waited at all."""
    layers: list[LayerWait]
    """In the order in which they run; if there are very many, the first."""

    _records = {"layers": LayerWait}


class Limitation(Record):
    id: Literal['lost', 'end_of_file', 'events', 'gpu_activity', 'gpu_tail', 'runtime_calls', 'correlation', 'operators', 'copy_bytes', 'copy_direction', 'memory_kind', 'gpu_names', 'gpu_of_process', 'graph_nodes', 'kernel_records', 'call_records', 'clocks', 'stream_order', 'copy_rates', 'duplicates', 'graph_work', 'page_faults', 'shapes', 'stacks', 'memory', 'synchronizations', 'steps', 'sampled', 'steps_by_period', 'coverage', 'early_work', 'long_step_left_out', 'outliers_left_out', 'warm_up', 'start_up', 'link_assumed', 'confidential', 'shared_link', 'link_state', 'unlike_gpus', 'link_wrong', 'no_kernels', 'managed_in_kernels', 'host_memory', 'profiler_cost', 'one_rank', 'flight_recorder', 'lost_rows', 'no_end', 'cpu_only', 'asynchronous', 'undecided', 'no_shapes', 'stages', 'blocks']
    text: str


class LinkFacts(Record):
    """A GPU's link to the host."""

    name: str
    peak_gbps: float
    """Line peak in one direction."""
    source: Literal['measured', 'given', 'catalog', 'assumed', 'recorded']
    nvlink_gbps: float | None
    """GB/s to other GPUs over dedicated links; 0 if the GPU has none, `None` if unknown."""
    reached_d2h_gbps: float | None
    """The same for D2H copies, where the link does not carry as much in that direction."""
    reached_gbps: float | None
    """What large pinned H2D copies reach, if that is known and not derived from the peak."""


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


class FileActivity(Record):
    """What the process read from files."""

    disk_bytes: int
    """Bytes that came from a disk, also for mapped files. Network file systems may not count."""
    disk_ms: float
    """How long a disk was read, and the rate meanwhile; `null` if none was."""
    read_bytes: int
    """Bytes that calls like `read` returned, from disk or from the page cache."""
    major_faults: int
    """Page faults that waited for a disk: of mapped files."""
    minor_faults: int
    user_ms: float
    """CPU time of all threads: in the program, and in the kernel (copying from the page cache, page faults)."""
    system_ms: float
    disk_gbps: float | None


class Loading(Record):
    """Where the time of loading goes. The parts add up to the phase."""

    bound: Literal['deserialization', 'operators', 'link', 'copies', 'disk', 'page_cache', 'page_faults', 'cpu_work', 'unknown']
    copy_ms: float
    """Copies to the device run; copies of mapped files wait for the disk meanwhile."""
    staging_ms: float
    """The host is inside a copy call, and no copy runs."""
    deserialization_ms: float
    """Python functions that read and deserialize files."""
    operator_ms: float
    """Other operators on the CPU: casts, initial values."""
    unrecorded_ms: float
    """No call, operator or function is recorded: reading from disk, page cache, or Python. `files` tells them
    apart."""
    fix: str
    files: FileActivity | None
    """What was read from files meanwhile; `null` unless `busbound record` recorded it."""
    h2d_gbps: float | None
    """While copies run; `null` without copies."""
    link_gbps: float | None
    """The link's peak; `null` if unknown."""

    _records = {"files": FileActivity}


class RunPhase(Record):
    """Loading, evaluation, checkpoints, and what the program marks as a phase. None of it is in the figures of the
    steps."""

    kind: Literal['evaluation', 'loading', 'checkpoint', 'other']
    name: str
    """The range, function or mark that it was found by."""
    found: Literal['marked', 'named', 'inferred']
    count: int
    """How often it occurs."""
    ms: float
    """On the host, all together."""
    share: float
    """Of the time of the trace, 0 to 1."""
    h2d_bytes: int
    """Bytes that it copied to the device and back."""
    d2h_bytes: int
    statement: str
    loading: Loading | None
    """What bounds it; only for loading."""

    _records = {"loading": Loading}


class Prize(Record):
    """What the run would take with its findings fixed, by replaying it."""

    step_ms: float
    """Milliseconds per step now, without the profiler where that is known."""
    fixed_ms: float
    """Milliseconds per step with all of `fixes` made, and the range it is expected in."""
    low_ms: float
    high_ms: float
    speedup: float
    """`step_ms` as a multiple of `fixed_ms`."""
    fixes: list[AppliedFix]
    """In the order in which they are made."""

    _records = {"fixes": AppliedFix}


class RankedAs(Record):
    """The rank of this process, and where it was found."""

    rank: int
    origin: Literal['distributed_info', 'file_name']
    backend: str | None
    world_size: int | None


class LostPart(Record):
    what: Literal['ends_inside_event', 'ends_between_events', 'ends_before_events', 'ends_after_events', 'damaged_event', 'stray_bytes', 'damaged_metadata', 'too_long', 'not_an_event', 'gzip_truncated', 'gzip_damaged', 'gzip_checksum', 'gzip_trailing_bytes', 'memory_bound', 'damaged_chunk', 'ends_inside_chunk', 'ends_without_mark', 'dropped_record', 'read_error', 'database_cut', 'rows_in_journal', 'damaged_table', 'unusable_row', 'stray_time', 'not_collected']
    text: str
    where: int
    """Byte offset of the first occurrence; 0 if unknown."""
    in_compressed_bytes: bool
    """Whether the offset is in the compressed file rather than in the JSON."""
    count: int
    bytes: int
    table: str | None
    """The table it happened in, for files that have tables."""


class SourceFacts(Record):
    """The file and how much of it could be read."""

    path: str
    format: str
    complete: bool
    """Whether all of it was read, no records are missing, and none contradict each other."""
    file_bytes: int
    compressed: bool
    """Whether the file is compressed; `json_bytes` then counts uncompressed bytes, `file_bytes` compressed ones."""
    json_bytes: int
    objects: int
    """Objects in the event list, kept or skipped."""
    events: int
    lost: list[LostPart]

    _records = {"lost": LostPart}


class Item(Record):
    stages_ms: list[float]
    hidden_ms: float | None
    period_ms: float | None
    """`null` for the first item."""


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
    """Sum of the stages minus the period."""
    overlap_score: float
    """`hidden_ms` over the sum of all stages except the longest: 1 if the period equals the longest stage, 0 if the
    stages are serialized."""
    shape: Literal['between', 'longest', 'sum', 'more']
    on_device: bool
    """Whether the times are from the GPU; without GPU events they are from the host."""
    statement: str
    each: list[Item]
    """The items; only the first thousand if there are more."""

    _records = {"each": Item, "stages": StageTime}


class SyncTotal(Record):
    reason: Literal['blocking_copy', 'value_read', 'small_upload', 'explicit']
    count: int
    host_ms: float
    within_step: int
    """Synchronizations that are not the last of their step: the host cannot queue the rest of the step before
    them."""
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


class Headroom(Record):
    """What a step would take if what bounds it took no time."""

    resource: Literal['transfer', 'communication', 'compute', 'launch', 'host', 'sync', 'input', 'mixed', 'unknown']
    """What is free."""
    step_if_free_ms: float
    next_bound: Literal['transfer', 'communication', 'compute', 'launch', 'host', 'sync', 'input', 'mixed', 'unknown'] | None
    """What bounds the step then; `null` if nothing stands out."""


class Verdict(Record):
    bound: Literal['transfer', 'communication', 'compute', 'launch', 'host', 'sync', 'input', 'mixed', 'unknown']
    share: float
    """Share of a step that goes away if what bounds it is free, 0 to 1."""
    statement: str
    because: str | None
    """The statement without the name of the verdict, as a sentence of its own."""
    between: list[Literal['transfer', 'communication', 'compute', 'launch', 'host', 'sync', 'input', 'mixed', 'unknown']] | None
    """The two that a mixed verdict consists of, the larger one first; empty for every other verdict."""
    headroom: Headroom | None
    """What the step would take then; `null` if that is not known."""
    withheld: Literal['lost', 'end_of_file', 'events', 'gpu_activity', 'gpu_tail', 'runtime_calls', 'correlation', 'operators', 'copy_bytes', 'copy_direction', 'memory_kind', 'gpu_names', 'gpu_of_process', 'graph_nodes', 'kernel_records', 'call_records', 'clocks', 'stream_order', 'copy_rates', 'duplicates', 'graph_work', 'page_faults', 'shapes', 'stacks', 'memory', 'synchronizations', 'steps', 'sampled', 'steps_by_period', 'coverage', 'early_work', 'long_step_left_out', 'outliers_left_out', 'warm_up', 'start_up', 'link_assumed', 'confidential', 'shared_link', 'link_state', 'unlike_gpus', 'link_wrong', 'no_kernels', 'managed_in_kernels', 'host_memory', 'profiler_cost', 'one_rank', 'flight_recorder', 'lost_rows', 'no_end', 'cpu_only', 'asynchronous', 'undecided', 'no_shapes', 'stages', 'blocks'] | None
    """The limitation because of which there is no verdict; `null` if there is one, or its cause is in the run."""

    _records = {"headroom": Headroom}


class Difference(Record):
    what: Literal['synchronization', 'input', 'copy', 'kernel', 'allocation', 'capture', 'compilation', 'creation', 'launch']
    ms: float
    median_ms: float
    count: int
    median_count: int
    bytes: int
    median_bytes: int


class OutlierStep(Record):
    """A step that took much longer than the others."""

    index: int
    """Index among all steps, from 0."""
    ms: float
    differences: list[Difference]
    """What it spent more time on than the median step, most first. The times may overlap."""
    statement: str

    _records = {"differences": Difference}


class Unprofiled(Record):
    """The step without the profiler, in milliseconds."""

    low: float
    mid: float
    high: float
    source: Literal['measured', 'given', 'model']


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
    """Warm-up steps at the beginning that no figure includes."""
    outliers_dropped: int
    """Steps after the warm-up that no figure includes, because outliers are among them."""
    each_ms: list[float]
    """The length of each step, in order; only the first thousand if there are more."""
    unprofiled_ms: Unprofiled | None
    """The mean step without the profiler; `null` if it hardly differs, or is not known."""

    _records = {"unprofiled_ms": Unprofiled}


class WindowFacts(Record):
    span_ms: float
    """From the first to the last work of any GPU."""
    outliers: list[OutlierStep]
    """Steps that took much longer than the others, and what they did differently; only the longest if there are
    many."""
    outlier_count: int
    step_count: float
    """The divisor for figures per step: the number of steps, plus a fraction for recorded work that was launched
    before the first step; 1 if there are no steps."""
    baseline_ms: float
    """Milliseconds of the step that `bounds`, `verdict.headroom` and `prize` start from: without the profiler where
    that is known."""
    steps: StepTimes | None
    """`null` if no steps are found; figures "per step" are then for the whole trace."""
    with_outliers: StepTimes | None
    """All steps after the warm-up, if `steps` leaves some of them out."""

    _records = {"outliers": OutlierStep, "steps": StepTimes, "with_outliers": StepTimes}


class Diagnosis(Answer):
    """The output of `busbound diagnose` for one trace. Renderers use nothing else."""

    schema: str
    source: SourceFacts
    machine: MachineFacts
    environment: Environment
    """Versions, variables, GPUs and CPUs of the process, as far as the trace has them."""
    window: WindowFacts
    phases: list[RunPhase]
    """Loading, evaluation, checkpoints and what the program marks as a phase, in time order. Steps in them are not
    part of the other figures, if enough others are left."""
    verdict: Verdict
    bounds: list[ResourceBound]
    """What the step would take if each resource were faster, or free; empty if the trace cannot say."""
    time: Times
    kernel_waits_ms: float
    """The part of `time.compute_ms` in which kernels wait for host memory: memory that they access over the bus, or
    pages of managed memory."""
    overlap: Overlaps
    devices: list[DeviceFacts]
    copies: list[CopyGroup]
    collectives: list[CollectiveGroup]
    """Communication between GPUs by operation, message and process group, most time first."""
    copies_around: list[CopiesAround]
    """Copies next to collectives, such as those of FSDP with CPU offload; empty if there are none."""
    cpu_copies: list[CpuCopies]
    """Copy operators of a trace without GPU events."""
    cpu_collectives: list[CpuCollective]
    """Collectives that the host issued in a trace without GPU events."""
    idle: list[IdleCause]
    host: list[HostWork]
    """Host work that the GPU waited for, most first."""
    contention: list[Contention]
    throughput: list[Throughput]
    """What the run processes per second; empty if it is not given how much a step processes."""
    launches: Launches
    synchronizations: list[SyncTotal]
    findings: list[Finding]
    limitations: list[Limitation]
    attribution: Attribution | None
    """Where a step's time goes, by the blocks that the program annotates; `null` without annotations."""
    critical_path: CriticalPath | None
    """`null` without GPU work."""
    kernels: Kernels | None
    """The kernels that take the most time, if the run is compute-bound or Nsight Compute measured them."""
    layer_waits: LayerWaits | None
    """Which layer waited how long for its copies; `null` without steps, or if fewer than two layers waited."""
    prize: Prize | None
    """What the run would take with its findings fixed; `null` if no fix can be replayed, or none gains."""
    rank: RankedAs | None
    """The rank of this process; `null` if neither the trace nor its file name has it."""
    stages: Stages | None
    """The stages of a pipeline; `null` if none are given and none annotated."""

    _records = {"attribution": Attribution, "bounds": ResourceBound, "collectives": CollectiveGroup, "contention": Contention, "copies": CopyGroup, "copies_around": CopiesAround, "cpu_collectives": CpuCollective, "cpu_copies": CpuCopies, "critical_path": CriticalPath, "devices": DeviceFacts, "environment": Environment, "findings": Finding, "host": HostWork, "idle": IdleCause, "kernels": Kernels, "launches": Launches, "layer_waits": LayerWaits, "limitations": Limitation, "machine": MachineFacts, "overlap": Overlaps, "phases": RunPhase, "prize": Prize, "rank": RankedAs, "source": SourceFacts, "stages": Stages, "synchronizations": SyncTotal, "throughput": Throughput, "time": Times, "verdict": Verdict, "window": WindowFacts}


class Outlier(Record):
    """An outlier: a rank whose figure is far from the median."""

    rank: str
    path: str
    value: float


class Spread(Record):
    """One figure across the ranks that have it."""

    figure: str
    unit: str
    ranks: int
    """Number of ranks that have it."""
    min: float
    p10: float
    p50: float
    p90: float
    max: float
    min_rank: str
    """The rank with the minimum."""
    max_rank: str
    """The rank with the maximum."""
    outliers: list[Outlier]
    """Outliers, farthest first."""

    _records = {"outliers": Outlier}


class SharedFinding(Record):
    """A finding, and how many ranks have it."""

    id: str
    title: str
    ranks: int
    saves_ms_per_step: Saving
    """Median over the ranks that have it."""
    note: str | None
    """What only the comparison of ranks shows."""

    _records = {"saves_ms_per_step": Saving}


class JobScenario(Record):
    """The step of the job without the delay of a rank."""

    rank: str
    now_ms: float
    """The step of the job now."""
    step_ms: float
    basis: Literal['arrivals', 'own_times']
    statement: str
    """The answer in a sentence."""
    cause: str | None
    """What of the rank's delay is removed; `null` for all of it."""


class RankCopies(Record):
    """Copies of one direction between the same kinds of memory."""

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
    """All bytes over the time in which at least one of the copies ran; `null` if bytes are not recorded."""


class RankFinding(Record):
    id: str
    title: str
    saves_ms_per_step: Saving

    _records = {"saves_ms_per_step": Saving}


class RankGpu(Record):
    device: int
    """The device number in its process."""
    link: str
    peak_gbps: float
    name: str | None


class RankKernels(Record):
    count: float
    median_us: float


class LaneTimes(Record):
    """Times of one kind, in order and apart from each other; both lists have the same length."""

    starts_ns: list[int]
    durations_ns: list[int]


class RankLanes(Record):
    """What one rank does at which times, on its own clock. Empty if its process uses several GPUs."""

    from_ns: int
    """The lists cover the time from here, in nanoseconds, …"""
    until_ns: int
    """… to here: the beginning of a long recording."""
    h2d: LaneTimes
    """Copies from host memory to the GPU."""
    d2h: LaneTimes
    """Copies from the GPU to host memory."""
    collectives: LaneTimes
    """Collectives on the GPU, or on the host if there are none."""
    collectives_on_host: bool
    """Whether these collectives run on the host: then they reach the GPU as copies."""
    compute: LaneTimes
    """Kernels without communication. Without a GPU, operators on the host."""

    _records = {"collectives": LaneTimes, "compute": LaneTimes, "d2h": LaneTimes, "h2d": LaneTimes}


class RankStage(Record):
    """One stage as far as this process runs it, to be joined with the stages of other ranks."""

    name: str
    items: int
    """Items that passed it."""
    each_ms: list[float]
    """The time of each item in this stage; only the first ones if there are many."""
    periods_ms: list[float]
    """From the end of one item in this stage to the end of the next, on the clock of its rank."""


class StepSketch(Record):
    """Counts of lengths by bin."""

    bins: dict[str, int]
    """Bin n counts lengths from 1.02ⁿ ms up to the next bin."""


class RankSteps(Record):
    count: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    min_ms: float
    max_ms: float
    lengths: StepSketch
    """The lengths of all steps; only the first thousand if there are more."""
    found: Literal['given', 'annotation', 'period'] | None
    """`null` in summaries of earlier releases."""

    _records = {"lengths": StepSketch}


class IdlePart(Record):
    cause: Literal['copy', 'launch', 'synchronization', 'input', 'host', 'queued', 'kernel_gap', 'unexplained']
    ms: float


class Parts(Record):
    """Where the device's time goes. These parts never overlap and sum to `span_ms`: `compute_ms`,
    `exposed_comm_ms`, `exposed_bus_copy_ms`, `exposed_peer_copy_ms`, `device_copy_ms`, `unplaced_copy_ms`,
    `exposed_memset_ms`, `idle_ms`."""

    span_ms: float
    """From the first work of the device to the last."""
    compute_ms: float
    kernel_wait_ms: float
    """Of it, kernels that wait for host memory; 0 in summaries of earlier releases."""
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
    """Of these, copies whose direction the trace does not record, while no other copy runs."""
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
    """One rank. Times are in milliseconds per step (or iteration, or trace: see `unit`), averaged over devices."""

    schema: str
    path: str
    complete: bool
    """Whether the whole file could be read."""
    events: int
    gpus: list[RankGpu]
    """GPUs it used."""
    gpus_listed: int
    """GPUs that its trace lists, used or not."""
    verdict: Verdict
    unit: Literal['step', 'iteration', 'trace']
    time: Parts
    copies: list[RankCopies]
    kernels: RankKernels
    findings: list[RankFinding]
    limitations: int
    """Number of limitations in its diagnosis."""
    collective_times: CollectiveTimes | None
    """Some of the collectives that all ranks have to arrive at, on its own clock."""
    comm_compute_pct_of_comm: float | None
    """Percentage of communication overlapped with compute; `null` without communication."""
    environment: Environment | None
    """Versions, variables, GPUs and CPUs of the process, as far as its trace has them."""
    every_ms: int | None
    """How long after it the next window of its process begins (`record --every`), in milliseconds; `null` if it is
    none of these."""
    host: str | None
    """The machine it ran on, if known from the file name or the user."""
    lanes: RankLanes | None
    """When it copied, exchanged data and computed in its first steps, on its own clock."""
    rank: RankedAs | None
    """`null` if neither the trace nor its file name has it."""
    recorded_ms: int | None
    """When it was recorded, in milliseconds since 1970; `null` if unknown."""
    stages: list[RankStage] | None
    """The stages of a pipeline that it runs."""
    steps: RankSteps | None
    """`null` if no steps are found."""

    _records = {"collective_times": CollectiveTimes, "copies": RankCopies, "environment": Environment, "findings": RankFinding, "gpus": RankGpu, "kernels": RankKernels, "lanes": RankLanes, "rank": RankedAs, "stages": RankStage, "steps": RankSteps, "time": Parts, "verdict": Verdict}


class PipelineStage(Record):
    name: str
    ranks: list[str]
    """The ranks that run it."""
    items: int
    """Items that it ran."""
    median_ms: float
    """Of its slowest rank, median over the items."""
    idle_ms: float
    """What it is idle per item: the period minus its own time."""


class Pipeline(Record):
    """A pipeline whose stages run on different ranks."""

    stages: list[PipelineStage]
    """In the order of their names."""
    items: int
    """Items that passed every stage, matched by their order."""
    period_ms: float
    """Median time from the end of one item to the end of the next."""
    hidden_ms: float
    """Sum of the stages minus the period."""
    overlap_score: float
    """`hidden_ms` over the sum of all stages except the longest: 1 if the period equals the longest stage, 0 if the
    stages are serialized."""
    shape: Literal['between', 'longest', 'sum', 'more']
    on_device: bool
    """Whether the times are from GPUs; without GPU events they are from the hosts."""
    statement: str
    """The answer in a sentence."""

    _records = {"stages": PipelineStage}


class FleetSteps(Record):
    """Lengths of the steps of all ranks, each accurate to 1%."""

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
    """Why, if its figures show it."""


class Straggler(Record):
    """A rank with much more time outside communication than the others."""

    rank: str
    path: str
    own_ms: float
    """Time outside communication, per step."""
    median_own_ms: float
    excess_ms: float
    statement: str
    """The answer in a few sentences."""
    differences: list[FleetDifference]
    """What explains the most comes first."""
    findings_of_its_own: list[str]
    """Findings that it has and most ranks do not."""
    others_wait_ms: float | None
    """How long the other ranks wait for it, per step; `null` if nothing shows that they do."""

    _records = {"differences": FleetDifference}


class Unread(Record):
    """A file that could not be read."""

    path: str
    why: str
    rank: int | None
    """The rank in the file name."""


class SharedUplink(Record):
    """A PCIe hop that the GPUs of several ranks share on the path to the host."""

    address: str
    """The PCI address of the downstream port."""
    ranks: list[str]
    gbps: float
    """Its bandwidth per direction."""
    demands: list[Demand]
    """By direction; directions without copies are left out."""
    at_once: list[AtOnce]
    """How long several ranks use it at the same time; empty if their clocks are not aligned."""
    statement: str
    host: str | None

    _records = {"at_once": AtOnce, "demands": Demand}


class VerdictCount(Record):
    bound: Literal['transfer', 'communication', 'compute', 'launch', 'host', 'sync', 'input', 'mixed', 'unknown']
    ranks: int


class FleetAnswer(Answer):
    schema: str
    statement: str
    """The answer in a sentence."""
    unit: Literal['step', 'iteration', 'trace']
    """What times are per; figures exclude ranks with another unit."""
    verdicts: list[VerdictCount]
    """Most ranks first."""
    figures: list[Spread]
    """The spread of each figure across ranks."""
    stragglers: list[Straggler]
    """Worst first."""
    job: list[JobScenario]
    """What a step of the job would take without the delay of a rank, largest gain first."""
    uplinks: list[SharedUplink]
    """PCIe uplinks that ranks share, if the topology is given."""
    findings: list[SharedFinding]
    """What to change: number of ranks times saving, largest first."""
    environment: list[str]
    """What differs in the environment of the ranks, as far as their traces have it."""
    unread: list[Unread]
    limitations: list[str]
    ranks: list[RankSummary]
    others: list[RankSummary]
    """Summaries that are not ranks of this run, or duplicates; no figure includes them."""
    alignment: Alignment | None
    """The clocks of the ranks; `null` if their collectives cannot be matched."""
    arrivals: Arrivals | None
    """Who arrives last at collectives; `null` without aligned clocks."""
    evidence: str | None
    """Why these are ranks of one run; `null` if unknown."""
    not_one_run: str | None
    """Why they cannot be ranks of one run; they are then not compared. `null` if they can."""
    pipeline: Pipeline | None
    """The pipeline whose stages run on different ranks; `null` if there is none."""
    steps: FleetSteps | None
    """The steps of all ranks; `null` if there are none."""
    world_size: int | None
    """Number of ranks in the job, if a trace records it."""

    _records = {"alignment": Alignment, "arrivals": Arrivals, "figures": Spread, "findings": SharedFinding, "job": JobScenario, "others": RankSummary, "pipeline": Pipeline, "ranks": RankSummary, "steps": FleetSteps, "stragglers": Straggler, "unread": Unread, "uplinks": SharedUplink, "verdicts": VerdictCount}


class GpuLimits(Record):
    """Settings of a GPU that may differ between machines of one kind."""

    clock_mhz: int | None
    """The highest clock of the multiprocessors."""
    power_watts: int | None


class RecordedLink(Record):
    """A PCIe link as reported by the driver during the run. The generation is the highest one seen: links save
    power while they are unused."""

    generation: int
    lanes: int
    most_generation: int
    """The max that GPU and slot support."""
    most_lanes: int


class Gpu(Record):
    """One device from `deviceProperties`. All devices of the machine are listed, used or not."""

    id: int
    name: str
    compute_capability: list[Any] | None
    limits: GpuLimits | None
    """What the driver keeps it within, if recorded."""
    link: RecordedLink | None
    """Its PCIe link during the run, if recorded."""
    memory: int | None
    multiprocessors: int | None

    _records = {"limits": GpuLimits, "link": RecordedLink}


class PartShift(Record):
    figure: str
    label: str
    before_ms: float
    after_ms: float


class HistoryChange(Record):
    """A change of the level of a figure."""

    job: str
    figure: str
    """`span_ms` is the step; others are parts of it that changed while the step did not."""
    ranks: list[str]
    before_unix_ms: int
    """Milliseconds since 1970 of the last recording before the change, and of the first one after it."""
    after_unix_ms: int
    before_ms: float
    """Medians of up to 24 recordings before and after; of the rank with the largest change."""
    after_ms: float
    low_ms: float
    """The difference, from low to high, with 95% confidence."""
    high_ms: float
    parts: list[PartShift]
    """The parts of the step that changed with it, largest first."""
    trace_before: str
    """The trace of the last recording before the change, and of the first one after it, as their summaries name
    them."""
    trace_after: str
    dumps: list[str]
    """Ring dumps written between the two recordings, by name."""
    compare: list[str] | None
    """The same two as files that are there now; `null` unless both were found."""

    _records = {"parts": PartShift}


class JobHistory(Record):
    job: str
    ranks: int
    recordings: int
    """Recordings that count, of all ranks."""
    from_unix_ms: int
    """Milliseconds since 1970 of the first recording."""
    to_unix_ms: int
    first_ms: float
    """The median step of the first and of the last recordings."""
    last_ms: float


class History(Answer):
    """The output of `busbound history`."""

    schema: str
    jobs: list[JobHistory]
    changes: list[HistoryChange]
    """In the order of time."""
    unread: list[Unread]
    limitations: list[str]
    """What was left out, and why."""

    _records = {"changes": HistoryChange, "jobs": JobHistory, "unread": Unread}


class KindTotal(Record):
    """The number of events of a kind, and the sum of their durations (overlaps count twice)."""

    kind: Literal['kernel', 'copy', 'memset', 'operator', 'annotation', 'gpu_annotation', 'python_frame', 'runtime_call', 'driver_call', 'synchronization', 'event_record', 'page_fault', 'profiler_overhead', 'profiler_span', 'other']
    count: int
    total_ns: int


class Missing(Record):
    """One thing missing from the trace."""

    id: Literal['lost', 'end_of_file', 'events', 'gpu_activity', 'gpu_tail', 'runtime_calls', 'correlation', 'operators', 'copy_bytes', 'copy_direction', 'memory_kind', 'gpu_names', 'gpu_of_process', 'graph_nodes', 'kernel_records', 'call_records', 'clocks', 'stream_order', 'copy_rates', 'duplicates', 'graph_work', 'page_faults', 'shapes', 'stacks', 'memory', 'synchronizations', 'steps', 'sampled', 'steps_by_period', 'coverage', 'early_work', 'long_step_left_out', 'outliers_left_out', 'warm_up', 'start_up', 'link_assumed', 'confidential', 'shared_link', 'link_state', 'unlike_gpus', 'link_wrong', 'no_kernels', 'managed_in_kernels', 'host_memory', 'profiler_cost', 'one_rank', 'flight_recorder', 'lost_rows', 'no_end', 'cpu_only', 'asynchronous', 'undecided', 'no_shapes', 'stages', 'blocks']
    what: str
    """What is missing, and why, if known."""
    prevents: str
    """What cannot be determined without it."""
    remedy: str
    """How to record it next time."""


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
    """What the profiler recorded, as seen in the events."""

    gpu_activity: bool
    operators: bool
    runtime_calls: bool
    shapes: bool
    stacks: bool
    memory: bool
    synchronizations: bool
    collective_sizes: bool


class Scenario(Record):
    """A set of changes, applied in order."""

    apply: list[str]
    step_ms: float
    low_ms: float
    high_ms: float
    gain_ms: float
    """Milliseconds saved per step."""
    extra_bytes: int
    """Additional device memory."""
    power: float
    """Slowdown of matrix kernels because the GPU is idle less and reaches its power limit, as a factor of their
    time."""
    applies: bool
    """Whether the trace contains anything that the changes affect."""
    range_from: Literal['recording', 'copies', 'host_work', 'overlap', 'power', 'replay']
    """What the range from `low_ms` to `high_ms` mostly comes from."""
    effort: str
    """What to implement."""
    precondition: str
    """What the prediction assumes."""


class Span(Record):
    """A time span, from the first start to the last end."""

    start_ns: int
    length_ns: int


class StepPattern(Record):
    """Annotations of one name pattern; `*` stands for any number."""

    pattern: str
    """`ProfilerStep#*`, `layer*`, `step`."""
    count: int
    p50_ns: int
    total_ns: int
    is_profiler_step: bool
    """Recorded by `torch.profiler` at each `step()`."""


class Survey(Answer):
    """The output of `busbound survey` for one trace."""

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
    flight_recorder: list[str]
    """What dumps of PyTorch's flight recorder say that were given beside the trace; empty without them."""
    gpu_span: Span | None
    rank: RankedAs | None
    span: Span | None

    _records = {"copies": CopyClass, "devices": Device, "gpu_span": Span, "gpus": Gpu, "kinds": KindTotal, "missing": Missing, "processes": Process, "rank": RankedAs, "recorded": Recorded, "source": SourceFacts, "span": Span, "steps": StepPattern}


class WhatIf(Answer):
    """How long a run takes, and how long it would take with changes."""

    schema: str
    path: str
    statement: str
    """The answer in a sentence."""
    baseline_ms: float
    """Milliseconds of the mean step, without the profiler where that is known."""
    recorded_ms: float
    """The same as recorded."""
    unit: Literal['step', 'iteration', 'trace']
    """What the times are per."""
    replay_error: float
    """Error of a replay without changes, relative to the trace."""
    recorded_waits: int
    """Waits between streams and threads that the trace recorded."""
    inferred_waits: int
    """Waits between streams and threads inferred from timing."""
    unexplained: float
    """Share of the time in which the GPU waited for something not visible in this trace."""
    link: str
    knows_power: bool
    """Whether the machine profile includes the effect of the power limit."""
    scenarios: list[Scenario]
    """In the requested order, or best first."""
    notes: list[str]
    """Assumptions and unknowns of the prediction."""
    rank: int | None
    """The rank that the changes are made on, if the times are of a step of the whole job; else `null`."""
    ranks: int | None
    """The ranks of the job that are replayed together; `null` if the times are of one trace."""

    _records = {"scenarios": Scenario}
