"""The files in deploy/ fit what the command exports, keep their privileges low, and work."""

import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

BUSBOUND = [sys.executable, "-m", "busbound"]
METRIC = re.compile(r"\bbusbound_[a-z0-9_]+\b")
PATIENCE_S = 60


@pytest.fixture
def deploy(root):
    return root / "deploy"


def documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document is not None]


def get(url):
    """The body; nothing while the server starts."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        assert error.code == 503, f"{url}: {error.read().decode()}"
        return ""
    except urllib.error.URLError:
        return ""


def until(condition):
    """What `condition` returns as soon as it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (result := condition()):
        assert time.monotonic() < deadline, f"not true after {PATIENCE_S} s"
        time.sleep(0.1)
    return result


@pytest.fixture(scope="module")
def exported():
    """The metrics that the real command serves at the end of a log."""
    fixtures = Path(__file__).resolve().parents[3] / "fixtures"
    log, machine = fixtures / "top" / "made.jsonl", fixtures / "machines" / "h200.json"
    command = [*BUSBOUND, "top", "--replay", log, "--machine", machine, "--prometheus", "127.0.0.1:0", "--interval", "0.1"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+/metrics", child.stderr.readline()).group()
        yield until(lambda: next((text for text in [get(address)] if "collective_trouble" in text), None))
    finally:
        child.terminate()
        child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0


def rules(deploy):
    (group,) = documents(deploy / "prometheus" / "alerts.yml")[0]["groups"]
    return group["rules"]


def queries(deploy):
    """Every PromQL expression of the dashboard, with what it is for."""
    dashboard = json.loads((deploy / "grafana" / "dashboards" / "busbound.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            assert variable["query"]["query"] == variable["definition"]
            yield variable["name"], variable["definition"]


def test_dashboard_and_alerts_use_only_metrics_that_exist(deploy, root, exported):
    names = set(re.findall(r"^# TYPE (\w+) (?:gauge|counter)$", exported, re.M))
    assert len(names) > 20
    texts = dict(queries(deploy)) | {rule.get("alert", rule.get("record")): rule["expr"] for rule in rules(deploy)}
    texts |= {"production.md": (root / "docs" / "production.md").read_text()}
    texts |= {"alerts_test.yml": (deploy / "prometheus" / "alerts_test.yml").read_text()}
    unknown = {where: sorted(missing) for where, text in texts.items() if (missing := set(METRIC.findall(text)) - names)}
    assert not unknown
    # The main figures are on the dashboard.
    shown = set(METRIC.findall(" ".join(expr for _, expr in queries(deploy))))
    directions = {f"busbound_pcie_{way}_{what}" for way in ("rx", "tx") for what in ("bytes_per_second", "peak_ratio")}
    assert shown >= directions | {"busbound_gpu_busy_ratio", "busbound_warning", "busbound_verdict", "busbound_phase_ratio", "busbound_span_seconds"}


def test_alerts_use_only_labels_that_exist(deploy, root, exported):
    labels = set(re.findall(r'[{,](\w+)="', exported)) | {"job", "instance"}
    used = [expression for rule in rules(deploy) for expression in [rule["expr"], *rule.get("annotations", {}).values()]]
    for text in [*used, *(expr for _, expr in queries(deploy))]:
        matched = re.findall(r"(\w+)=~?\"", text) + re.findall(r"\$labels\.(\w+)", text)
        grouped = [name.strip() for names in re.findall(r"\b(?:by|on) \(([^)]*)\)", text) for name in names.split(",")]
        # The table of sources makes the label `peak` itself.
        assert set(matched + grouped) <= labels | {"peak"}, text
    schema = json.loads((root / "docs" / "top.schema.json").read_text())
    kinds = schema["$defs"]["SignKind"]
    known = set(kinds.get("enum", [])) | {one["const"] for one in kinds.get("oneOf", [])}
    alerts = {name for rule in rules(deploy) for name in re.findall(r'id="(\w+)"', rule["expr"])}
    assert alerts == known
    reasons = re.findall(r'ThrottleReasons::\w+, "([^"]+)"', (root / "crates/gpu/src/live/clocks.rs").read_text())
    (pattern,) = (found for rule in rules(deploy) for found in re.findall(r'reason=~"([^"]+)"', rule["expr"]))
    for alternative in pattern.split("|"):
        assert any(re.fullmatch(alternative, reason) for reason in reasons), alternative


def test_metrics_carry_no_paths_processes_or_hosts(fixtures, exported):
    """What docs/production.md says about labels; only files given with --heartbeat appear."""
    lines = [line for line in exported.splitlines() if not line.startswith("#")]
    by_name = {}
    for line in lines:
        name, labels = re.fullmatch(r"(\w+)\{(.*)\} \S+", line).groups()
        by_name.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    own = {"busbound_warning": {"id", "gpu", "file"}}
    own |= {name: {"gpu", "uuid", "name", "source"} for name in ("busbound_pcie_source", "busbound_pcie_peak_source")}
    own |= {"busbound_clock_held_down": {"gpu", "uuid", "name", "reason"}}
    # Of ranks: the folder below --summaries, the rank, and what the metric is about.
    rank = {"run", "rank"}
    about = {"verdict": {"verdict"}, "phase_ratio": {"phase"}, "window_steps": {"found"}}
    plain = ("window_timestamp_seconds", "window_stale", "span_change_ratio", "change_window_seconds", "verdict_changed")
    own |= {f"busbound_{name}": rank | about.get(name, set()) for name in (*about, *plain)}
    own |= {name: rank | {"per"} for name in by_name if re.fullmatch(r"busbound_(span|compute|exposed_\w+|idle_\w+)_seconds", name)}
    for name, labels in by_name.items():
        assert labels == own.get(name, {"gpu", "uuid", "name"}), name
    last = json.loads((fixtures / "top" / "made.jsonl").read_text().splitlines()[-1])
    processes = [process["name"] for gpu in last["gpus"] for process in gpu["processes"]]
    assert processes and not any(f'"{name}' in exported for name in processes)
    assert socket.gethostname() not in exported
    assert {file for line in lines for file in re.findall(r'file="([^"]+)"', line)} == {"artifacts/run1/heartbeat_rank0.jsonl", "logs/rank3.log"}


def test_the_numbers_of_the_guide(root, fixtures):
    """Copies alone make a GPU busy, which is why no alert combines `busy` with the traffic."""
    guide = " ".join((root / "docs" / "production.md").read_text().split())
    text = (fixtures / "top" / "h200.jsonl").read_text()
    lines = text.splitlines(keepends=True)
    gpus = [gpu for line in lines for gpu in json.loads(line)["gpus"]]
    busy = [gpu["gpu_busy_percent"] for gpu in gpus]
    assert f"busy {min(busy)} to {max(busy)}%, memory busy {gpus[0]['memory_busy_percent']}%" in guide
    assert f"{gpus[0]['power_watts']:.0f} of {gpus[0]['power_limit_watts']:.0f} W" in guide
    size = len(text) / len(lines)
    assert f"{size:.0f} bytes for one GPU" in guide
    assert f"{size * 86400 / 1e6:.0f} MB per day and GPU" in guide and f"and {size * 86400 / 5 / 1e6:.0f} MB with `--interval 5`" in guide


def test_every_file_parses(deploy):
    files = [path for path in deploy.rglob("*") if path.suffix in {".yml", ".yaml", ".json"}]
    assert len(files) >= 10
    for path in files:
        assert json.loads(path.read_text()) if path.suffix == ".json" else documents(path), path


def test_the_daemon_set_has_least_privilege(deploy):
    kinds = {document["kind"]: document for document in documents(deploy / "kubernetes" / "busbound.yaml")}
    assert set(kinds) == {"Namespace", "ServiceAccount", "DaemonSet", "NetworkPolicy"}
    assert kinds["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    template = kinds["DaemonSet"]["spec"]["template"]
    pod = template["spec"]
    assert not any(pod[key] for key in ("hostNetwork", "hostPID", "hostIPC", "automountServiceAccountToken"))
    assert "volumes" not in pod and pod["runtimeClassName"] == "nvidia"
    user = pod["securityContext"]
    assert user["runAsNonRoot"] and user["runAsUser"] > 0 and user["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    resources = container["resources"]
    assert set(resources["limits"]) == set(resources["requests"]) == {"cpu", "memory"}
    # It must not take a GPU away from a job.
    assert "nvidia.com/gpu" not in json.dumps(resources)
    assert {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"} in container["env"]
    assert pod["nodeSelector"]["nvidia.com/gpu.present"] == "true"
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["nvidia.com/gpu"]
    # One port, in every place that names it.
    (port,) = container["ports"]
    annotations = template["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(port["containerPort"]) == container["args"][-1].rpartition(":")[2]
    (rule,) = kinds["NetworkPolicy"]["spec"]["ingress"]
    assert rule["ports"][0]["port"] == port["name"] and kinds["NetworkPolicy"]["spec"]["egress"] == []
    (monitor,) = documents(deploy / "kubernetes" / "podmonitor.yaml")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == port["name"]


def test_containers_have_least_privilege_and_listen_on_localhost_only(deploy):
    (compose,) = documents(deploy / "compose.yaml")
    for name, service in compose["services"].items():
        assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (volume.endswith(":ro") and (deploy / source).exists()), volume
    containerfile = (deploy / "Containerfile").read_text()
    for name in ("busbound", "demo"):
        assert compose["services"][name]["read_only"]
        assert f"USER {compose['services'][name]['user']}\n" in containerfile
    assert "privileged" not in json.dumps(compose)


def test_the_command_accepts_the_arguments_of_every_file(deploy, fixtures):
    (compose,) = documents(deploy / "compose.yaml")
    (daemon_set,) = (one for one in documents(deploy / "kubernetes" / "busbound.yaml") if one["kind"] == "DaemonSet")
    (unit,) = re.findall(r"^ExecStart=\S+ (.*)$", (deploy / "systemd" / "busbound.service").read_text(), re.M)
    (image,) = re.findall(r"^CMD (.*)$", (deploy / "Containerfile").read_text(), re.M)
    container = daemon_set["spec"]["template"]["spec"]["containers"][0]["args"]
    commands = [container, compose["services"]["busbound"]["command"], unit.split(), json.loads(image)]
    for arguments in commands:
        assert arguments[:2] == ["top", "--prometheus"] and len(arguments) == 3
        played = [*arguments[:2], "127.0.0.1:0", "--replay", fixtures / "top" / "h200.jsonl", "--count", "1"]
        subprocess.run([*BUSBOUND, *played], check=True, capture_output=True)
    demo = [part.replace("/demo/made.jsonl", str(fixtures / "top/made.jsonl")) for part in compose["services"]["demo"]["command"]]
    demo = [part.replace("/demo/h200.json", str(fixtures / "machines/h200.json")).replace("0.0.0.0:9401", "127.0.0.1:0") for part in demo]
    subprocess.run([*BUSBOUND, *demo, "--count", "1"], check=True, capture_output=True)


def promtool(*arguments, **options):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (package prometheus)")
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, **options)


def test_promtool_accepts_rules_and_configurations(deploy, tmp_path):
    folder = deploy / "prometheus"
    run = promtool("check", "rules", folder / "alerts.yml")
    assert run.returncode == 0, run.stdout + run.stderr
    for name in ("prometheus.yml", "compose.yml"):
        run = promtool("check", "config", folder / name)
        assert run.returncode == 0, run.stdout + run.stderr
    run = promtool("check", "config", folder / "kubernetes.yml")
    if "field kubernetes_sd_configs not found" in run.stderr:
        # Debian's build knows no Kubernetes: check everything else.
        (config,) = documents(folder / "kubernetes.yml")
        assert config["scrape_configs"][0].pop("kubernetes_sd_configs") == [{"role": "pod", "namespaces": {"names": ["busbound"]}}]
        shutil.copy(folder / "alerts.yml", tmp_path)
        (tmp_path / "kubernetes.yml").write_text(yaml.safe_dump(config))
        run = promtool("check", "config", tmp_path / "kubernetes.yml")
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_alert_fires_when_it_should_and_only_then(deploy):
    run = promtool("test", "rules", deploy / "prometheus" / "alerts_test.yml")
    assert run.returncode == 0, run.stdout + run.stderr
    (tests,) = documents(deploy / "prometheus" / "alerts_test.yml")
    cases = [case for test in tests["tests"] for case in test["alert_rule_test"]]
    alerts = {rule["alert"] for rule in rules(deploy) if "alert" in rule}
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts


def test_promtool_accepts_the_metrics(exported):
    run = promtool("check", "metrics", input=exported)
    assert run.returncode == 0, run.stdout + run.stderr


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(database, query):
    """The result of a query; nothing while Prometheus starts."""
    text = get(f"{database}/api/v1/query?" + urllib.parse.urlencode({"query": query}))
    return json.loads(text)["data"]["result"] if text else []


def test_the_dashboard_has_data_in_a_real_prometheus(deploy, tmp_path):
    """`deploy/local.sh --demo`: the real command, a real Prometheus, and every query of the dashboard and of the alerts."""
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed (package prometheus)")
    command = tmp_path / "busbound"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m busbound "$@"\n')
    # Grafana itself is too large for a test: a stand-in that writes down what it is given.
    grafana, given = tmp_path / "grafana", tmp_path / "given"
    grafana.write_text(f'#!/bin/sh\nenv > "{given}"\nexec sleep 600\n')
    for program in (command, grafana):
        program.chmod(0o755)
    port = free_port()
    settings = {"BUSBOUND": str(command), "GRAFANA": str(grafana), "BUSBOUND_DATA": str(tmp_path / "data"), "BUSBOUND_INTERVAL": "0.1"}
    settings |= {"BUSBOUND_PORT": str(free_port()), "PROMETHEUS_PORT": str(port)}
    child = subprocess.Popen([deploy / "local.sh", "--demo"], env=os.environ | settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    database = f"http://127.0.0.1:{port}"
    try:
        # Two scrapes, for rates.
        until(lambda: [one for one in answers(database, 'count_over_time(up{job="busbound"}[5m])') if float(one["value"][1]) >= 2])
        asked = dict.fromkeys(expr for title, expr in queries(deploy) if not expr.startswith("label_values"))
        for expr in asked:
            query = expr.replace("$instance", ".*").replace("$gpu", ".*").replace("$__rate_interval", "1m")
            assert "$" not in query.replace('"$1"', ""), query
            assert answers(database, query), query
        (busiest,) = (expr for title, expr in queries(deploy) if title == "Busiest link now")
        (busiest,) = answers(database, busiest.replace("$instance", ".*").replace("$gpu", ".*"))
        assert float(busiest["value"][1]) == pytest.approx(0.848, abs=0.001)
        loaded = json.loads(get(f"{database}/api/v1/rules"))["data"]["groups"][0]["rules"]
        assert len(loaded) == len(rules(deploy)) and all(rule["health"] != "err" for rule in loaded)
    finally:
        child.send_signal(signal.SIGTERM)
        output, _ = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0, output
    assert "the dashboard is at http://127.0.0.1:3000" in output and "metrics are at http://127.0.0.1:" in output
    environment = dict(line.split("=", 1) for line in given.read_text().splitlines() if "=" in line)
    assert environment["GF_SERVER_HTTP_ADDR"] == "127.0.0.1" and environment["GRAFANA_PROMETHEUS_URL"] == database
    assert Path(environment["GF_PATHS_PROVISIONING"]).samefile(deploy / "grafana" / "provisioning")
    assert Path(environment["BUSBOUND_DASHBOARDS"]).samefile(deploy / "grafana" / "dashboards")
    # What the provisioned files take from the environment is set, here and in compose.yaml.
    (compose,) = documents(deploy / "compose.yaml")
    for path in (deploy / "grafana" / "provisioning").rglob("*.yaml"):
        for name in re.findall(r": \$(\w+)", path.read_text()):
            assert name in environment and name in compose["services"]["grafana"]["environment"], name


def is_running(pid):
    stat = Path(f"/proc/{pid}/stat")
    # Without an init process, one that has ended stays as a zombie.
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_the_local_script_says_what_is_missing(deploy, tmp_path):
    def run(*arguments, **settings):
        found = subprocess.run([deploy / "local.sh", *arguments], env=os.environ | settings, capture_output=True, text=True, timeout=PATIENCE_S)
        return found.returncode, found.stderr

    nothing = {"BUSBOUND": "no-such-program", "PROMETHEUS": "no-such-program", "BUSBOUND_DATA": str(tmp_path / "data")}
    assert run("--help", **nothing) == (2, "local.sh: unknown argument --help: give --demo or nothing\n")
    code, why = run(**nothing)
    assert code == 2 and why.startswith("local.sh: busbound is not on the PATH")
    code, why = run(**nothing | {"BUSBOUND": "true"})
    assert code == 2 and why.startswith("local.sh: prometheus is not on the PATH")
    # One that ends ends all, with its exit code: 4 is what busbound says without a driver.
    busbound, prometheus, pid = tmp_path / "busbound", tmp_path / "prometheus", tmp_path / "pid"
    prometheus.write_text(f'#!/bin/sh\necho $$ > "{pid}"\nexec sleep 600 > /dev/null 2>&1\n')
    busbound.write_text(f'#!/bin/sh\nwhile [ ! -s "{pid}" ]; do sleep 0.1; done\nexit 4\n')
    for program in (busbound, prometheus):
        program.chmod(0o755)
    code, why = run(**nothing | {"BUSBOUND": str(busbound), "PROMETHEUS": str(prometheus), "GRAFANA": "no-such-program"})
    assert code == 4 and "one of the programs ended" in why and why.endswith("without a GPU: deploy/local.sh --demo\n")
    assert not is_running(int(pid.read_text()))


def test_a_port_in_use_is_said_before_anything_starts(deploy, tmp_path):
    """As after `apt install prometheus`: Debian's package starts one on port 9090."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        settings = {"BUSBOUND": "true", "PROMETHEUS": "true", "GRAFANA": "no-such-program", "BUSBOUND_DATA": str(tmp_path / "data")}
        settings |= {"BUSBOUND_PORT": str(free_port()), "PROMETHEUS_PORT": str(port)}
        done = subprocess.run([deploy / "local.sh"], env=os.environ | settings, capture_output=True, text=True, timeout=PATIENCE_S)
    said = f"local.sh: port {port} is in use, and prometheus needs one: give another (PROMETHEUS_PORT={port + 10}), or stop what the package started "
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said + "(sudo systemctl disable --now prometheus)\n")
    assert not (tmp_path / "data").exists()


@pytest.fixture
def slurm(deploy, fixtures, tmp_path):
    """Runs the prolog or the epilog, with a stand-in that logs what a GPU once did."""
    command = tmp_path / "busbound"
    command.write_text(
        f'#!/bin/bash\ncase "$*" in *--replay*) exec "{sys.executable}" -m busbound "$@" ;; esac\n'
        f'cat "{fixtures / "top" / "h200.jsonl"}"\nread -r < "{tmp_path / "never"}"\n'
    )
    command.chmod(0o755)
    os.mkfifo(tmp_path / "never")
    settings = {"BUSBOUND": str(command), "BUSBOUND_LOGS": str(tmp_path / "jobs"), "BUSBOUND_USER": str(os.getuid())}

    def run(script, job, **other):
        environment = os.environ | settings | {"SLURM_JOB_ID": job} | other
        return subprocess.run([deploy / "slurm" / script], env=environment, capture_output=True, text=True, timeout=PATIENCE_S)

    yield run
    # Lets a stand-in end that a failed test left behind.
    with contextlib.suppress(OSError):
        os.close(os.open(tmp_path / "never", os.O_WRONLY | os.O_NONBLOCK))


def test_slurm_logs_a_job_from_prolog_to_epilog(slurm, fixtures, tmp_path):
    jobs = tmp_path / "jobs"
    log = (fixtures / "top" / "h200.jsonl").read_bytes()
    run = slurm("prolog.sh", "4711")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    pid = int((jobs / "4711.pid").read_text())
    until(lambda: (jobs / "4711.jsonl").read_bytes() == log)
    assert is_running(pid)
    run = slurm("epilog.sh", "4711")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert not is_running(pid)
    assert sorted(path.name for path in jobs.iterdir()) == ["4711.jsonl.gz", "4711.md"]
    assert gzip.decompress((jobs / "4711.jsonl.gz").read_bytes()) == log
    assert "GPU 0" in (jobs / "4711.md").read_text()


def test_slurm_scripts_never_fail(slurm, tmp_path):
    """A prolog that fails would drain the node."""
    jobs = tmp_path / "jobs"
    for job, other in [("", {}), ("../../x", {}), ("12", {"BUSBOUND": "/no/such/program"})]:
        assert [slurm(script, job, **other).returncode for script in ("prolog.sh", "epilog.sh")] == [0, 0]
        assert not jobs.exists()
    # A program that cannot start logs nothing, and a process that is not busbound is not ended.
    assert slurm("prolog.sh", "13", BUSBOUND="/bin/false").returncode == 0
    (jobs / "13.pid").write_text(f"{os.getpid()}\n")
    assert slurm("epilog.sh", "13").returncode == 0
    assert list(jobs.iterdir()) == []
