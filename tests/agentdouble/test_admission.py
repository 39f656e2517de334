"""Who may call what asks for no credentials, and the double's own routes."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from agentdouble import A2AApp, Emulator, SimpleApp
from agentdouble.invoke_tool import Address, RunCode, build, read
from agentdouble.processes.fork_server.confinement import Confinement
from agentdouble.runtimes import confining
from agentdouble.signing import Credentials
from tests.agentdouble.calling import call, data_plane, http, text
from tests.agentdouble.processes.becoming import ORDINARY, ROOT, as_user
from tests.agentdouble.runtimes.asking import ask, asking

OWN = ("/_emulator/journal", "/_emulator/reset", "/_emulator/clock", "/_emulator/faults")
OPEN = ("/invoke", "/run", "/run_sse", "/mcp", "/list-apps", "/apps/echo/users/ann/sessions", "/")
PAGE = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
FRAME = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
OPENED = {**FRAME, "Sec-Fetch-Dest": "document"}
SCRIPT = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}
LINK = {**OPENED, "Sec-Fetch-Site": "cross-site"}
EXTENSION = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
TYPED = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


def refused(answer: httpx.Response) -> str | None:
    """Return the kind of a refusal, None for any other answer."""
    if answer.status_code != 403:
        return None
    error = answer.json()["error"]
    kind: str = error.get("data", error)["type"]
    return kind


@pytest.mark.parametrize("path", [*OWN, *OPEN])
@pytest.mark.parametrize("said", [PAGE, FRAME, OPENED, SCRIPT, LINK, EXTENSION], ids=str)
def test_a_web_page_reaches_nothing_that_lets_anybody_in(
    double: Emulator, path: str, said: dict[str, str]
) -> None:
    """Also one of the double's own origin, which a runtime has served."""
    got = http.get(double.url + path, headers=said)
    posted = http.post(double.url + path, headers={**said, "Origin": double.url}, json={})

    assert ["ForbiddenOrigin"] * 2 == [refused(got), refused(posted)]


@pytest.mark.parametrize("path", ["/_emulator/clock", "/list-apps"])
def test_a_page_of_no_origin_is_refused(double: Emulator, path: str) -> None:
    """As a sandboxed frame is."""
    assert "ForbiddenOrigin" == refused(
        http.get(double.url + path, headers={**PAGE, "Origin": "null"})
    )


@pytest.mark.parametrize(("agent", "status"), [("Mozilla/5.0 (X11)", 403), (None, 501)])
def test_a_websocket_with_an_origin_is_a_page_s_if_a_browser_opens_it(
    double: Emulator, agent: str | None, status: int
) -> None:
    """Python's websocket-client names the address that it calls as its origin."""
    url = f"{double.url.replace('http', 'ws', 1)}/run_live?app_name=echo&user_id=u&session_id=s"
    with (
        pytest.raises(InvalidStatus) as answered,
        connect(url, origin=Origin(double.url), user_agent_header=agent, proxy=None),
    ):
        pass

    assert status == answered.value.response.status_code


def test_a_program_may_send_the_origin_of_the_double(double: Emulator) -> None:
    """Clients of MCP send the address of the server; all of loopback's names are the double's."""
    port = double.url.rpartition(":")[2]
    names = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]

    def statuses(headers: dict[str, str]) -> set[int]:
        url = f"{double.url}/list-apps"
        return {
            http.get(url, headers={"Host": host, "Origin": f"http://{name}", **headers}).status_code
            for host in names
            for name in names
        }

    assert {200} == statuses({})
    assert {403} == statuses({"User-Agent": "Mozilla/5.0 (X11)"})
    assert {403} == statuses({"Sec-Fetch-Site": "same-origin"})


def test_by_names_for_which_browsers_tell_nothing_an_origin_is_a_page_s() -> None:
    """A script may send any User-Agent, and over plain http a browser adds no Sec-Fetch-Site."""
    with Emulator(allow_hosts=["double.example"]) as double:
        headers = {"Host": "double.example", "Origin": "http://double.example"}

        assert "ForbiddenOrigin" == refused(http.get(f"{double.url}/list-apps", headers=headers))


def test_a_page_that_is_named_may_call() -> None:
    """One of the double's own origin by that origin, though its GETs have no Origin."""
    page = "http://page.example"
    with Emulator(port=0, allow_origins=[page]) as double:
        elsewhere = [
            http.get(
                double.url + path, headers={**SCRIPT, "Sec-Fetch-Mode": "cors", "Origin": page}
            )
            for path in ("/_emulator/clock", "/list-apps")
        ]
        own = http.get(f"{double.url}/_emulator/clock", headers=PAGE)
        port = int(double.url.rpartition(":")[2])
    with Emulator(port=port, allow_origins=[double.url]) as double:
        named = http.get(f"{double.url}/_emulator/clock", headers=PAGE)

    assert [200, 200, 403, 200] == [one.status_code for one in (*elsewhere, own, named)]


