from __future__ import annotations

import json
import re
import signal
import ssl
from collections.abc import Callable

import httpx
import pytest

from agentdouble.core import ledger
from agentdouble.core.environment import CLIENTS
from doublecheck import Platform, Target
from tests.agentdouble.calling import TIMEOUT_S, http
from tests.agentdouble.cli.conftest import CommandLine, Serving

APP = """
from agentdouble import SimpleApp

app = SimpleApp("mine")


@app.entrypoint
async def answer(payload, headers):
    return "mine: " + payload["prompt"]
"""

TOOLS = """
from agentdouble import MCPApp

app = MCPApp("tools")


@app.tool
def double(value: int) -> int:
    return 2 * value
"""


ASKING = """
import os

async def root_agent(message, session):
    names = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY")
    yield " ".join(os.environ.get(name, "none") for name in names)
"""


@pytest.mark.slow
def test_hosted_agents_find_the_model(
    serve: Callable[..., Serving], command_line: CommandLine
) -> None:
    """Except of a vendor of which their file or the double's environment has a key."""
    for name in ("plain", "keyed"):
        folder = command_line.folder / "agents" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(ASKING)
    (command_line.folder / "agents" / "keyed" / ".env").write_text("OPENAI_API_KEY=sk-own\n")
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        command_line.environment.pop(variable, None)
    serving = serve("--agents", "agents")

    said = [_say(serving, name).split() for name in ("plain", "keyed")]

    url = f"{serving.url}/model"
    assert [f"{url}/v1", url] == said[0][::2]
    assert all(key.startswith("sk-") for key in said[0][1::2])
    assert ["none", "sk-own", *said[0][2:]] == said[1]


def _say(serving: Serving, app: str) -> str:
    http.post(f"{serving.url}/apps/{app}/users/ann/sessions/s1", json={})
    message = {"role": "user", "parts": [{"text": "hi"}]}
    body = {"appName": app, "userId": "ann", "sessionId": "s1", "newMessage": message}
    (event,) = http.post(f"{serving.url}/run", json=body).json()
    text: str = event["content"]["parts"][0]["text"]
    return text


@pytest.mark.slow
def test_greeting_says_how_to_continue(shared_double: Serving) -> None:
    """It has the right addresses, tool id, key pair and export lines."""
    serving = shared_double

    answer = http.post(f"{serving.url}/invoke", json={"prompt": "print(6 * 7)"})

    assert answer.json() == "42"
    for text in (
        f"coder at {serving.url}/invoke",
        "t-sandbox",
        "AKLT",
        'eval "$(agentdouble env)"',
        f"export PLATFORM_TOOL_HOST={serving.url.removeprefix('http://')}",
        "export PLATFORM_SECRET_KEY=",
        "Send it a prompt:",
    ):
        assert text in serving.greeting


@pytest.mark.slow
def test_signal_stops_it_cleanly(serve: Callable[..., Serving], command_line: CommandLine) -> None:
    """Exit code 0, no traceback, and clients no longer find the double.

    The key pair survives a restart: an exported environment stays valid.
    """
    keys = []
    for number in (signal.SIGINT, signal.SIGTERM):
        serving = serve("--quiet")
        keys.append([line for line in serving.greeting.splitlines() if "_KEY=" in line])

        assert serving.stop(number) == (0, "", "")
        assert "No double is running" in command_line.run("env").stderr

    assert keys[0] == keys[1]
    assert len(keys[0]) == 2


