"""Input that never finishes processing neither blocks a double nor keeps it from stopping.

Each attack goes to a double in its own process.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import with_token

pytestmark = [pytest.mark.slow, pytest.mark.once]

HEALTH_S = 0.1
LONGEST_S = 1.5  # of a single answer, on a machine that others use too
WATCHED_S = 3.0
ENDS_S = 20  # while it reads what is left of a large body

Json = dict[str, Any]
VERSION = {"Version": "2025-10-30"}
TEXT = "a" * 40 + "!"
PATTERNS = ["^(a+)+$", "(" * 5000, "[" + "a-" * 100_000 + "]"]


class Double:
    """A double in a process, and its client."""

    def __init__(self, home: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "agentdouble", "serve", "--port", "0"],
            cwd=home,
            env={**os.environ, "HOME": str(home), "AGENTDOUBLE_CHECK_SIGNATURES": "false"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        failure = None
        while failure is None:
            line = self._process.stdout.readline()
            assert line, "it did not start"
            failure = re.search(r"http://127\.0\.0\.1:\d+", line)
        self.url = failure[0]
        self._printing = threading.Thread(target=self._process.stdout.read)
        self._printing.start()
        self._attack: threading.Thread | None = None
        self.http = httpx.Client(
            timeout=90,
            trust_env=False,
            base_url=self.url,
            event_hooks={"request": [with_token]},
        )

    def create(self, definition: Json | str) -> httpx.Response:
        """Create the MCP service ``api`` from a definition."""
        text = definition if isinstance(definition, str) else json.dumps(definition)
        api = {"HttpApiConfiguration": {"Configuration": text, "Type": "Swagger"}}
        return self.create_service(
            ProtocolType="HTTP", BackendType="Custom", ProtocolConfiguration=api
        )

    def create_service(self, **fields: Any) -> httpx.Response:
        """Create the MCP service ``api`` with the key ``k``."""
        keys = {"KeyAuth": {"ApiKeys": [{"Name": "k", "Key": "k"}]}}
        inbound = {"AuthorizerType": "ApiKey", "Authorizer": keys}
        body = {"Name": "api", "Path": "/", "InboundAuthorizerConfiguration": inbound, **fields}
        return self.http.post("/", params={"Action": "CreateMCPService", **VERSION}, json=body)

    def call(self, arguments: Json) -> httpx.Response:
        """Call the tool ``op`` of the MCP service."""
        url = f"{self.url}/mcp/api"
        message = mcp_wire.message("tools/call", {"name": "op", "arguments": arguments}, 7)
        return mcp_wire.post(url, message, "k", mcp_wire.open_session(url, "k"))

    def answers_while(self, attack: Callable[[Double], object]) -> None:
        """Check for a few seconds that health is answered during an attack."""
        failures: list[Exception] = []

        def run() -> None:
            try:
                with contextlib.suppress(httpx.HTTPError):  # a refused body ends its connection
                    attack(self)
            except Exception as exception:  # raised below; later, the double ends meanwhile
                failures.append(exception)

        thread = self._attack = threading.Thread(target=run, daemon=True)
        with httpx.Client(trust_env=False, base_url=self.url) as http:
            assert http.get("/_emulator/health").status_code == 200
            thread.start()
            took: list[float] = []
            ends = time.monotonic() + WATCHED_S
            while len(took) < 20 or (thread.is_alive() and time.monotonic() < ends):
                before = time.monotonic()
                http.get("/_emulator/health", timeout=30)
                took.append(time.monotonic() - before)
                thread.join(0.01)
        if failures:
            raise failures[0]
        took.sort()
        assert took[len(took) * 9 // 10] < HEALTH_S, took
        assert took[-1] < LONGEST_S, took

    def end(self) -> None:
        """Stop it and check that all its processes end."""
        below = psutil.Process(self._process.pid).children(recursive=True)
        self._process.send_signal(signal.SIGTERM)
        try:
            assert 0 == self._process.wait(ENDS_S)
            assert [] == psutil.wait_procs(below, timeout=ENDS_S)[1]
        finally:
            self._process.kill()
            with self._process:
                self._printing.join()
            if self._attack:
                self._attack.join()  # its connection is closed
            self.http.close()


@pytest.fixture
def double(tmp_path: Path) -> Iterator[Double]:
    double = Double(tmp_path)
    yield double
    double.end()


def document(schema: Any, media_type: str = "application/json", **more: Any) -> Json:
    """Return a definition with an operation ``op`` whose body has a schema."""
    body = {"content": {media_type: {"schema": schema}}}
    operation = {"operationId": "op", "requestBody": body, "responses": {}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": "http://127.0.0.1:9/"}],
        "paths": {"/a": {"post": operation}},
        **more,
    }


LEVELS = 60


def doubling(keyword: str) -> Json:
    """Return schemas that each refer to the next one twice."""
    references = [{"$ref": f"#/components/schemas/S{level}"} for level in range(1, LEVELS)]
    schemas: Json = {f"S{at}": {keyword: [ref, ref]} for at, ref in enumerate(references)}
    schemas[f"S{LEVELS - 1}"] = {"type": "string", "properties": {"a": {}}}
    return {"components": {"schemas": schemas}}


FIRST = {"$ref": "#/components/schemas/S0"}


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern[:20])
@pytest.mark.parametrize(
    "make",
    [
        lambda pattern: {"type": "string", "pattern": pattern},
        lambda pattern: {"patternProperties": {pattern: {}}, "additionalProperties": False},
    ],
    ids=["pattern", "patternProperties"],
)
def test_patterns_of_a_definition_are_not_evaluated(
    double: Double, make: Callable[[str], Json], pattern: str
) -> None:
    """Neither on reading it nor on checking arguments."""

    def attack(double: Double) -> None:
        id_ = double.create(document(make(pattern)))
        assert id_.status_code == 200, id_.text
        double.call({"body": TEXT})
        double.call({"body": {TEXT: 1}})

    double.answers_while(attack)


ARGUMENTS: Mapping[str, tuple[Json, Any]] = {
    "allOf": (document(FIRST, **doubling("allOf")), "a"),
    "itself": (
        document(
            {"$ref": "#/components/schemas/S"},
            components={
                "schemas": {
                    "S": {
                        "oneOf": [
                            {"properties": {"a": {"$ref": "#/components/schemas/S"}}},
                            {"properties": {"a": {"$ref": "#/components/schemas/S"}}, "title": "b"},
                        ]
                    }
                }
            },
        ),
        json.loads('{"a":' * 60 + "1" + "}" * 60),
    ),
    "unique items": (document({"uniqueItems": True}), [{"a": at} for at in range(100_000)]),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_checking_arguments_ends(double: Double, name: str) -> None:
    """However often a schema repeats itself."""
    definition, body = ARGUMENTS[name]

    def attack(double: Double) -> None:
        id_ = double.create(definition)
        assert id_.status_code == 200, id_.text
        for _ in range(10):
            double.call({"body": body})

    double.answers_while(attack)


def aliases() -> str:
    """Return a few lines of YAML that stand for 10 to the power of 12 values."""
    lines = ["openapi: 3.0.0", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(lines)


def chain(length: int) -> Json:
    """Return a definition with chained references."""
    names: Json = {f"S{at}": {"$ref": f"#/components/schemas/S{at + 1}"} for at in range(length)}
    return document(FIRST, components={"schemas": {**names, f"S{length}": {}}})


def large() -> Json:
    """Return a harmless definition of 10 MB."""
    properties = {f"p{at}": {"type": "string", "description": "words " * 10} for at in range(20)}
    schemas = {f"S{at}": {"type": "object", "properties": properties} for at in range(4000)}
    paths = {
        f"/a{at}": {"post": {**document(ref)["paths"]["/a"]["post"], "operationId": f"op{at}"}}
        for at, ref in enumerate({"$ref": f"#/components/schemas/{name}"} for name in schemas)
    }
    return {**document({}), "paths": paths, "components": {"schemas": schemas}}


DEFINITIONS: Mapping[str, Callable[[], Json | str]] = {
    "aliases": aliases,
    "deep": lambda: '{"openapi":' * 500_000,
    "chain of references": lambda: chain(50_000),
    "large": large,
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_reading_a_definition_blocks_no_other_request(double: Double, name: str) -> None:
    """Neither bombs nor large valid ones do."""
    definition = DEFINITIONS[name]()
    double.answers_while(lambda double: double.create(definition))


SERVER = """
import json, sys
tool = {"name": "op", "inputSchema": json.loads(sys.argv[1]), "outputSchema": json.loads(sys.argv[1])}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    version = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
    results = {
        "initialize": {**version, "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [], "structuredContent": {"a": sys.argv[2], sys.argv[2]: 1}},
    }
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]}))
    sys.stdout.flush()
