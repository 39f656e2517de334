"""The examples of applications, tools, services and agents on the double's page."""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentdouble import Emulator
from agentdouble.apps.loading import load
from agentdouble.mcp_services import ApiKey, OpenApiBackend
from doublecheck import Platform, Target
from tests.readme.consoles import bash, commands_of, conftest, forget, pytest_in, run
from tests.readme.pages import DOUBLE, FRONT, block

pytestmark = pytest.mark.once

MY_AGENT = block(FRONT, "python", "# my_agent.py")
ASKED = block(DOUBLE, "console", "$ curl http://127.0.0.1:8000/invoke")
MY_STREAM = block(DOUBLE, "python", "# my_stream.py")
TEST_STREAM = block(DOUBLE, "python", "# test_my_stream.py")
MY_A2A = block(DOUBLE, "python", "# my_a2a.py")
GREETER = block(DOUBLE, "python", "# agents/greeter/__init__.py")
GREETED = block(DOUBLE, "console", "$ agentdouble serve --agents")
TEST_GREETER = block(DOUBLE, "python", "# test_greeter.py")
CONFTEST = block(DOUBLE, "python", "# conftest.py")
WEATHER = block(DOUBLE, "python", "# agents/weather/agent.py")
TEST_WEATHER = block(DOUBLE, "python", "# test_weather.py")
MY_TOOLS = block(DOUBLE, "python", "# my_tools.py")
MY_NOTES = block(DOUBLE, "python", "# my_notes.py")
TEST_TOOLS = block(DOUBLE, "python", "# test_my_tools.py")
MY_SERVICES = block(DOUBLE, "python", "# my_services.py")
LIST_PETS = block(DOUBLE, "python", "# list_pets.py")
TEST_SERVICE = block(DOUBLE, "python", "# test_my_service.py")
RECORD = block(DOUBLE, "json", '{"mcpServers"')
SHOWN_SESSION = block(DOUBLE, "console", "$ agentdouble call GetSession")


@pytest.mark.slow
def test_application_runs_code_and_its_session_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session's Endpoint opens the data plane."""
    forget(monkeypatch, "my_agent")
    file = tmp_path / "my_agent.py"
    file.write_text(MY_AGENT)
    examples = list(commands_of(ASKED))
    show, curl = commands_of(SHOWN_SESSION)

    with Emulator(load(f"{file}:app")) as double:
        answers = [run(example.command, double.url) for example in examples]
        for name, value in double.environment().items():
            monkeypatch.setenv(name, value)
        listed = json.loads(run("agentdouble session list --json", double.url))
        session = run(show.command.replace("s-...", listed[0]["SessionId"]), double.url)
        (query,) = re.findall(r"\?(\S*Authorization=[^\s\"]+)", session)
        output = run(re.sub(r"\?[^']+", lambda _: f"?{query}", curl.command), double.url)

    assert [example.printed.strip() for example in examples] == answers
    assert "/home/gem" in output


def test_stream_test_passes(tmp_path: Path) -> None:
    (tmp_path / "my_stream.py").write_text(MY_STREAM)
    (tmp_path / "test_my_stream.py").write_text(TEST_STREAM)

    assert "1 passed" in pytest_in(tmp_path)


