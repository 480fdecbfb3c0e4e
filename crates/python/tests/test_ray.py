"""Ranks on a real cluster: two nodes on this machine, each with its own processes."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time
import zipfile

import pytest

import busbound
import made_job

ray = pytest.importorskip("ray")
fsspec = pytest.importorskip("fsspec")
from ray.cluster_utils import Cluster  # noqa: E402

RANKS = 6


@contextlib.contextmanager
def own_cluster():
    """Starts nodes with one core each and stops them afterwards."""
    # Notices dead nodes faster than Ray's defaults.
    config = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = Cluster()
        started = []

        def start(**more):
            head = {"_system_config": config, "include_dashboard": False} if not started else {}
            started.append(cluster.add_node(num_cpus=1, object_store_memory=80 << 20, **head, **more))
            cluster.wait_for_nodes()
            return cluster, started[-1]

        yield start
        cluster.shutdown()


@pytest.fixture(autouse=True)
def disconnect():
    yield
    ray.shutdown()


@pytest.fixture
def nodes():
    with own_cluster() as start:
        yield start


@pytest.fixture(scope="class")
def two_nodes():
    with own_cluster() as start:
        start()
        yield start()


@pytest.fixture
def ranks(fixtures, tmp_path):
    """A folder with twenty traces, enough for two levels of combining."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in range(20):
        shutil.copy(fixtures / "ranks" / f"rank-{rank % RANKS}.json", folder / f"run-{rank:02}.json")
    return folder


def merged_locally(paths):
    return busbound.merge([busbound.summarize(path) for path in paths])