@pytest.mark.parametrize("path", ["/_emulator/journal", "/list-apps"])
def test_a_person_may_look(double: Emulator, path: str) -> None:
    """By typing an address; no page of the double's origin can read what comes of it."""
    answer = http.get(double.url + path, headers=TYPED)

    assert 200 == answer.status_code
    assert ("no-store", "sandbox") == (
        answer.headers["cache-control"],
        answer.headers["content-security-policy"],
    )


def test_a_person_may_only_look(double: Emulator) -> None:
    """What changes something is no address to type."""
    assert "ForbiddenOrigin" == refused(http.post(f"{double.url}/_emulator/reset", headers=TYPED))


def test_a_page_that_holds_a_token_may_use_it(shared: Emulator) -> None:
    """A session's token opens its data plane to whoever has it."""
    plane = data_plane(shared, "held-by-a-page")
    headers = {**PAGE, "Origin": shared.url}
    answer = http.get(f"{plane.url}/v1/sandbox", params=plane.query, headers=headers)

    assert 200 == answer.status_code


def test_names_by_which_browsers_tell_nothing_do_not_reach_the_own_routes() -> None:
    """Over plain http a browser says for which page it asks to loopback's names alone."""
    with Emulator(allow_hosts=["double.example"]) as double:
        headers = {"Host": "double.example"}
        own = http.get(f"{double.url}/_emulator/health", headers=headers)
        other = http.get(f"{double.url}/ping", headers=headers)

    assert ("ForbiddenClient", 200) == (refused(own), other.status_code)


ATTACK = """
import json, urllib.error, urllib.request
def ask(path, data=None, headers={{}}):
    request = urllib.request.Request({url!r} + path, data, headers)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
prompt = json.dumps({{"prompt": "print(6 * 7)"}}).encode()
somebody = {{"user_id": "ann", "session_id": "s1"}}
print(json.dumps([
    ask("/invoke", prompt, somebody),
    ask("/run", b"{{}}"),
    ask("/mcp", b"{{}}"),
    ask("/", b"{{}}"),
    ask("/list-apps"),
    ask("/apps/echo/users/ann/sessions"),
    ask("/ping"),
    ask("/_emulator/journal"),
]))
"""


def attacked(run: Callable[[str], str], url: str) -> list[int]:
    """Return what code of a session is answered."""
    found: list[int] = json.loads(run(ATTACK.format(url=url)))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose a socket is")
@pytest.mark.parametrize("settings", [{}, {"isolation": "none"}], ids=str)
def test_code_of_a_session_reaches_nothing_that_lets_anybody_in(settings: dict[str, Any]) -> None:
    """As another user it would read that one's variables; others still reach it."""
    with Emulator(**settings) as double:
        said = attacked(lambda code: text(double, code), double.url)
        here = [http.get(double.url + path).status_code for path in ("/list-apps", "/ping")]

    assert ([403] * 8, [200, 200]) == (said, here)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose a socket is")
@pytest.mark.parametrize("uid", [ROOT, ORDINARY])
def test_it_does_not_whatever_user_the_double_is(uid: int, tmp_path: Path) -> None:
    """Where sessions are users of their own, and where they are the double's."""
    if os.geteuid() != ROOT and uid == ROOT:
        pytest.skip("needs root")
    with served(uid, tmp_path) as (url, run):
        assert [403] * 8 == attacked(run, url)
        assert 200 == http.get(f"{url}/list-apps").status_code


