from __future__ import annotations

import datetime as dt
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest

from agentdouble import Emulator
from agentdouble.control_plane.wire import stamp
from tests.agentdouble.calling import Begun, act, body_of, http, refusal, result, run

TOOL = "t-sandbox"
MINUTE = dt.timedelta(minutes=1)


def create(double: Emulator, name: str | None = "u", **fields: Any) -> dict[str, Any]:
    named = {} if name is None else {"UserSessionId": name}
    return act(double, "CreateSession", ToolId=TOOL, **named, **fields)


def get(double: Emulator, session_id: str) -> dict[str, Any]:
    return act(double, "GetSession", ToolId=TOOL, SessionId=session_id)


def names(double: Emulator, **query: Any) -> list[str]:
    listed = act(double, "ListSessions", ToolId=TOOL, **query)["SessionInfos"]
    return [session["UserSessionId"] for session in listed]


def run_in(double: Emulator, session_id: str, code: str) -> dict[str, Any]:
    """Run code in the session with this SessionId and return the JSON of section 2.7."""
    body = {**body_of(double, code), "SessionId": session_id}
    del body["UserSessionId"]
    inner: dict[str, Any] = json.loads(act(double, "InvokeTool", **body)["Result"])
    return inner


def test_created_session_runs_code(double: Emulator) -> None:
    """InvokeTool accepts either id."""
    session = create(double)

    first = result(double, "x = 1", "u")
    two = run_in(double, session["SessionId"], "print(x)")

    assert (session["SessionId"], "1\n") == (first["SessionId"], two["data"]["outputs"][0]["text"])


def test_session_fields(double: Emulator) -> None:
    """The Endpoint has the client's Host, the instance and its token."""
    session = create(double, Ttl=10, TtlUnit="minute")

    described = get(double, session["SessionId"])

    created = dt.datetime.fromisoformat(described["CreatedAt"].replace("Z", "+00:00"))
    assert {
        "SessionId": session["SessionId"],
        "UserSessionId": "u",
        "ToolType": "CodeEnv",
        "Status": "Ready",
        "CreatedAt": stamp(created),
        "ExpireAt": stamp(created + 10 * MINUTE),
        "Endpoint": session["Endpoint"],
        "InternalEndpoint": "",
        "Metadata": [],
    } == described
    url = urlsplit(session["Endpoint"])
    assert double.url == f"{url.scheme}://{url.netloc}"
    assert [session["SessionId"]] == parse_qs(url.query)["faasInstanceName"]
    assert {"SessionId", "UserSessionId", "Endpoint", "InternalEndpoint"} == session.keys()


def test_missing_user_session_id_is_generated(double: Emulator) -> None:
    """Each such session is new."""
    first, other = create(double, None), create(double, None)

    assert first["SessionId"] != other["SessionId"]
    assert first["UserSessionId"] != other["UserSessionId"]
    assert first["SessionId"] == result(double, "1", first["UserSessionId"])["SessionId"]


def test_concurrent_create_and_invoke_make_one_session(double: Emulator) -> None:
    with ThreadPoolExecutor(20) as pool:
        pending = [
            pool.submit(lambda: create(double, "race")["SessionId"])
            if number % 2
            else pool.submit(lambda: result(double, "1", "race")["SessionId"])
            for number in range(40)
        ]
        ids = {future.result() for future in pending}

    assert 1 == len(ids)


_PRINTS_ENVIRONMENT = {
    "python3": "import os; print(os.environ['A'], os.environ['B'], os.environ.get('SECRET'))",
    "javascript": "console.log(process.env.A, Deno.env.get('B'), process.env.SECRET)",
    "typescript": "const a: string = process.env.A; console.log(a, process.env.B, process.env.SECRET)",
    "bash": "echo $A $B $SECRET",
}