class TestTwoNodes:
    """These leave the nodes as they are, so one cluster is enough for all of them."""

    def test_the_result_is_the_same_as_on_one_machine(self, two_nodes, fixtures, monkeypatch):
        cluster, _ = two_nodes
        folder = fixtures / "ranks"
        here = merged_locally(sorted(folder.iterdir()))
        fleet = busbound.ray.diagnose(folder / "rank-*.json", address=cluster.address, progress=False)
        assert fleet.to_json() == here.to_json()
        assert fleet.statement.startswith("6 ranks: 5 communication-bound, 1 transfer-bound")
        assert not ray.is_initialized()
        # Relative to the working directory here, not of the nodes; and each file given twice.
        monkeypatch.chdir(fixtures)
        twice = busbound.ray.diagnose(["ranks/rank-*.json", "./ranks"], address=cluster.address, progress=False)
        assert [os.path.basename(rank.path) for rank in twice.ranks] == [f"rank-{rank}.json" for rank in range(RANKS)]
        assert twice.statement == here.statement and twice.others == []
        # A directory, and an existing connection, which stays open.
        ray.init(cluster.address)
        assert busbound.ray.diagnose(str(folder), progress=False).to_json() == here.to_json()
        assert ray.is_initialized()
        with pytest.raises(busbound.BusboundError, match="already connected"):
            busbound.ray.diagnose(str(folder), address=cluster.address)
        with pytest.raises(busbound.BusboundError, match="abacus"):
            busbound.ray.diagnose(folder, machine="abacus")
        with pytest.raises(busbound.BusboundError, match="steps: "):
            busbound.ray.diagnose(folder, steps="(")
        with pytest.raises(busbound.BusboundError, match="absent.xml"):
            busbound.ray.diagnose(folder, topology=folder / "absent.xml")
        with pytest.raises(busbound.BusboundError, match="warmup"):
            busbound.ray.diagnose(folder, warmup=-1)
        with pytest.raises(busbound.BusboundError, match="no paths given"):
            busbound.ray.diagnose([], progress=False)
        narrower = busbound.ray.diagnose(folder, machine="pcie4x8", warmup=1, progress=False)
        assert {gpu.link for rank in narrower.ranks for gpu in rank.gpus} == {"PCIe 4 x8"}
        profile = fixtures / "machines" / "h200.json"
        measured = busbound.ray.diagnose(folder, machine=profile, progress=False)
        assert measured == busbound.merge(busbound.summarize(path, machine=profile) for path in folder.iterdir())

    def test_clocks_arrivals_and_what_the_job_gains_are_those_of_one_machine(self, two_nodes, tmp_path):
        """More ranks than one task combines, each with its own clock, and one that all others wait for."""
        cluster, _ = two_nodes
        folder = tmp_path / "job"
        made_job.write(folder, 40)
        fleet = json.loads(busbound.ray.diagnose(folder, address=cluster.address, progress=False).to_json())
        command = [sys.executable, "-m", "busbound", "diagnose", folder, "--format", "json", "--quiet"]
        here = subprocess.run(command, capture_output=True, check=True)
        assert fleet == json.loads(here.stdout)["fleet"]
        assert fleet == json.loads(merged_locally(sorted(folder.iterdir())).to_json())
        # It is not the same because it is empty.
        assert len(fleet["alignment"]["ranks"]) == 40 and fleet["alignment"]["error_us"] < 50
        assert [late["rank"] for late in fleet["arrivals"]["late"]] == [f"rank {made_job.LATE}"]
        assert [(gain["cause"], round(gain["now_ms"]), round(gain["step_ms"])) for gain in fleet["job"]] == [
            (None, made_job.STEP_MS, made_job.ON_TIME_MS), ("exposed copies", made_job.STEP_MS, made_job.ON_TIME_MS)
        ]

    def test_a_file_that_is_being_written_is_one_file(self, two_nodes, ranks):
        cluster, _ = two_nodes
        seen, is_over = [], threading.Event()

        def touch():
            while not is_over.wait(0.001):
                for path in ranks.iterdir():
                    os.utime(path)

        writer = threading.Thread(target=touch)
        writer.start()
        try:
            busbound.ray.diagnose(ranks, address=cluster.address, progress=seen.append)
        finally:
            is_over.set()
            writer.join()
        assert (seen[-1].done, seen[-1].total) == (20, 20)

    def test_bad_files_are_listed_and_the_others_are_read(self, two_nodes, ranks, tmp_path):
        cluster, _ = two_nodes
        (ranks / "rank-20.json").write_text("not a trace")
        (ranks / "rank-21.json").write_bytes(b"")
        # A broken link, a second name for a file, a name that is not valid text; and paths that do not exist.
        (ranks / "rank-22.json").symlink_to(ranks / "gone.json")
        (ranks / "latest.json").symlink_to(ranks / "run-00.json")
        invalid_name = os.fsencode(ranks) + b"/rank-23-\xff.json"
        with open(invalid_name, "wb"):
            pass
        seen = []
        absent = [ranks / "rank-77.json", tmp_path / "nowhere" / "rank*.json"]
        fleet = busbound.ray.diagnose([ranks, *absent], address=cluster.address, progress=seen.append)
        assert len(fleet.ranks) + len(fleet.others) == 20
        assert {os.path.basename(file.path) for file in fleet.unread} == {
            "rank-20.json", "rank-21.json", "rank-22.json", "rank-23-\ufffd.json", "rank-77.json", "rank*.json"
        }
        assert {file.rank for file in fleet.unread} == {20, 21, 22, 23, 77, None} and all(file.why for file in fleet.unread)
        last = seen[-1]
        assert (last.done, last.total, last.unread, last.again) == (23, 23, 3, 0)
        assert str(last) == "23 of 23 ranks on 2 nodes, 3 unread"
        with pytest.raises(busbound.BusboundError, match=r"none of 2 traces could be read; .*rank-20\.json"):
            busbound.ray.diagnose([ranks / "rank-20.json", ranks / "rank-21.json"], address=cluster.address, progress=False)
        with pytest.raises(busbound.BusboundError, match=r"no files match .*\(asked 2 nodes\)"):
            busbound.ray.diagnose(ranks / "absent-*.json", address=cluster.address, progress=False)

    def test_addresses_go_through_fsspec(self, two_nodes, fixtures, tmp_path):
        cluster, _ = two_nodes
        with zipfile.ZipFile(tmp_path / "ranks.zip", "w") as packed:
            for path in (fixtures / "ranks").iterdir():
                packed.write(path, f"run/{path.name}")
        archive = f"::file://{tmp_path}/ranks.zip"
        for address in [f"zip://run/rank-?.json{archive}", f"zip://run{archive}"]:
            fleet = busbound.ray.diagnose(address, address=cluster.address, progress=False)
            assert [rank.path for rank in fleet.ranks] == [f"zip://run/rank-{rank}.json{archive}" for rank in range(RANKS)]
            assert fleet.statement.startswith("6 ranks: 5 communication-bound, 1 transfer-bound")
        # Archives whose members have the same name; one is damaged and one does not exist.
        for rank in range(3):
            with zipfile.ZipFile(tmp_path / f"node{rank}.zip", "w") as packed:
                packed.write(fixtures / "ranks" / f"rank-{rank}.json", "trace.json")
        with zipfile.ZipFile(tmp_path / "bad.zip", "w") as packed:
            packed.writestr("trace.json", "not a trace")
        addresses = [f"zip://trace.json::file://{tmp_path}/{name}.zip" for name in ["node0", "node1", "node2", "bad", "absent"]]
        fleet = busbound.ray.diagnose([*addresses, addresses[0]], address=cluster.address, progress=False)
        assert [rank.path for rank in fleet.ranks] == addresses[:3]
        assert [file.path for file in fleet.unread] == [addresses[4], addresses[3]]
        assert all(file.path in file.why and "/busbound-" not in file.why for file in fleet.unread)
        # file:// addresses are looked up on the nodes, like paths.
        path = fixtures / "ranks" / "rank-0.json"
        fleet = busbound.ray.diagnose([f"file://{path}", path], address=cluster.address, progress=False)
        assert [rank.path for rank in fleet.ranks] == [str(path)]


