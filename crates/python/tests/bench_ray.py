"""Is the answer for 1,000 ranks the same on Ray, and how long does it take? `cargo xtask bench --ray` runs this.

    python bench_ray.py [--ranks 1000] [--runs 3]

Prints rows of a Markdown table: reading, summarizing, merging, aligning and judging all traces with the command, and on a Ray cluster of
this machine's cores whose workers have started.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import ray

import busbound
import made_job


def processor_seconds():
    """Of this process and everything that it started, also what has ended."""
    me = psutil.Process()
    times = []
    for process in [me, *me.children(recursive=True)]:
        try:
            times.append(process.cpu_times())
        except psutil.NoSuchProcess:
            continue
    return sum(one.user + one.system + one.children_user + one.children_system for one in times)


def timed(run):
    began, used = time.perf_counter(), processor_seconds()
    answer = run()
    return time.perf_counter() - began, processor_seconds() - used, answer


def with_the_command(folder):
    command = [sys.executable, "-m", "busbound", "diagnose", folder, "--format", "json", "--quiet"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["fleet"]


def on_ray(folder):
    return json.loads(busbound.ray.diagnose(folder, progress=False).to_json())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory() as folder:
        made_job.write(os.path.join(folder, "job"), args.ranks)
        job = os.path.join(folder, "job")
        made_job.write(os.path.join(folder, "first"), 8)
        ray.init(include_dashboard=False, log_to_driver=False)
        on_ray(os.path.join(folder, "first"))
        seconds = {"command": [], "Ray": []}
        for _ in range(args.runs):
            *took, expected = timed(lambda: with_the_command(job))
            seconds["command"].append(took)
            *took, fleet = timed(lambda: on_ray(job))
            seconds["Ray"].append(took)
            assert fleet == expected, "Ray has another answer"
        cores = int(ray.cluster_resources()["CPU"])
        size = sum(path.stat().st_size for path in Path(job).iterdir()) / 1e6
        ray.shutdown()
    late = expected["arrivals"]["late"][0]
    gain = expected["job"][0]
    print(f"{args.ranks} traces, {size:.0f} MB in all, {cores} cores. The answers are equal, with the clocks of {len(expected['alignment']['ranks'])} ranks")
    print(f"aligned to within {expected['alignment']['error_us']:.0f} µs; {late['rank']} arrives {late['delay_ms']:.1f} ms late; \"{gain['statement']}\".\n")
    print("| | wall | CPU time |\n|---|---:|---:|")
    for name, of in (("`busbound diagnose` of the folder", "command"), ("`busbound.ray.diagnose`, workers started", "Ray")):
        walls, used = zip(*seconds[of], strict=True)
        print(f"| {name} | {statistics.median(walls):.2f} s ({min(walls):.2f} to {max(walls):.2f}) | {statistics.median(used):.1f} s |")


if __name__ == "__main__":
    main()