"""


def test_schemas_of_servers_are_not_evaluated(double: Double, tmp_path: Path) -> None:
    """Neither for arguments nor for structured content."""
    (tmp_path / "server.py").write_text(SERVER)
    pattern = PATTERNS[0]
    properties = {"a": {"type": "string", "pattern": pattern}}
    schema = {"type": "object", "properties": properties, "patternProperties": {pattern: {}}}
    command = [sys.executable, "server.py", json.dumps(schema), TEXT]
    server = {"command": command[0], "args": command[1:], "env": {}, "cwd": str(tmp_path)}
    package = {"McpType": "stdio", "RawConfig": json.dumps(server)}

    def attack(double: Double) -> None:
        service = double.create_service(
            ProtocolType="MCP",
            BackendType="CustomMcp",
            BackendConfiguration={"CustomMcpConfiguration": {"PublicPackage": package}},
        )
        assert service.status_code == 200, service.text
        for _ in range(2):
            double.call({"a": TEXT})

    double.answers_while(attack)


BODIES = (
    "[" * 2_000_000,
    "[" + "1," * 5_000_000 + "1]",
    "{" + ",".join(f'"k{at}":1' for at in range(500_000)) + "}",
)


@pytest.mark.parametrize(
    "path",
    [
        "/invoke",
        "/run",
        "/run_sse",
        "/mcp",
        "/message:send",
        "/",
        "/?Action=CreateTool&Version=2025-10-30",
        "/apps/echo/users/u/sessions",
        "/_emulator/faults",
        "/_emulator/what-if",
        "/_emulator/what-if/answers",
    ],
)
def test_reading_a_body_blocks_no_other_request(double: Double, path: str) -> None:
    """Every reader of bodies is covered."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def attack(double: Double) -> None:
        for body in BODIES:
            with contextlib.suppress(httpx.HTTPError):  # a refused body ends its connection
                double.http.post(path, content=body, headers=headers)

    double.answers_while(attack)