class Held:
    """A pipe that holds back the end of a trace until it is released."""

    def __init__(self, path, trace):
        os.mkfifo(path)
        self.content = trace.read_bytes()
        self.is_read, self.is_gone, self.release = threading.Event(), threading.Event(), threading.Event()
        threading.Thread(target=self.serve, args=(path,), daemon=True).start()

    def serve(self, path):
        while True:
            # Blocks until there is a reader.
            with open(path, "wb", buffering=0) as pipe:
                pipe.write(self.content[:1000])
                self.is_read.set()
                reader = select.poll()
                reader.register(pipe, 0)
                while not self.release.wait(0.05) and not self.is_gone.is_set():
                    # A pipe reports an error when its reader is gone.
                    if reader.poll(0):
                        self.is_gone.set()
                if not reader.poll(0):
                    pipe.write(self.content[1000:])
            time.sleep(0.1)


def test_a_killed_node_loses_no_traces(two_nodes, ranks, fixtures):
    cluster, second = two_nodes
    # One for each core: both nodes are reading a trace.
    held = [Held(ranks / f"held-{k}.json", fixtures / "ranks" / f"rank-{k}.json") for k in range(2)]
    before, seen = [], []

    def kill():
        for one in held:
            assert one.is_read.wait(60)
        before.append(seen[-1].done if seen else 0)
        cluster.remove_node(second, allow_graceful=False)
        while not any(one.is_gone.is_set() for one in held):
            time.sleep(0.05)
        for one in held:
            one.release.set()

    killer = threading.Thread(target=kill)
    killer.start()
    fleet = busbound.ray.diagnose(ranks, address=cluster.address, progress=seen.append)
    killer.join()
    # The killed node was reading one of them; the other was read to its end.
    assert sum(one.is_gone.is_set() for one in held) == 1
    assert before[0] < len(seen) and seen[-1].again >= 1
    assert (seen[-1].done, seen[-1].unread) == (22, 0)
    assert fleet.unread == []
    paths = [rank.path for rank in fleet.ranks + fleet.others]
    assert sorted(paths) == sorted(map(str, ranks.iterdir()))


