"""Mutants whose sandbox sessions last too long or end too early, by how they begin and are used."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from agentdouble.core import request_cause
from doublecheck.client._sync.platform import Platform
from doublecheck.client._sync.sandbox import Sandbox
from tests.mutants import Witnessed, sandbox, wire, witnesses
from tests.mutants.wire import Answer, Ask, Change, Request
from tests.mutants.witnesses import box_of, printed, require

HALF_AN_HOUR_S = 1800
PYTHON, JAVASCRIPT = "python3", "javascript"


@dataclass(frozen=True)
class Use:
    """A use of an instance: its number, from 1, and the number of the session's instance."""

    number: int
    instance: int
    body: Any
    failed: bool


Session = dict[str, Any]  # as GetSession shows it
Details = Callable[[], Awaitable[Session]]


# ---- changes


async def act(request: Request, ask: Ask, action: str, **body: Any) -> Any:
    """Call an action of the control plane, and return its Result."""
    query = {"Action": action, "Version": sandbox.VERSION}
    content = json.dumps(body).encode()
    copy = replace(request, query=query, body=content, headers=dict(request.headers))
    copy.sign()
    return ((await ask(copy)).json or {}).get("Result")


async def end_in(request: Request, ask: Ask, id_: str, seconds: int) -> None:
    """Let an instance end this many seconds later."""
    tool = request.json["ToolId"]
    named = {"ToolId": tool, "SessionId": id_}
    await act(request, ask, "SetSessionTtl", **named, Ttl=max(seconds, 1), TtlUnit="second")


def timed(seconds: Callable[[Use], int | None]) -> Change:
    """Let instances end this many seconds after some of their uses."""

    async def of_use(use: Use, _details: Details) -> int | None:
        return seconds(use)

    return timed_by_details(of_use)