def test_a2a_application_answers_in_the_double(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor answers in upper case, and the double completes its task."""
    forget(monkeypatch, "my_a2a")
    file = tmp_path / "my_a2a.py"
    file.write_text(MY_A2A)
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}

    with Emulator(load(f"{file}:app")) as double:
        answer = httpx.post(
            f"{double.url}/message:send",
            headers={"A2A-Version": "1.0"},
            json={"message": message},
            timeout=30,
        )

    task = answer.json()["task"]
    assert ("TASK_STATE_COMPLETED", [{"text": "HELLO"}]) == (
        task["status"]["state"],
        task["artifacts"][0]["parts"],
    )


def test_agent_greets_the_caller(tmp_path: Path) -> None:
    """The agent is found in its directory and answers the commands with a stream of events."""
    _greeter(tmp_path)
    _, session, example = commands_of(GREETED)

    with Emulator(agents=tmp_path / "agents") as double:
        run(session.command, double.url)
        events = run(example.command, double.url)

    assert "Hello, ann! You said 'hi'." in events


def test_agent_test_passes(tmp_path: Path) -> None:
    """It runs with the configuration shown next to it."""
    _greeter(tmp_path)
    (tmp_path / "test_greeter.py").write_text(TEST_GREETER)
    (tmp_path / "conftest.py").write_text(CONFTEST)

    assert "1 passed" in pytest_in(tmp_path)


def test_adk_agent_tests_pass(tmp_path: Path) -> None:
    """Where google-adk is installed."""
    pytest.importorskip("google.adk", reason="google-adk is not installed: pip install google-adk")
    package = tmp_path / "agents" / "weather"
    package.mkdir(parents=True)
    (package / "agent.py").write_text(WEATHER)
    (package / "__init__.py").write_text("from . import agent\n")
    (tmp_path / "test_weather.py").write_text(TEST_WEATHER)
    (tmp_path / "conftest.py").write_text(CONFTEST)

    assert "3 passed" in pytest_in(tmp_path)


def _greeter(folder: Path) -> None:
    package = folder / "agents" / "greeter"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(GREETER)


def test_tools_test_passes(tmp_path: Path) -> None:
    (tmp_path / "my_tools.py").write_text(MY_TOOLS)
    (tmp_path / "test_my_tools.py").write_text(TEST_TOOLS)
    (tmp_path / "conftest.py").write_text(conftest(DOUBLE, "my_tools"))

    assert "1 passed" in pytest_in(tmp_path)


def test_tool_reads_notes_and_prompt_names_them() -> None:
    """One session uses everything that the application offers."""
    module: dict[str, Any] = {"__name__": "my_notes"}
    exec(MY_NOTES, module)
    of_summary = {"ref": {"type": "ref/prompt", "name": "summary"}}
    with (
        Emulator(module["app"], pool_size=0) as double,
        Platform(Target.of(double)) as platform,
        platform.mcp() as mcp,
    ):
        headings = mcp.call("headings", days=["Monday", "Friday"]).structured
        (note,) = mcp.ask("resources/read", uri="notes://Monday")["contents"]
        (message,) = mcp.ask("prompts/get", name="summary", arguments={"day": "Monday"})["messages"]
        argument = {"name": "day", "value": "T"}
        completed = mcp.ask("completion/complete", argument=argument, **of_summary)

    assert {"result": ["# Monday", "# Friday"]} == headings
    assert ("text/markdown", "# Monday") == (note["mimeType"], note["text"])
    assert "Sum up notes://Monday." == message["content"]["text"]
    assert ["Tuesday"] == completed["completion"]["values"]


def test_services_are_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands print an access record of the documented form."""
    forget(monkeypatch, "my_tools")
    (tmp_path / "my_tools.py").write_text(MY_TOOLS)
    (tmp_path / "petstore.json").write_text(json.dumps(_PETSTORE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    exec(MY_SERVICES, {})

    output = re.sub(r"Bearer [\w-]{43}", "Bearer <its key>", capsys.readouterr().out)
    assert json.loads(RECORD) == json.loads(re.sub(r":\d+/mcp", ":8000/mcp", output))


class _Pets(BaseHTTPRequestHandler):
    """An API that wants a key."""

    def do_GET(self) -> None:
        good = (self.path, self.headers["X-Key"]) == ("/v1/pets", "k")
        self.send_response(200 if good else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"pets": ["Rex"]}')

    def log_message(self, *_args: object) -> None:
        """Log nothing."""


def test_a_test_has_a_service_of_its_own(tmp_path: Path) -> None:
    """The API gets the key of the environment, where its definition says."""
    (tmp_path / "petstore.json").write_text(json.dumps(_PETS))
    (tmp_path / "test_my_service.py").write_text(TEST_SERVICE)

    with ThreadingHTTPServer(("127.0.0.1", 0), _Pets) as api:
        threading.Thread(target=api.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{api.server_port}/v1"
        words = f"{sys.executable} -m pytest -q -p no:cacheprovider"
        right, wrong = (
            bash(words, tmp_path, check=False, PETS_URL=url, PETS_KEY=value) for value in "kw"
        )
        api.shutdown()

    assert "1 passed" in right
    assert "HTTP 401" in wrong


def test_the_client_of_mcp_calls_a_service(tmp_path: Path) -> None:
    (tmp_path / "list_pets.py").write_text(LIST_PETS)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pets) as api, Emulator() as double:
        threading.Thread(target=api.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{api.server_port}/v1"
        backend = OpenApiBackend.load(_PETS, base_url=url, auth=ApiKey("k"))
        double.mcp.create("pets", backend)
        access = double.mcp.record("pets")["mcpServers"]["pets"]

        output = bash(
            f"{sys.executable} list_pets.py",
            tmp_path,
            PETS_SERVICE_URL=access["httpUrl"],
            PETS_SERVICE_KEY=access["headers"]["Authorization"].removeprefix("Bearer "),
        )
        api.shutdown()

    assert "{'pets': ['Rex']}\n" == output


def test_a_breakpoint_stops_in_an_application(tmp_path: Path) -> None:
    """The debugger reads the terminal of the tests."""
    (tmp_path / "my_stopping.py").write_text(
        "from agentdouble import SimpleApp\n\napp = SimpleApp('my_stopping')\n\n"
        "@app.entrypoint\nasync def answer(payload, headers):\n"
        "    breakpoint()\n    return payload['prompt']\n"
    )
    (tmp_path / "test_stopping.py").write_text(
        "def test_it(make_platform):\n"
        "    assert make_platform('my_stopping:app').invoke('hi') == 'changed'\n"
    )
    typed = 'payload["prompt"] = "changed"\\nc\\n'

    output = bash(f"printf '{typed}' | {sys.executable} -m pytest -q -p no:cacheprovider", tmp_path)

    assert "my_stopping.py(8)answer()" in output
    assert "1 passed" in output


_PETSTORE = {
    "swagger": "2.0",
    "info": {"title": "pets", "version": "1"},
    "host": "127.0.0.1:9001",
    "schemes": ["http"],
    "paths": {"/pets": {"get": {"operationId": "pets", "responses": {"200": {"description": ""}}}}},
}
_PETS = {
    **_PETSTORE,
    "securityDefinitions": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    "security": [{"key": []}],
}