def test_traces_on_a_local_disk_are_read_on_that_node(nodes, fixtures, tmp_path):
    homes = [tmp_path / "first", tmp_path / "second"]
    for k, home in enumerate(homes):
        (home / "traces").mkdir(parents=True)
        for rank in range(3 * k, 3 * k + 3):
            shutil.copy(fixtures / "ranks" / f"rank-{rank}.json", home / "traces")
    for home in homes:
        cluster, last = nodes(env_vars={"HOME": str(home)})
    fleet = busbound.ray.diagnose("~/traces", address=cluster.address, progress=False)
    assert [rank.path for rank in fleet.ranks] == [str(homes[rank // 3] / "traces" / f"rank-{rank}.json") for rank in range(RANKS)]
    # Both nodes have local traces, so the host is known.
    assert all(rank.host for rank in fleet.ranks)
    assert fleet.statement == merged_locally(fixtures / "ranks" / f"rank-{k}.json" for k in range(RANKS)).statement

    # A node with local traces dies: they are listed as unread, and the others are analyzed.
    def kill(progress):
        if len(cluster.list_all_nodes()) == 2 and progress.done >= 1:
            cluster.remove_node(last, allow_graceful=False)

    for rank in range(100, 120):
        shutil.copy(fixtures / "ranks" / "rank-0.json", homes[1] / "traces" / f"rank-{rank}.json")
    fleet = busbound.ray.diagnose("~/traces", address=cluster.address, progress=kill, retries=1)
    read = {rank.path for rank in fleet.ranks + fleet.others}
    assert read >= set(map(str, (homes[0] / "traces").iterdir()))
    lost = {file.path.split(":", 1)[1] for file in fleet.unread}
    assert lost and read | lost == {str(path) for home in homes for path in (home / "traces").iterdir()}
    assert all(str(homes[1]) in path for path in lost)
    for file in fleet.unread:
        why = file.why.removeprefix(f"{file.path}: ").split(" (")[0]
        assert why in ("the node that had it is gone", "the node died while it was read"), file.why


#: A module with a storage backend that one node cannot reach.
ONLY_HERE = """
import os
import shutil

import fsspec


class OnlyHere(fsspec.AbstractFileSystem):
    protocol = "onlyhere"

    def __init__(self, home, folder, **more):
        super().__init__(**more)
        self.home, self.folder = home, folder

    def glob(self, path, detail=False, **more):
        return {name: {"size": 1} for name in sorted(os.listdir(self.folder))}

    def get_file(self, path, local, **more):
        if os.environ["HOME"] != self.home:
            raise OSError(28, "No space left on device")
        shutil.copy(os.path.join(self.folder, path), local)
"""


def test_a_trace_that_fails_on_one_node_is_read_on_another(nodes, fixtures, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text(ONLY_HERE)
    monkeypatch.syspath_prepend(str(tmp_path))
    fsspec.register_implementation("onlyhere", "only_here.OnlyHere", clobber=True)
    for name in ["sick", "well"]:
        cluster, _ = nodes(env_vars={"HOME": str(tmp_path / name), "PYTHONPATH": str(tmp_path)})
    seen = []
    fleet = busbound.ray.diagnose(
        "onlyhere://*", address=cluster.address, progress=seen.append, retries=2,
        storage_options={"home": str(tmp_path / "well"), "folder": str(fixtures / "ranks")},
    )
    assert (len(fleet.ranks), fleet.unread) == (RANKS, [])
    assert seen[-1].again >= 1


def test_nodes_without_cores_read_too(monkeypatch, fixtures):
    import busbound.ray._driver

    monkeypatch.setattr(busbound.ray._driver, "CORES_MAY_COME_S", 1.0)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster()
    cluster.add_node(num_cpus=0, object_store_memory=80 << 20, include_dashboard=False)
    try:
        fleet = busbound.ray.diagnose(fixtures / "ranks", address=cluster.address, progress=False)
        assert len(fleet.ranks) == RANKS
    finally:
        ray.shutdown()
        cluster.shutdown()