def timed_by_details(seconds: Callable[[Use, Details], Awaitable[int | None]]) -> Change:
    """Let instances end this many seconds after some of their uses, by their times."""
    uses: dict[str, int] = {}
    instances: dict[Any, list[str]] = {}

    async def invoke(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        result = (answer.json or {}).get("Result")
        if result is None:
            return answer
        body, id_ = request.json, result["SessionId"]
        uses[id_] = uses.get(id_, 0) + 1
        some = instances.setdefault(body["UserSessionId"], [])
        if id_ not in some:
            some.append(id_)

        async def details() -> Session:
            return dict(await act(request, ask, "GetSession", ToolId=body["ToolId"], SessionId=id_))

        failed = '"status": "error"' in result["Result"]
        time = await seconds(Use(uses[id_], len(some), body, failed), details)
        if time is not None:
            await end_in(request, ask, id_, time)
        return answer

    return Change(wire.action(sandbox.INVOKE), around=invoke)


def after_creation_of_a_used_session(seconds: int) -> Change:
    """Let an instance end this many seconds after CreateSession, which uploads call, found it."""
    ids: set[str] = set()

    async def create(request: Request, ask: Ask) -> Answer:
        answer = await ask(request)
        id_ = answer.json["Result"]["SessionId"]
        if "CreateSession" not in request.query.values():
            ids.add(id_)
        elif id_ in ids:
            await end_in(request, ask, id_, seconds)
        return answer

    return Change(wire.action(sandbox.INVOKE, "CreateSession"), around=create)


def of_applications(seconds: int) -> Change:
    """Let instances that an application begins last this long."""

    def body(value: Any, request: Request) -> Any:
        return {"Ttl": seconds, **value} if request_cause.HEADER in request.headers else value

    return sandbox.bodies(body)


def time_of(session: Session, name: str) -> dt.datetime:
    """Return a time of a session."""
    return dt.datetime.fromisoformat(session[name].replace("Z", "+00:00"))


def rest_of_the_old_time() -> Change:
    """Let a session that is created again end when the one before would have ended."""
    ends: dict[str, dt.datetime] = {}

    async def seconds(use: Use, details: Details) -> int | None:
        if use.number > 1:
            return None
        session, name = await details(), use.body["UserSessionId"]
        old = ends.get(name)
        ends[name] = time_of(session, "ExpireAt")
        if old is None or old <= time_of(session, "CreatedAt"):
            return None
        return int((old - time_of(session, "CreatedAt")).total_seconds())

    return timed_by_details(seconds)


def with_the_one_before(*, longer: bool) -> Change:
    """Let a session end with the one that began before it, or let one of the same moment last."""
    before: list[tuple[dt.datetime, dt.datetime]] = []

    async def seconds(use: Use, details: Details) -> int | None:
        if use.number > 1:
            return None
        session = await details()
        created, end = time_of(session, "CreatedAt"), time_of(session, "ExpireAt")
        last = before[-1] if before else None
        before.append((created, end))
        if longer:
            return 2 * HALF_AN_HOUR_S if last and last[0] == created else None
        together = last is not None and created < last[1]
        return int((last[1] - created).total_seconds()) if last and together else None

    return timed_by_details(seconds)


def is_javascript(use: Use) -> bool:
    """Return whether a use runs JavaScript."""
    return f'"{JAVASCRIPT}"' in use.body["OperationPayload"]


def is_command(use: Use) -> bool:
    """Return whether a use runs a command."""
    return bool(use.body["OperationType"] == "ExecBash")


# ---- witnesses


def keep(box: Sandbox) -> None:
    """Set a variable."""
    box.run("kept = 7", check=True)


def is_kept(box: Sandbox) -> bool:
    """Return whether the variable is set."""
    return printed(box, "print(globals().get('kept'))") == "7\n"


def lasts(use: Callable[[Sandbox], object], minutes: int, *, kept: bool) -> Callable[..., None]:
    """Use a session, wait, and see whether it has ended."""

    def witness(platform: Platform) -> None:
        with platform.clock.freeze() as clock:
            box = box_of(platform)
            keep(box)
            use(box)
            clock.advance(minutes=minutes)
            require(kept, is_kept(box))

    return witness


def of_an_application(minutes: int, *, kept: bool) -> Callable[[Platform], None]:
    """Let an application begin a session, wait, and see whether it has ended."""

    def witness(platform: Platform) -> None:
        ids = {"user_id": "witness", "session_id": witnesses.new_id()}

        def run(code: str) -> str:
            result = json.loads(platform.invoke(code, do="run_code", headers=ids))
            return "".join(output["text"] for output in result["data"]["outputs"])

        with platform.clock.freeze() as clock:
            run("kept = 7")
            clock.advance(minutes=minutes)
            require(kept, run("print(globals().get('kept'))") == "7\n")

    return witness


def recreated(platform: Platform) -> None:
    """End a session after twenty minutes, begin it again, and use it twenty minutes later."""
    with platform.clock.freeze() as clock:
        box = box_of(platform)
        keep(box)
        clock.advance(minutes=20)
        assert box.destroy()
        keep(box)
        clock.advance(minutes=20)
        assert is_kept(box)


def expired(platform: Platform) -> None:
    """Wait until a session has ended, begin it again, and wait for its end again."""
    with platform.clock.freeze() as clock:
        box = box_of(platform)
        for _ in range(2):
            keep(box)
            clock.advance(minutes=31)
        require(False, is_kept(box))


def begun_together(platform: Platform) -> None:
    """Begin two sessions at the same moment, and wait for their end."""
    with platform.clock.freeze() as clock:
        boxes = [box_of(platform) for _ in range(2)]
        for box in boxes:
            keep(box)
        clock.advance(minutes=31)
        require([False, False], [is_kept(box) for box in boxes])


def begun_later(platform: Platform) -> None:
    """Begin a session fifteen minutes after another one, and use it after the end of that one."""
    with platform.clock.freeze() as clock:
        first, second = box_of(platform), box_of(platform)
        keep(first)
        clock.advance(minutes=15)
        keep(second)
        clock.advance(minutes=20)
        assert is_kept(second)


TABLE: dict[str, dict[str, Any]] = {
    "SBX-03": {
        "keep_sessions_of_applications_for_an_hour": Witnessed(
            of_applications(3600), of_an_application(45, kept=False)
        ),
        "end_sessions_of_applications_early": Witnessed(
            of_applications(1200), of_an_application(25, kept=True)
        ),
        "keep_a_session_for_two_hours_after_the_second_use": Witnessed(
            timed(lambda use: 7200 if use.number == 2 else None),
            lasts(lambda box: box.run("pass"), 45, kept=False),
        ),
        "end_a_session_early_after_the_third_use": Witnessed(
            timed(lambda use: 600 if use.number == 3 else None),
            lasts(lambda box: (box.run("pass"), box.run("pass")), 20, kept=True),
        ),
        "keep_a_session_for_two_hours_after_javascript": Witnessed(
            timed(lambda use: 7200 if is_javascript(use) and use.number > 1 else None),
            lasts(lambda box: box.run("1", JAVASCRIPT), 45, kept=False),
        ),
        "end_a_used_session_early_after_a_command": Witnessed(
            timed(lambda use: 600 if is_command(use) and use.number > 1 else None),
            lasts(lambda box: box.exec_bash("true"), 20, kept=True),
        ),
        "end_a_session_early_after_a_failure": Witnessed(
            timed(lambda use: 600 if use.failed else None),
            lasts(lambda box: box.run("1 / 0"), 20, kept=True),
        ),
        "end_a_used_session_early_after_an_upload": Witnessed(
            after_creation_of_a_used_session(600),
            lasts(lambda box: box.upload("/tmp/file", b"content"), 20, kept=True),
        ),
        "give_a_recreated_session_the_rest_of_the_old_time": Witnessed(
            rest_of_the_old_time(), recreated
        ),
        "give_the_second_instance_an_hour": Witnessed(
            timed(lambda use: 3600 if (use.number, use.instance) == (1, 2) else None), expired
        ),
        "give_the_second_of_one_moment_an_hour": Witnessed(
            with_the_one_before(longer=True), begun_together
        ),
        "end_a_session_with_the_one_before": Witnessed(
            with_the_one_before(longer=False), begun_later
        ),
    },
}
