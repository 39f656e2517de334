from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from agentdouble import Emulator
from agentdouble.errors import MissingExtraError, SettingsError
from agentdouble.runtimes import tracing
from tests.agentdouble.calling import http

pytestmark = pytest.mark.libraries

TALKING = str(Path(__file__).with_name("applications") / "talking.py")
TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "vendor=value",
    "baggage": "user=ann",
}


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


class Collector(ThreadingHTTPServer):
    """An OTLP collector on a free port."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: queue.Queue[tuple[str, Span]] = queue.Queue()
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        for resource in ExportTraceServiceRequest.FromString(content).resource_spans:
            (service,) = [a for a in resource.resource.attributes if a.key == "service.name"]
            for spans in resource.scope_spans:
                for span in spans.spans:
                    self.server.spans.put((service.value.string_value, span))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def double(**settings: Any) -> Emulator:
    return Emulator(runtimes=[{"name": "told", "command": [sys.executable, TALKING]}], **settings)


def seen(double: Emulator, path: str = "/runtimes/told/x?key=secret", **more: str) -> Any:
    """Return the headers that the application got, names in lower case."""
    answer = http.get(double.url + path, headers={**TRACE, **more})
    return {name.lower(): value for name, value in answer.json().items()}


def attributes(span: Span) -> dict[str, Any]:
    return {
        one.key: getattr(one.value, one.value.WhichOneof("value") or "") for one in span.attributes
    }


def _beginning(exported: tuple[str, Span]) -> int:
    _, span = exported
    return span.start_time_unix_nano


def test_without_an_endpoint_a_trace_passes_through() -> None:
    """As it is, with what it carries."""
    with double() as one:
        assert TRACE.items() <= seen(one).items()


def test_each_request_is_a_span_of_its_callers_trace(collector: Collector) -> None:
    """Exported over HTTP; the application is told to be its child, and nothing global is set."""
    before, others = trace.get_tracer_provider(), set(threading.enumerate())
    with double(otel_endpoint=collector.url) as one:
        first = seen(one)
        seen(one, status="503")
        http.get(f"{one.url}/runtimes/nobody/x")
    exported = [collector.spans.get(timeout=30) for _ in range(3)]  # as they ended
    (service, cold), (_, warm), (_, nobody) = sorted(exported, key=_beginning)

    assert f"00-{cold.trace_id.hex()}-{cold.span_id.hex()}" == first["traceparent"][:-3]
    assert TRACE["traceparent"] == f"00-{cold.trace_id.hex()}-{cold.parent_span_id.hex()}-01"
    assert ("vendor=value", "user=ann") == (first["tracestate"], first["baggage"])
    assert ("agentdouble", "GET /runtimes/{name}/{path}", Span.SPAN_KIND_SERVER) == (
        service,
        cold.name,
        cold.kind,
    )
    assert {
        "http.request.method": "GET",
        "http.route": "/runtimes/{name}/{path}",
        "url.path": "/runtimes/told/x",
        "url.scheme": "http",
        "http.response.status_code": 200,
        "agentdouble.runtime": "told",
        "agentdouble.instance": "told-1",
        "agentdouble.cold_start": True,
    } == attributes(cold)
    assert (503, False, "application") == tuple(
        attributes(warm)[key]
        for key in ("http.response.status_code", "agentdouble.cold_start", "error.type")
    )
    assert (404, b"") == (attributes(nobody)["http.response.status_code"], nobody.parent_span_id)
    assert before is trace.get_tracer_provider()
    assert not {one for one in threading.enumerate() if one.name.startswith("Otel")} - others


def test_an_endpoint_of_the_environment_is_used(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by every program that knows OpenTelemetry; what is no trace is not passed on."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    with double() as one:
        got = seen(one, traceparent="nonsense")
    service, span = collector.spans.get(timeout=30)

    assert "mine" == service
    assert f"00-{span.trace_id.hex()}-{span.span_id.hex()}" == got["traceparent"][:-3]
    assert b"" == span.parent_span_id


def test_a_collector_that_is_not_there_fails_no_request(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it hold up the end of the double, or leave a thread behind."""
    monkeypatch.setattr(tracing, "_SHUTDOWN_S", 0.1)
    closed = Collector()
    closed.server_close()
    with double(otel_endpoint=closed.url) as one:
        assert "traceparent" in seen(one)
    for thread in threading.enumerate():
        if thread.name == "agentdouble-traces":
            thread.join(timeout=30)
            assert not thread.is_alive()


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is started; and an endpoint is an address."""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'agentdouble\[otel\]'"):
        double(otel_endpoint="http://127.0.0.1:4318")
    with pytest.raises(SettingsError, match="otel_endpoint"):
        double(otel_endpoint="localhost:4318")