@pytest.mark.slow
def test_custom_applications_and_tools_are_served(
    serve: Callable[..., Serving], command_line: CommandLine
) -> None:
    """The first application answers at the root, a further one at its name.

    An MCPApp answers at ``/mcp``, as the greeting says; the declared runtimes work, too.
    """
    (command_line.folder / "mine.py").write_text(APP)
    (command_line.folder / "tools.py").write_text(TOOLS)
    runtime = '[[runtimes]]\nname = "apart"\napplication = "mine:app"\n'
    (command_line.folder / "agentdouble.toml").write_text(runtime)
    serving = serve("mine:app", "other=mine.py:app", "tools.py:app")

    first = http.post(f"{serving.url}/invoke", json={"prompt": "hello"})
    further = http.post(f"{serving.url}/runtimes/other/invoke", json={"prompt": "hello"})

    assert first.json() == further.json() == "mine: hello"
    with Platform(Target(serving.url)) as platform:
        assert platform.mcp().call("double", value=21).structured == {"result": 42}
    assert f"tools at {serving.url}/mcp" in serving.greeting
    assert "Call it, with the fields that it reads:" in serving.greeting
    assert f"runtime apart     {serving.url}/runtimes/apart\n" in serving.greeting


def test_env_points_clients_at_the_running_double(
    shared_double: Serving, shared_command_line: CommandLine
) -> None:
    """Neutral names by default, a real client's names on request, JSON for programs."""
    host = shared_double.url.removeprefix("http://")

    neutral = shared_command_line.run("env").stdout
    real = json.loads(shared_command_line.run("env", "--for", "veadk", "--json").stdout)

    assert f"export PLATFORM_TOOL_HOST={host}\n" in neutral
    assert real["AGENTKIT_TOOL_HOST"] == host
    assert real["VOLCENGINE_SECRET_KEY"] in neutral


def test_key_pair_is_private_to_the_user(
    shared_double: Serving, shared_command_line: CommandLine
) -> None:
    """Other users can read neither the directory nor the files in it."""
    state = shared_command_line.folder.parent / "state" / "agentdouble"

    modes = {path.stat().st_mode & 0o777 for path in state.iterdir()}
    assert (0o700, {0o600}) == (state.stat().st_mode & 0o777, modes)


def _refusal(command_line: CommandLine, *words: str) -> str:
    done = command_line.run_here(*words)
    assert (2, "") == (done.returncode, done.stdout)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize(
    ("source", "spec", "expected"),
    [
        (None, "nix:app", "No module named 'nix'"),
        ("1 / 0", "bad:app", "bad.py:1)"),
        ("def f(:", "bad:app", "SyntaxError"),
        (APP, "bad:application", "It has app."),
    ],
)
def test_application_error_is_one_line(
    command_line: CommandLine, source: str | None, spec: str, expected: str
) -> None:
    """The line says what is wrong and where in the user's code."""
    if source is not None:
        (command_line.folder / "bad.py").write_text(source)

    assert expected in _refusal(command_line, "serve", "--port", "0", spec)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("serve", "--host", "0.0.0.0"), "--api-key"),
        (("serve", "--unknown", "U-TTL-EXTEND=sliding"), "Did you mean U-TTL-EXTENDS?"),
        (("serve", "--unknown", "U-TTL-EXTENDS"), "ID=NAME"),
        (
            ("serve", "--faults", "plan.toml"),
            "The faults file plan.toml cannot be read: No such file or directory.",
        ),
        (("env", "--for", "nobody"), "platform, veadk, agentkit"),
        (("env", "--port", "1"), "No double is running on port 1"),
    ],
)
def test_option_errors_are_one_line(
    command_line: CommandLine, words: tuple[str, ...], expected: str
) -> None:
    """Each says what to do instead."""
    assert expected in _refusal(command_line, *words)


_NOT_A_KEY = "--api-key must be env:NAME or file:PATH, not the key itself"
_NOT_A_URL = "--state contains a password"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("serve", "--api-key", "s3cret"), _NOT_A_KEY),
        (("serve", "--api-key", "env:NO_KEY"), "--api-key: the environment has no NO_KEY."),
        (("serve", "--api-key", "file:none"), "--api-key: none cannot be read: No such file"),
        (("serve", "--state", "postgresql://a:s3cret@h/d"), _NOT_A_URL),
        (("exec", "--state", "postgresql://a:s3cret@h/d", "--", "true"), _NOT_A_URL),
    ],
)
def test_secret_on_the_command_line_is_refused(
    command_line: CommandLine, words: tuple[str, ...], expected: str
) -> None:
    """The error does not repeat it, and names both alternatives."""
    message = _refusal(command_line, *words)

    assert expected in message
    assert "s3cret" not in message


