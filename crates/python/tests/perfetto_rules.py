"""The rules of Perfetto's importer for Chrome's JSON, as its sources state them (src/trace_processor/importers/json).

A model that says which event is an error, and where each slice, name and arrow ends up. web/test/perfetto.test.mjs asks the
real one, which counts them.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal


@dataclass
class Slice:
    ts: int
    dur: int
    name: str
    category: str


@dataclass
class Track:
    slices: list = field(default_factory=list)
    #: Slices that are still open, and those that ended since the last one began.
    stack: list = field(default_factory=list)
    name: str | None = None


def nanoseconds(value):
    """A time in the file, in microseconds; None if the importer cannot read it."""
    try:
        return int(Decimal(str(value)) * 1000)
    except ArithmeticError:
        return None


class Import:
    """A file as the importer sees it."""

    def __init__(self, path):
        #: What the importer counts as errors.
        self.errors = Counter()
        #: By process and thread.
        self.tracks = {}
        self.processes = {}
        #: By process and counter: times and values.
        self.counters = {}
        #: From slice to slice.
        self.flows = []
        self._begun = {}
        with open(path, "rb") as file:
            document = json.loads(file.read(), parse_float=Decimal)
        assert document["displayTimeUnit"] in ("ms", "ns")
        for event in self._in_order(document["traceEvents"]):
            self._take(event)

    def _in_order(self, events):
        """By time; of slices that begin together the longest first, so that it contains the others."""
        timed = []
        for number, event in enumerate(events):
            ts = nanoseconds(event.get("ts"))
            if ts is None:
                # Only metadata may have no time.
                if event.get("ph") != "M":
                    self.errors["json_tokenizer_failure"] += 1
                    continue
                ts = 0
            dur = nanoseconds(event.get("dur", 0)) if event.get("ph") == "X" else None
            timed.append(((ts, dur is None, -(dur or 0), number), ts, dur, event))
        timed.sort(key=lambda one: one[0])
        for _, ts, dur, event in timed:
            yield event | {"ts": ts, "dur": dur}

    def _take(self, event):
        for name in ("pid", "tid"):
            number = event.get(name, 0)
            # Others are read as another number.
            if not isinstance(number, int) or not 0 <= number < 1 << 32:
                self.errors["json_parser_failure"] += 1
        track = self.tracks.setdefault((event.get("pid", 0), event.get("tid", event.get("pid", 0))), Track())
        phase = event["ph"]
        if phase == "X":
            self._slice(track, event)
        elif phase == "C":
            self._counter(event)
        elif phase in "sf":
            self._flow(track, event)
        elif phase == "M":
            if event["name"] == "process_name":
                self.processes[event["pid"]] = event["args"]["name"]
            elif event["name"] == "thread_name":
                track.name = event["args"]["name"]
        else:
            self.errors[f"phase {phase}"] += 1

    def _slice(self, track, event):
        if event["dur"] is None or event["dur"] < 0:
            self.errors["slice_negative_duration"] += 1
            return
        new = Slice(event["ts"], event["dur"], event["name"], event.get("cat", ""))
        while track.stack:
            last = track.stack[-1]
            end = last.ts + last.dur
            if end < new.ts or (end == new.ts and (last.dur or new.dur)):
                track.stack.pop()
                continue
            if new.ts < end < new.ts + new.dur:
                self.errors[f"slice_drop_overlapping_complete_event {new.category}"] += 1
                return
            break
        track.stack.append(new)
        track.slices.append(new)

    def _counter(self, event):
        if not isinstance(event.get("args"), dict):
            self.errors["json_parser_failure"] += 1
            return
        for name, value in event["args"].items():
            if not isinstance(value, (int, Decimal)):
                self.errors["json_parser_failure"] += 1
                continue
            self.counters.setdefault((event["pid"], f"{event['name']} {name}"), []).append((event["ts"], float(value)))

    def _flow(self, track, event):
        if not isinstance(event.get("id"), int):
            self.errors["flow_invalid_id"] += 1
        elif not track.stack:
            self.errors["flow_no_enclosing_slice"] += 1
        elif event["ph"] == "s":
            if event["id"] in self._begun:
                self.errors["flow_duplicate_id"] += 1
            self._begun[event["id"]] = (track.stack[-1], event["ts"])
        elif event.get("bp") != "e":
            self.errors["flow ends at the next slice"] += 1
        elif event["id"] not in self._begun:
            self.errors["flow_end_without_start"] += 1
        else:
            self.flows.append((*self._begun[event["id"]], track.stack[-1], event["ts"]))