@pytest.mark.parametrize("language", _PRINTS_ENVIRONMENT)
def test_session_has_its_environment(
    double: Emulator, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Envs override those of the tool; later ones are listed as unread; the double's are hidden."""
    monkeypatch.setenv("SECRET", "of the double")
    envs = [{"Key": "A", "Value": "tool"}, {"Key": "B", "Value": "tool"}]
    tool = act(double, "CreateTool", Name=language, ToolType="CodeEnv", Envs=envs)["ToolId"]
    body = {"ToolId": tool, "UserSessionId": "u"}
    act(double, "CreateSession", **body, Envs=[{"Key": "B", "Value": "session"}])
    act(double, "CreateSession", **body, Envs=[{"Key": "B", "Value": "late"}])

    noted = double.journal.entries()[-1].unread
    asked = body_of(double, _PRINTS_ENVIRONMENT[language], "u", language=language)
    ran = act(double, "InvokeTool", **{**asked, "ToolId": tool})

    assert ["Envs"] == noted
    missing = {"python3": " None", "bash": ""}.get(language, " undefined")
    assert f"tool session{missing}\\n" in ran["Result"]


def test_ttl_can_be_changed(double: Emulator) -> None:
    """SetSessionTtl counts from now, in seconds or minutes."""
    session = create(double)["SessionId"]
    body = {"ToolId": TOOL, "SessionId": session}
    double.clock.advance(10 * MINUTE)

    seconds = act(double, "SetSessionTtl", **body, Ttl=3600)
    minutes = act(double, "SetSessionTtl", **body, Ttl="90", TtlUnit="minute")
    double.clock.advance(89 * MINUTE)
    alive = names(double)
    double.clock.advance(MINUTE)

    assert {**body, "ExpireAt": minutes["ExpireAt"]} == minutes
    assert seconds["ExpireAt"] < minutes["ExpireAt"]
    assert (["u"], []) == (alive, names(double))


def test_paused_session_runs_nothing_until_resumed(double: Emulator) -> None:
    """PauseSession and ResumeSession; a Ttl restarts the validity."""
    session = create(double)["SessionId"]
    body = {"ToolId": TOOL, "SessionId": session}

    paused = act(double, "PauseSession", **body)
    again = act(double, "PauseSession", **body)
    refused = refusal(double, "InvokeTool", **body_of(double, "1", "u"))
    status = get(double, session)["Status"]
    double.clock.advance(20 * MINUTE)
    resumed = act(double, "ResumeSession", **body, Ttl=60, TtlUnit="minute")
    double.clock.advance(59 * MINUTE)

    assert {"SessionId": session, "Status": "Paused"} == paused == again
    assert (409, "InvalidResource.Paused") == refused[:2]
    assert "Paused" == status
    assert {"SessionId": session, "Status": "Ready", "ExpireAt": resumed["ExpireAt"]} == resumed
    assert run(double, "1", "u")["success"]


def test_deleted_session_is_gone(double: Emulator) -> None:
    """Its processes have ended before the answer; errors for its id say when and why."""
    session = create(double)["SessionId"]
    run_in(double, session, "1")
    (pid,) = http.get(f"{double.url}/_emulator/sessions").json()["sessions"][0]["pids"]

    assert {"SessionId": session} == act(double, "DeleteSession", SessionId=session)

    assert not psutil.pid_exists(pid)
    (ended,) = http.get(f"{double.url}/_emulator/sessions").json()["ended"]
    at = stamp(dt.datetime.fromisoformat(ended["ended_at"]))
    ended_message = f"The instance of session {session!r} has ended: deleted by caller, at {at}."
    body = {"ToolId": TOOL, "SessionId": session}
    for action, more in (
        ("GetSession", {}),
        ("DeleteSession", {}),
        ("PauseSession", {}),
        ("ResumeSession", {}),
        ("SetSessionTtl", {"Ttl": 60}),
        ("InvokeTool", {**body_of(double, "1"), "UserSessionId": None}),
    ):
        assert (404, "InvalidResource.NotFound", ended_message) == refusal(
            double, action, **{**more, **body}
        )


def test_deleting_a_session_fails_running_code(double: Emulator) -> None:
    """The answer says why the context is gone."""
    session = create(double)["SessionId"]
    running = Begun(double, "u", "print('never')")

    act(double, "DeleteSession", SessionId=session)

    inner = running.future.result(60)
    assert "error" == inner["data"]["status"]
    assert "deleted by caller" in inner["message"]


def test_ended_sessions_can_be_listed() -> None:
    """U-TOOL-SESSION-ENDED terminated: with that Status and no Endpoint."""
    with Emulator(unknowns={"U-TOOL-SESSION-ENDED": "terminated"}) as double:
        session = create(double, Ttl=60)["SessionId"]
        before = get(double, session)
        double.clock.advance(MINUTE)

        assert {**before, "Status": "Terminated", "Endpoint": ""} == get(double, session)
        assert ["u"] == names(double, Filters=[{"Name": "Status", "Values": ["Terminated"]}])
        assert 404 == refusal(double, "GetSession", ToolId=TOOL, SessionId="s-none")[0]


def test_ended_sessions_linger_in_lists(tmp_path: Path) -> None:
    """U-TOOL-SESSION-ENDED lingers: for five minutes, also across a restart."""
    options: dict[str, Any] = {
        "state": f"sqlite:///{tmp_path / 'state.db'}",
        "unknowns": {"U-TOOL-SESSION-ENDED": "lingers"},
    }

    def statuses(double: Emulator) -> dict[str, str]:
        listed = act(double, "ListSessions", ToolId=TOOL)["SessionInfos"]
        return {session["UserSessionId"]: session["Status"] for session in listed}

    with Emulator(**options) as double, double.clock.freeze():
        expired = create(double, "expired", Ttl=60)["SessionId"]
        create(double, "lives", Ttl=3600)
        double.clock.advance(MINUTE)
        deleted = create(double, "deleted")["SessionId"]
        act(double, "DeleteSession", SessionId=deleted)
        double.clock.advance(5 * MINUTE - dt.timedelta(seconds=1))

        shown = get(double, expired)
        assert {"expired": "Expired", "lives": "Ready", "deleted": "Terminated"} == statuses(double)
        assert ("Expired", "", shown["ExpireAt"]) == (
            *(shown["Status"], shown["Endpoint"]),
            stamp(dt.datetime.fromisoformat(shown["CreatedAt"].replace("Z", "+00:00")) + MINUTE),
        )
        assert "Terminated" == get(double, deleted)["Status"]
        assert 404 == refusal(double, "SetSessionTtl", ToolId=TOOL, SessionId=expired, Ttl=60)[0]

        double.clock.advance(seconds=1)
        assert {"lives": "Ready"} == statuses(double)
        for session in (expired, deleted):
            assert 404 == refusal(double, "GetSession", ToolId=TOOL, SessionId=session)[0]

    with Emulator(**options) as double:
        assert "Terminated" == statuses(double)["lives"]
        double.clock.advance(11 * MINUTE)  # the clock of the first one was 6 minutes ahead
        assert {} == statuses(double)


@pytest.mark.needs("files", "pid_namespace")
def test_short_lifetimes_can_be_refused() -> None:
    """U-TOOL-TTL-LIMITS from-60: every action with a Ttl refuses less than a minute."""
    with Emulator(unknowns={"U-TOOL-TTL-LIMITS": "from-60"}) as double:
        session = create(double, Ttl=60)["SessionId"]
        ids = {"ToolId": TOOL, "SessionId": session}
        snapshot = act(double, "CreateSessionSnapshot", **ids)["SnapshotId"]
        before = get(double, session)

        refused = [
            refusal(double, "CreateSession", ToolId=TOOL, Ttl="59"),
            refusal(double, "SetSessionTtl", **ids, Ttl=1),
            refusal(double, "ResumeSession", **ids, Ttl=59, TtlUnit="second"),
            refusal(double, "InvokeTool", **body_of(double, "1", "u", ttl_s=59)),
            refusal(double, "ResumeSessionFromSnapshot", ToolId=TOOL, SnapshotId=snapshot, Ttl=59),
        ]
        act(double, "SetSessionTtl", **ids, Ttl=1, TtlUnit="minute")

        message = "The parameter Ttl is invalid: it must be at least 60 seconds."
        assert {(400, "InvalidParameter", message)} == set(refused)
        assert (["u"], before["CreatedAt"]) == (names(double), get(double, session)["CreatedAt"])


def test_session_belongs_to_its_tool(double: Emulator) -> None:
    """Other tools neither find nor list it."""
    session = create(double)["SessionId"]
    other = act(double, "CreateTool", Name="other", ToolType="CodeEnv")["ToolId"]

    unknown = (404, "InvalidResource.NotFound", f"There is no session instance {session!r}.")
    body = {"ToolId": other, "SessionId": session}
    assert unknown == refusal(double, "GetSession", **body)
    assert unknown == refusal(double, "DeleteSession", **body)
    assert unknown == refusal(
        double, "InvokeTool", **{**body_of(double, "1"), "UserSessionId": None, **body}
    )
    assert [] == act(double, "ListSessions", ToolId=other)["SessionInfos"]


def test_both_ids_must_match_the_same_session(double: Emulator) -> None:
    """A SessionId does not open another user's session."""
    ann, bob = create(double, "mine")["SessionId"], create(double, "theirs")["SessionId"]

    good = act(double, "InvokeTool", **{**body_of(double, "1", "mine"), "SessionId": ann})
    refused = refusal(double, "InvokeTool", **{**body_of(double, "1", "mine"), "SessionId": bob})

    assert ann == good["SessionId"]
    assert (
        400,
        "InvalidParameter",
        f"The parameter UserSessionId is invalid: the session {bob!r} belongs to 'theirs'.",
    ) == refused


def test_list_filters_and_time_windows(double: Emulator) -> None:
    """Exact and partial, by id, user session and status; windows for creation and expiry."""
    first = create(double, "alpha", Ttl=60)["SessionId"]
    second = create(double, "beta", Ttl=3600)["SessionId"]
    act(double, "PauseSession", ToolId=TOOL, SessionId=second)

    def filtered(kind: str, name: str, *values: str) -> list[str]:
        return names(double, Filters=[{kind: name, "Values": list(values)}])

    assert ["alpha"] == filtered("Name", "UserSessionId", "alpha")
    assert ["alpha", "beta"] == filtered("NameContains", "UserSessionId", "a")
    assert ["alpha"] == filtered("Name", "Id", first)
    assert ["beta"] == filtered("Name", "SessionId", second)
    assert ["beta"] == filtered("Name", "Status", "Paused")
    expires = get(double, first)["ExpireAt"]
    assert ["alpha"] == names(double, ExpireTimeBefore=expires)
    assert ["alpha", "beta"] == names(double, ExpireTimeAfter=expires)
    assert [] == names(double, CreateTimeAfter="2999-01-01T00:00:00Z")


def test_list_pages(double: Emulator) -> None:
    """Sessions are listed once each, in creation order."""
    names = [create(double, f"u-{number}")["UserSessionId"] for number in range(5)]

    first = act(double, "ListSessions", ToolId=TOOL, MaxResults=2)
    second = act(double, "ListSessions", ToolId=TOOL, MaxResults=10, NextToken=first["NextToken"])

    listed = [*first["SessionInfos"], *second["SessionInfos"]]
    assert (names, "") == ([session["UserSessionId"] for session in listed], second["NextToken"])


def test_log_lists_the_events(double: Emulator) -> None:
    """Creation, runs, pause and end with their times; code takes one line."""
    session = create(double)["SessionId"]
    body = {"ToolId": TOOL, "SessionId": session}
    expires = get(double, session)["ExpireAt"]
    run_in(double, session, "x = 1\nprint('\x1b[31m')")
    run_in(double, session, "1 / 0")
    pid = http.get(f"{double.url}/_emulator/sessions").json()["sessions"][0]["pids"][0]
    act(double, "PauseSession", **body)
    act(double, "ResumeSession", **body)
    last = act(double, "GetSessionLogs", **body, Limit=1)["Logs"]
    act(double, "DeleteSession", SessionId=session)

    lines = act(double, "GetSessionLogs", **body)["Logs"].splitlines()

    times = [dt.datetime.fromisoformat(line.split("Z ")[0]) for line in lines]
    assert sorted(times) == times
    assert [
        f"created; expires at {expires}",
        r"was asked to run python3: x = 1\nprint('\x1b[31m')",
        f"started its Python kernel, process {pid}",
        "ran execution 1: ok",
        "was asked to run python3: 1 / 0",
        "ran execution 2: error",
        "paused",
        "resumed",
        "ended: deleted by caller",
    ] == [line.partition("Z ")[2] for line in lines]
    assert last.endswith("Z resumed\n")


def test_unsupported_fields_are_refused_by_name(double: Emulator) -> None:
    """The double has no custom images and no mounted storage."""
    image = {"Image": "i", "Command": "c", "Port": 1}
    for field, value in (("ImageInfo", image), ("TosMountPoints", [{"BucketName": "b"}])):
        status, code, message = refusal(
            double, "CreateSession", ToolId=TOOL, UserSessionId="u", **{field: value}
        )
        assert (501, "NotImplemented") == (status, code)
        assert field in message
    assert [] == names(double)


@pytest.mark.parametrize(
    ("action", "fields", "named"),
    [
        ("CreateSession", {"UserSessionId": "a b"}, "UserSessionId"),
        ("CreateSession", {"Ttl": 1441, "TtlUnit": "minute"}, "Ttl"),
        ("CreateSession", {"TtlUnit": "hour"}, "TtlUnit"),
        ("SetSessionTtl", {"Ttl": 86_401}, "Ttl"),
        ("ListSessions", {"Filters": [{"Name": "Name", "Values": ["x"]}]}, "Filters.0.Name"),
    ],
    ids=str,
)
def test_invalid_fields_are_refused_by_name(
    double: Emulator, action: str, fields: dict[str, Any], named: str
) -> None:
    """Nothing changes."""
    request: dict[str, Any] = {"ToolId": TOOL}
    if action not in ("CreateSession", "ListSessions"):
        request |= {"SessionId": create(double)["SessionId"], "Ttl": 60}
    before = act(double, "ListSessions", ToolId=TOOL)

    status, code, message = refusal(double, action, **{**request, **fields})

    assert (400, "InvalidParameter") == (status, code)
    assert message.startswith(f"The parameter {named} is invalid: ")
    assert before == act(double, "ListSessions", ToolId=TOOL)
