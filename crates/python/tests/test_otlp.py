"""What ``busbound top --otlp`` sends is what OpenTelemetry's own schema describes."""

import contextlib
import gzip
import socket
import subprocess
import sysconfig
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

json_format = pytest.importorskip("google.protobuf.json_format")
service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
metrics_pb2 = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2")

COMMAND = Path(sysconfig.get_path("scripts")) / "busbound"


class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        self.server.received.append((self.path, self.headers["Content-Type"], body))
        answer = json_format.MessageToJson(service.ExportMetricsServiceResponse()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@pytest.fixture
def collector():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    server.received = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def attributes(pairs):
    return {pair.key: pair.value.string_value for pair in pairs}


def test_requests_fit_the_schema_of_opentelemetry(collector, fixtures):
    began = time.time_ns()
    url = f"http://127.0.0.1:{collector.server_port}"
    log = fixtures / "top" / "made.jsonl"
    done = subprocess.run(
        [COMMAND, "top", "--replay", log, "--interval", "0.1", "--otlp", url], capture_output=True, text=True, check=True
    )
    assert done.stderr == f"busbound: sending metrics to {url}/v1/metrics every 0.1 s\n"
    ended = time.time_ns()
    assert len(collector.received) > 1
    assert {(path, kind) for path, kind, _ in collector.received} == {("/v1/metrics", "application/json")}
    # Fails for a member that the schema does not have, and for a value of another type.
    requests = [json_format.Parse(body, service.ExportMetricsServiceRequest()) for _, _, body in collector.received]
    starts = set()
    for request in requests:
        (resource,) = request.resource_metrics
        (scope,) = resource.scope_metrics
        assert sorted(attributes(resource.resource.attributes)) == ["service.name", "service.version"]
        assert attributes(resource.resource.attributes)["service.name"] == scope.scope.name == "busbound"
        for metric in scope.metrics:
            assert metric.name.startswith("busbound_") and metric.description and not metric.unit
            kind = metric.WhichOneof("data")
            assert kind == ("sum" if metric.name.endswith("_total") else "gauge")
            points = getattr(metric, kind).data_points
            assert points
            for point in points:
                assert began <= point.time_unix_nano <= ended and point.WhichOneof("value") == "as_double"
            if kind == "sum":
                assert metric.sum.is_monotonic
                assert metric.sum.aggregation_temporality == metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
                starts |= {point.start_time_unix_nano for point in points}
    # The first observation, in every request.
    assert len(starts) == 1
    last = {metric.name: metric for metric in requests[-1].resource_metrics[0].scope_metrics[0].metrics}
    busy = {attributes(point.attributes)["gpu"]: point.as_double for point in last["busbound_gpu_busy_ratio"].gauge.data_points}
    assert busy == {"0": 0.36, "1": 0.0}
    verdicts = [attributes(point.attributes) for point in last["busbound_verdict"].gauge.data_points]
    assert [(one["rank"], one["verdict"]) for one in verdicts] == [("0", "transfer"), ("1", "communication")]


@contextlib.contextmanager
def rotel(folder, forward_to):
    """A real OpenTelemetry collector, the one on the package index: https://rotel.dev, a binary."""
    agent = Path(pytest.importorskip("rotel").__file__).with_name("rotel-agent")
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    options = {
        "otlp-http-endpoint": f"127.0.0.1:{ports[0]}",
        "otlp-grpc-endpoint": f"127.0.0.1:{ports[1]}",
        "exporter": "otlp",
        "otlp-exporter-protocol": "http",
        "otlp-exporter-endpoint": forward_to,
        "log-file": folder / "rotel.log",
        "pid-file": folder / "rotel.pid",
    }
    command = [agent, "start", "--disable-batching", *(f"--{name}={value}" for name, value in options.items())]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: is_open(ports[0]))
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        process.terminate()
        process.wait(10)


def is_open(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def until(is_done):
    deadline = time.monotonic() + 30
    while not is_done():
        assert time.monotonic() < deadline, "nothing after 30 s"
        time.sleep(0.05)


def parsed(body):
    return service.ExportMetricsServiceRequest.FromString(body)


def without_times(request):
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in getattr(metric, metric.WhichOneof("data")).data_points:
                    point.ClearField("time_unix_nano")
                    point.ClearField("start_time_unix_nano")
    return request


def test_a_real_collector_takes_and_forwards_every_metric(collector, fixtures, tmp_path):
    sink = f"http://127.0.0.1:{collector.server_port}"
    send = [COMMAND, "top", "--replay", fixtures / "top" / "made.jsonl", "--interval", "0.1", "--otlp"]
    subprocess.run([*send, sink], capture_output=True, check=True)
    sent = [json_format.Parse(body, service.ExportMetricsServiceRequest()) for _, _, body in collector.received]
    collector.received.clear()
    with rotel(tmp_path, sink) as url:
        done = subprocess.run([*send, url], capture_output=True, text=True, check=True)
        # A request that it did not take is a line.
        assert done.stderr == f"busbound: sending metrics to {url}/v1/metrics every 0.1 s\n"
        # A slow machine may leave out intervals, never the last one; requests may overtake each other.
        last = without_times(sent[-1])
        until(lambda: any(without_times(parsed(body)) == last for _, _, body in list(collector.received)))
    assert {(path, kind) for path, kind, _ in collector.received} == {("/v1/metrics", "application/x-protobuf")}
