"""Traces of a job as torch.profiler writes them: every rank with its own clock, one rank late at every all-reduce.

    python made_job.py OUT RANKS
"""

import json
import os
import sys

STEPS, COLLECTIVES, TRANSFER_US = 8, 4, 2_000
#: The rank that copies longer than the others.
LATE = 5
LATE_COPY_US, COPY_US, COMPUTE_US = 50_000, 20_000, 30_000
#: A step of the job, and what one would take without the late rank.
STEP_MS, ON_TIME_MS = 88.0, 58.0


def clock(rank, at_us):
    """A time of the job on the clock of a rank: up to half a second apart, drifting by up to 100 ppm."""
    skew_us = (rank * 7_919) % 1_000_000 - 500_000
    drift = ((rank * 31) % 201 - 100) * 1e-6
    return 2_000_000 + skew_us + at_us * (1 + drift)


class Rank:
    def __init__(self, rank):
        self.rank, self.events, self.calls = rank, [], 0

    def add(self, category, name, thread, begin, end, **args):
        begin, end = round(clock(self.rank, begin), 3), round(clock(self.rank, end), 3)
        place = {"pid": 0 if "stream" in args else 1, "tid": thread}
        event = {"ph": "X", "cat": category, "name": name, **place, "ts": begin, "dur": round(end - begin, 3)}
        self.events.append({**event, "args": args} if args else event)

    def launch(self, call, at):
        self.calls += 1
        self.add("cuda_runtime", call, 1, at, at + 1, correlation=self.calls)
        return {"device": 0, "correlation": self.calls}

    def step(self, number, ranks):
        begin = number * STEP_MS * 1e3
        self.add("user_annotation", f"ProfilerStep#{number + 7}", 1, begin, begin + STEP_MS * 1e3 - 2)
        copied = begin + (LATE_COPY_US if self.rank == LATE else COPY_US)
        launched = self.launch("cudaMemcpyAsync", begin + 1)
        self.add("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 20, begin + 20, copied, stream=20, bytes=1_000_000_000, **launched)
        computed = copied + COMPUTE_US
        self.add("kernel", "gemm", 7, copied, computed, stream=7, **self.launch("cudaLaunchKernel", begin + 4))
        # They begin when the first rank arrives at the first one, and end on all ranks after the last one has arrived.
        at, last = computed, begin + LATE_COPY_US + COMPUTE_US
        for collective in range(COLLECTIVES):
            end = last + TRANSFER_US * (collective + 1) - (number * 1_000 + self.rank * 77 + collective) * 7_919 % 20
            message = {
                "Collective name": "allreduce", "In msg nelems": 2_000_000, "Out msg nelems": 2_000_000, "dtype": "Float",
                "Group size": ranks, "Process Group Name": "0", "Process Group Description": "default_pg",
                "Seq": number * COLLECTIVES + collective,
            }
            launched = self.launch("cudaLaunchKernel", begin + 10 + 3 * collective)
            self.add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 30, at, end, stream=30, **launched, **message)
            at = end


def write(folder, ranks):
    """One file per rank in the folder."""
    os.makedirs(folder, exist_ok=True)
    for number in range(ranks):
        rank = Rank(number)
        for step in range(STEPS):
            rank.step(step, ranks)
        content = {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "nccl", "rank": number, "world_size": ranks},
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
            "traceEvents": rank.events,
        }
        with open(os.path.join(folder, f"rank-{number}.json"), "w", encoding="utf-8") as file:
            json.dump(content, file)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]))