@pytest.mark.slow
def test_faults_from_a_file_are_armed(
    serve: Callable[..., Serving], command_line: CommandLine
) -> None:
    """The listed calls fail; an invalid fault is a one-line error."""
    plan = command_line.folder / "plan.toml"
    plan.write_text("[[fault]]\n")
    assert "must have [[faults]] tables" in _refusal(command_line, "serve", "--faults", "plan.toml")
    plan.write_text('[[faults]]\nkind = "fial"\noperation = "ping"\n')
    assert "Did you mean fail" in _refusal(command_line, "serve", "--faults", "plan.toml")
    plan.write_text('[[faults]]\nkind = "fail"\noperation = "ping"\nnth = 2\nstatus = 503\n')

    serving = serve("--faults", "plan.toml")

    assert [200, 503] == [http.get(f"{serving.url}/ping").status_code for _ in range(2)]


def test_ledger_is_listed(command_line: CommandLine) -> None:
    """As a table for people, as JSON for programs."""
    table = command_line.run("unknowns").stdout
    listed = json.loads(command_line.run("unknowns", "--json").stdout)

    assert "U-TTL-EXTENDS" in table
    extends = next(unknown for unknown in listed if unknown["id"] == "U-TTL-EXTENDS")
    assert ["sliding"] == [alternative["name"] for alternative in extends["alternatives"]]
    assert "client asserts" == extends["rests_on"] == extends["evidence"][0]["kind"]
    assert ledger.Ledger().summary() == table.splitlines()[-1]


def test_help_has_examples(command_line: CommandLine) -> None:
    """For each command, to copy."""
    assert "agentdouble serve my_agent:app" in command_line.run("serve", "--help").stdout
    assert "agentdouble env" in command_line.run("env", "--help").stdout


def test_variables_are_printed_for_a_port_or_a_url(
    serve: Callable[..., Serving], command_line: CommandLine
) -> None:
    """The help names each client."""
    url = serve().url

    by_url = command_line.run("env", "--url", url).stdout
    by_port = command_line.run("env", "--port", url.rpartition(":")[2]).stdout
    both = command_line.run("env", "--url", url, "--port", "1")

    assert by_url == by_port != ""
    assert (2, "give one of them" in both.stderr) == (both.returncode, True)
    for command in ("env", "exec"):
        assert set(CLIENTS) <= set(re.findall(r"\w+", command_line.run(command, "--help").stdout))


def test_state_is_kept_in_a_file(serve: Callable[..., Serving], command_line: CommandLine) -> None:
    """--state names it; an unusable file is a one-line error with its name."""
    serve("--state", "sqlite:///kept.db").stop()

    refused = command_line.run("serve", "--port", "0", "--state", "sqlite:///no/folder/a.db")

    assert (command_line.folder / "kept.db").is_file()
    assert (2, "", 1) == (refused.returncode, refused.stdout, refused.stderr.count("\n"))
    assert "The state file no/folder/a.db cannot be opened" in refused.stderr


@pytest.mark.slow
def test_serves_https_and_names_its_authority(
    serve: Callable[..., Serving], command_line: CommandLine
) -> None:
    """CTL-08: the export lines name the certificate, kept in the private directory."""
    serving = serve("--tls")

    env = json.loads(command_line.run("env", "--json").stdout)

    bundle = env["SSL_CERT_FILE"]
    assert bundle.startswith(command_line.environment["XDG_STATE_HOME"])
    assert (bundle, "https") == (env["REQUESTS_CA_BUNDLE"], env["PLATFORM_TOOL_SCHEME"])
    assert f"export SSL_CERT_FILE={bundle}" in serving.greeting
    assert f"curl --cacert {bundle} {serving.url}/invoke" in serving.greeting
    context = ssl.create_default_context(cafile=bundle)
    with httpx.Client(verify=context, trust_env=False, timeout=TIMEOUT_S) as client:
        assert client.get(f"{serving.url}/ping").status_code == 200