@contextmanager
def served(uid: int, directory: Path) -> Iterator[tuple[str, Callable[[str], str]]]:
    """Serve a double as a user; yield its address, and what runs code in a session."""
    pair = Credentials("AKLTtest", "secret")
    directory.chmod(0o755)
    home = directory / "home"
    home.mkdir()
    os.chown(home, uid if os.geteuid() == ROOT else -1, -1)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": "/tmp",
        "AGENTDOUBLE_ACCESS_KEY": pair.access_key,
        "AGENTDOUBLE_SECRET_KEY": pair.secret_key,
    }
    process = subprocess.Popen(
        as_user(uid, "tests.agentdouble.serving_double"),
        env=environment,
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    try:
        yield url, lambda code: _ran(Address(url, pair), code)
    finally:
        process.communicate("", 30)


def _ran(address: Address, code: str) -> str:
    body = RunCode("t-sandbox", "attacker", code).body()
    asked = build(body, address, dt.datetime.now(dt.timezone.utc))
    answer = http.request(asked.method, asked.url, headers=dict(asked.headers), content=asked.body)
    inner = json.loads(read(answer.status_code, answer.content).result)
    assert inner["data"]["status"] == "ok", inner
    return "".join(one["text"] for one in inner["data"]["outputs"])


def test_sessions_can_be_let_in() -> None:
    """By a setting, but for the double's own routes."""
    with Emulator(allow_sessions=True) as double:
        said = attacked(lambda code: text(double, code), double.url)

    assert 200 == said[0]
    assert 403 not in said[:7]
    assert 403 == said[7]


def test_code_of_a_session_that_shows_credentials_is_let_in() -> None:
    """A signature, the token of a session, a key of an application or a runtime."""
    app = A2AApp("keyed", runner="echo", keys=("key-of-the-app",))
    with Emulator(app) as double:
        sign = call(double, {}).request
        plane = data_plane(double)
        code = f"""
import json, urllib.error, urllib.request
def ask(url, data, headers):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, data, headers)).status
    except urllib.error.HTTPError as error:
        return error.code
print(json.dumps([
    ask({str(sign.url)!r}, {sign.content!r}, {dict(sign.headers)!r}),
    ask({f"{plane.url}/v1/sandbox?" + "&".join(f"{k}={v}" for k, v in plane.query.items())!r}, None, {{}}),
    ask({double.url!r} + "/", b"{{}}", {{"Authorization": "Bearer key-of-the-app"}}),
    ask({double.url!r} + "/", b"{{}}", {{"Authorization": "Bearer another"}}),
]))
"""
        assert [400, 200, 200, 401] == json.loads(text(double, code))


@pytest.mark.parametrize("user", ["own", "the double's"])
def test_a_runtime_may_call_what_lets_anybody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    """As agents call each other; the double's own routes stay closed to it, whose user it is."""
    if user != "own":  # as everything is that an ordinary user starts, with limits all the same

        def confinement_of(*args: Any) -> Confinement | None:
            found = confining.confinement_of(*args)
            return found and dataclasses.replace(found, uid=None, process_limit=256)

        monkeypatch.setattr("agentdouble.runtimes.forking.confinement_of", confinement_of)
    with Emulator(runtimes=[asking("agent", tmp_path)]) as double:
        said = [
            ask(double, "agent", connected(double, path))
            for path in ("/list-apps", "/_emulator/health")
        ]

    assert [200, 403] == said


@pytest.mark.skipif(os.geteuid() != ROOT, reason="another user is only root's to become")
def test_a_runtime_of_a_closed_directory_does_not_reach_the_own_routes(tmp_path: Path) -> None:
    """It runs as the directory's owner, who is neither the double's user nor a session's."""
    table = asking("agent", tmp_path)
    for path in (tmp_path, *tmp_path.iterdir()):
        os.chown(path, ORDINARY, ORDINARY)
    tmp_path.chmod(0o700)
    with Emulator(runtimes=[table]) as double:
        uid = ask(double, "agent", "os.getuid()")
        said = ask(double, "agent", connected(double, "/_emulator/health"))

    assert (ORDINARY, 403) == (uid, said)


def connected(double: Emulator, path: str) -> str:
    """Return an expression that asks the double for a path, and has the status as its value."""
    host = double.url.partition("://")[2]
    made = f"__import__('http.client').client.HTTPConnection({host!r})"
    return f"[c := {made}, c.request('GET', {path!r}), c.getresponse().status][2]"


def test_who_calls_is_found_out_once_for_a_connection(
    double: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each further request of it costs nothing."""
    found: list[object] = []
    look_up = double._platform.rules.caller

    async def counted(*ends: Any) -> Any:
        found.append(ends)
        return await look_up(*ends)

    rules = double._platform.rules
    monkeypatch.setitem(rules.__dict__, "caller", counted)
    with httpx.Client(base_url=double.url, trust_env=False) as client:
        statuses = [client.get(path).status_code for path in ("/list-apps", "/ping") * 3]

    assert ([200] * 6, 1) == (statuses, len(found))


def test_no_caller_is_looked_up_where_a_key_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key decides."""
    with Emulator(SimpleApp("any"), api_key="key") as double:
        monkeypatch.setitem(double._platform.rules.__dict__, "caller", None)
        answer = http.get(f"{double.url}/_emulator/health", headers={"X-Api-Key": "key"})

    assert 200 == answer.status_code
