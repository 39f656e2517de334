"""Mutants of API-server mode (API) and of its authorization (AUT)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.mutants.changes import (
    OfValue,
    admitted,
    always,
    answers_after_the_first,
    at,
    cut,
    drop,
    misread,
    previous,
    where,
)
from tests.mutants.wire import (
    DROP,
    Answer,
    Ask,
    Change,
    Request,
    answers,
    around,
    data_of,
    events,
    in_place,
    refused,
    requested,
    requests,
    routed,
    statuses,
)

SESSIONS = "/apps/{app}/users/{user}/sessions"
SESSION = f"{SESSIONS}/{{session}}"
LIST, CREATE, NAMED = f"GET {SESSIONS}", f"POST {SESSIONS}", f"POST {SESSION}"
READ, DELETE, ARTIFACTS = f"GET {SESSION}", f"DELETE {SESSION}", f"GET {SESSION}/artifacts"
RUN, STREAM, RUNS = "POST /run", "POST /run_sse", "POST /run*"
APPS, HEALTH, VERSION = "GET /list-apps", "GET /health", "GET /version"
Owner = tuple[str, str, str]  # application, user, session


# ---- what events are


def parts_of(event: Any) -> Any:
    """Return the parts of an event."""
    return (event.get("content") or {}).get("parts") or ()


def text_of(event: Any) -> str:
    """Return the text of an event."""
    return "".join(part.get("text", "") for part in parts_of(event))


def is_call(event: Any) -> bool:
    """Return whether an event is a tool call."""
    return any("functionCall" in part for part in parts_of(event))


def is_increment(event: Any) -> bool:
    """Return whether an event is an increment."""
    return bool(event.get("partial"))


def is_reply(event: Any) -> bool:
    """Return whether an event is a final reply."""
    role = (event.get("content") or {}).get("role")
    return role == "model" and bool(text_of(event)) and not is_increment(event)


# ---- events


def text(change: Callable[[str], Any]) -> OfValue:
    """Change the texts of an event."""
    return at("content.parts.*.text", change)


def role(name: str) -> OfValue:
    """Change the role of model messages."""
    return at("content.role", lambda value: name if value == "model" else value)


def of_run(change: OfValue) -> Change:
    """Change the list of events that /run returns."""
    return answers(RUN, where(lambda value: isinstance(value, list), change))


def each_event(change: OfValue) -> OfValue:
    """Change each event of a list; DROP omits it."""

    def changed(some: list[Any]) -> list[Any]:
        return [event for event in map(change, some) if event is not DROP]

    return changed


def runs(change: OfValue) -> list[Change]:
    """Change each event of /run and of /run_sse."""
    return [of_run(each_event(change)), events(STREAM, change)]


def history(change: OfValue) -> Change:
    """Change the events of a session when it is read."""
    return answers(READ, at("events", change))


def lost(select: Callable[[Any], Any]) -> OfValue:
    """Omit events."""
    return where(select, always(DROP))


def increments(change: OfValue) -> Change:
    """Change increments only."""
    return events(STREAM, where(is_increment, change))


def stream_events(change: Callable[[dict[str, Any], Any], Any], route: str = STREAM) -> Change:
    """Change the events of a stream, given the events ``seen`` and the events ``held`` back."""

    def changed(event: Any, request: Request) -> Any:
        request.state.setdefault("seen", [])
        request.state.setdefault("held", [])
        result = change(request.state, event)
        request.state["seen"].append(event)
        return result

    return events(route, changed)


def hold_back(join: Callable[[list[Any]], list[Any]]) -> Any:
    """Hold increments back until another event arrives."""

    def changed(state: dict[str, Any], event: Any) -> Any:
        if is_increment(event):
            state["held"].append(event)
            return DROP
        waiting, state["held"] = state["held"], []
        return [*join(waiting), event]

    return changed


def joined(waiting: list[Any]) -> list[Any]:
    """Join all increments into one."""
    joined_text = "".join(map(text_of, waiting))
    return [text(always(joined_text))(waiting[0])] if waiting else []


def so_far(state: dict[str, Any], event: Any) -> Any:
    """Send the whole text so far in each increment."""
    before = "".join(text_of(event) for event in state["seen"] if is_increment(event))
    return text(lambda now: before + now)(event) if is_increment(event) else event


def after_call(state: dict[str, Any], event: Any) -> Any:
    """Omit the reply after a tool call."""
    return DROP if is_reply(event) and any(map(is_call, state["seen"])) else event


def python(raw: bytes) -> bytes:
    """Write an event in Python syntax."""
    return f"data: {data_of(raw)}\n\n".encode()


# ---- requests


def message(change: OfValue) -> Change:
    """Change the message of run requests."""
    return requests(RUNS, at("newMessage", change))


def words(change: Callable[[str], str]) -> Change:
    """Change the texts in the message of run requests."""
    return message(at("parts.*.text", change))


def segment(index: int, change: Callable[[str], str], route: str) -> Change:
    """Change a segment of the path: apps, app, users, user, sessions, session."""

    def change_request(request: Request) -> None:
        segments = request.path.strip("/").split("/")
        segments[index] = change(segments[index])
        request.path = "/" + "/".join(segments)

    return requested(route, change_request)


def owner_of(request: Request) -> Owner:
    """Return the application, user and session in a path."""
    segments = [*request.path.strip("/").split("/"), ""]
    return segments[1], segments[3], segments[5]


def renamed(change: Callable[[str], str], *, stored: bool) -> list[Change]:
    """Change the ids of named sessions; ``stored`` hides the change when they are created."""

    def answered_as(document: Any, request: Request) -> Any:
        named = request.state.get("named")
        return {**document, "id": named} if stored and named and "id" in document else document

    def note(request: Request) -> None:
        request.state["named"] = owner_of(request)[2]

    return [requested(NAMED, note), segment(5, change, NAMED), answers(NAMED, answered_as)]


def users(change: Callable[[str], str]) -> list[Change]:
    """Treat users as one user if their ids are equal after a change."""
    return [
        segment(3, change, "* /apps/{app}/users/{user}/*"),
        requests(RUNS, at("userId", change)),
    ]


def applications(is_meant: Callable[[str, str], bool]) -> list[Change]:
    """Map an unknown application name to the application that it resembles."""
    names = ("doublecheck_reference", "doublecheck_second")

    def real(app: str) -> str:
        return app if app in names else next((name for name in names if is_meant(app, name)), app)

    return [segment(1, real, "* /apps/*"), requests(RUNS, at("appName", real))]


def filled(route: str, name: str) -> list[Change]:
    """Fill a missing field of a run from the session created last."""
    defaults: dict[str, Any] = {"newMessage": {"role": "user", "parts": [{"text": "Hello"}]}}

    def note(document: Any, request: Request) -> Any:
        if "id" in document:
            app, user, _ = owner_of(request)
            defaults.update(appName=app, userId=user, sessionId=document["id"])
        return document

    def body(document: Any) -> Any:
        missing = document.get(name) is None and name in defaults
        return {**document, name: defaults[name]} if missing else document

    return [answers(CREATE, note), answers(NAMED, note), requests(route, body)]


async def run_anew(request: Request, ask: Ask) -> Answer:
    """Run in a new session of the user, which nobody can find."""
    body = request.json or {}
    if "userId" in body and "appName" in body:
        path = f"/apps/{body['appName']}/users/{body['userId']}/sessions"
        created = await ask(replace(request, path=path, body=b"{}"))
        if created.status < 300:
            body = {**body, "sessionId": created.json["id"]}
    return await ask(replace(request, body=json.dumps(body).encode()))


def fresh(when: Callable[[str, int], bool]) -> Change:
    """Run in a new session if ``when`` holds for the path and the number of the session's run."""
    counts: dict[str, int] = {}

    async def run(request: Request, ask: Ask) -> Answer:
        session = str((request.json or {}).get("sessionId"))
        counts[session] = counts.get(session, 0) + 1
        anew = when(request.path, counts[session])
        return await run_anew(request, ask) if anew else await ask(request)

    return around(RUNS, run)


# ---- sessions


class Known:
    """The sessions created so far, for changes that mix them up."""

    def __init__(self) -> None:
        self.owners: list[Owner] = []
        self.deleted: list[Owner] = []
        self.note = [answers(CREATE, self._created), answers(NAMED, self._created)]

    def _created(self, document: Any, request: Request) -> Any:
        if "id" in document:
            self.owners.append((*owner_of(request)[:2], document["id"]))
        return document


async def created_nothing(_request: Request, _ask: Ask) -> Answer:
    """Return a session that was not created."""
    answer = Answer(200, {}, b"")
    answer.set(200, {"id": uuid.uuid4().hex, "events": []})
    return answer


def listed(is_listed: Callable[[Owner, Owner], bool]) -> list[Change]:
    """Also list the sessions of other owners."""
    owners = Known()

    async def listing(request: Request, ask: Ask) -> Answer:
        own = owner_of(request)
        answer = await ask(request)
        some = answer.json
        for app, user in dict.fromkeys(owner[:2] for owner in owners.owners):
            if (app, user) != own[:2] and is_listed(own, (app, user, "")):
                path = f"/apps/{app}/users/{user}/sessions"
                some = [*some, *(await ask(replace(request, path=path))).json]
        answer.set(answer.status, some)
        return answer

    return [*owners.note, around(LIST, listing)]


def deleted(also: Callable[[Owner, Owner], bool]) -> list[Change]:
    """Delete other sessions together with one."""
    owners = Known()

    async def listing(request: Request, ask: Ask) -> Answer:
        this = owner_of(request)
        for app, user, id_ in owners.owners:
            if (app, user, id_) != this and also(this, (app, user, id_)):
                await ask(replace(request, path=f"/apps/{app}/users/{user}/sessions/{id_}"))
        return await ask(request)

    return [*owners.note, around(DELETE, listing)]


def still_listed() -> list[Change]:
    """Keep deleted sessions in the list."""
    deleted_owners: list[Owner] = []

    def listing(some: Any, request: Request) -> Any:
        own = owner_of(request)[:2]
        return [*some, *({"id": owner[2]} for owner in deleted_owners if owner[:2] == own)]

    return [requested(DELETE, lambda r: deleted_owners.append(owner_of(r))), answers(LIST, listing)]


def as_owner(*routes: str) -> list[Change]:
    """Use the creator of the session as the user of each request that names it."""
    owners: dict[str, str] = {}

    def note(document: Any, request: Request) -> Any:
        if "id" in document:
            owners.setdefault(document["id"], owner_of(request)[1])
        return document

    def path(request: Request) -> None:
        app, user, id_ = owner_of(request)
        before, after = f"/apps/{app}/users/{user}/", f"/apps/{app}/users/{owners.get(id_, user)}/"
        request.path = request.path.replace(before, after, 1)

    def body(document: Any) -> Any:
        return at("userId", lambda user: owners.get(str(document.get("sessionId")), user))(document)

    changes = [requests(r, body) if r in (RUN, STREAM) else requested(r, path) for r in routes]
    return [answers(CREATE, note), answers(NAMED, note), *changes]


def artifacts(change: OfValue) -> Change:
    """Change lists of artifacts."""
    return answers(ARTIFACTS, where(lambda value: isinstance(value, list), change))


# ---- access

HOSTED = "/runtimes/{name}"


def locked(route: str) -> Change:
    """Refuse requests without a key."""
    return refused(route, lambda request: "authorization" not in request.headers, 401)


def to_login(request: Request) -> None:
    """Redirect requests without a key to a page that does not exist."""
    if "authorization" not in request.headers:
        request.path = "/login"


def runtime_of(request: Request) -> str:
    """Return the runtime in a path."""
    return request.path.split("/")[2]


def admits(when: Callable[[Request, str], Any]) -> Change:
    """Admit callers that a runtime refuses."""
    return admitted(f"* {HOSTED}/*", when, runtime_of)


def at_route(*routes: str) -> Callable[[Request, str], bool]:
    """Return whether a request to a runtime matches one of the routes."""
    matches = [routed(f"{route.split()[0]} {HOSTED}{route.split()[1]}") for route in routes]
    return lambda request, _sent: any(match(request) for match in matches)


def key(accepts: Callable[[str, str], bool]) -> Callable[[Request, str], bool]:
    """Return whether the key of a request counts as a known one."""

    def when(request: Request, sent: str) -> bool:
        own = request.header("authorization").removeprefix("Bearer ")
        return bool(own) and accepts(own, sent.removeprefix("Bearer "))

    return when


def user_of(request: Request) -> Any:
    """Return the runtime and the user in a request."""
    user = request.path.split("/")[6] if "/users/" in request.path else None
    return runtime_of(request), user or (request.json or {}).get("userId")


def shared(*routes: str) -> Change:
    """Let any caller use another caller's resources at these routes."""
    return admitted(f"* {HOSTED}/*", at_route(*routes), user_of)


TABLE: dict[str, dict[str, Any]] = {
    "API-01": {
        "list_paths": answers(APPS, at("*", lambda name: f"agents/{name}")),
        "list_names_of_16_characters": answers(APPS, at("*", cut(16))),
    },
    "API-02": {
        "create_without_an_id": answers(CREATE, drop("id")),
        "create_nothing": around(CREATE, created_nothing),
    },
    "API-03": {"store_32_characters": renamed(cut(32), stored=True)},
    "API-04": {
        "list_sessions_of_all_users": listed(lambda own, other: own[0] == other[0]),
        "list_sessions_of_users_that_begin_alike": listed(
            lambda own, other: other[1].startswith(own[1])
        ),
    },
    "API-05": {"lose_the_first_event": history(lambda some: some[1:])},
    "API-06": {
        "keep_the_deleted_in_the_list": still_listed(),
        "delete_what_begins_with_the_id": deleted(lambda this, o: o[2].startswith(this[2])),
    },
    "API-07": {"answer_the_last_event": of_run(lambda some: some[-1:])},
    "API-08": {"misread_texts": events(STREAM, text(misread))},
    "API-09": {
        "send_the_text_so_far": stream_events(so_far),
        "stream_where_it_is_false": requests(STREAM, at("streaming", always(True))),
    },
    "API-10": {
        "lose_the_content": runs(drop("content")),
        "send_increments_without_a_role": increments(at("content", drop("role"))),
    },
    "API-11": {"stream_no_reply_after_a_tool": stream_events(after_call)},
    "API-12": {
        "run_without_appName": filled(RUN, "appName"),
        "stream_without_sessionId": filled(STREAM, "sessionId"),
        "run_without_a_message": filled(RUNS, "newMessage"),
        "answer_refusals_with_200": in_place(RUN, lambda answer, _: setattr(answer, "status", 200)),
    },
    "API-13": {"list_the_artifacts_of_the_session_before": artifacts(previous())},
    "API-14": {
        "have_no_health": statuses(HEALTH, 404),
        "be_healthy_once": in_place(
            HEALTH, answers_after_the_first(lambda answer: answer.set(503, {"error": "down"}))
        ),
    },
    "API-15": {
        "answer_an_empty_object": answers(VERSION, always({})),
        "answer_health": answers(VERSION, always({"status": "ok"})),
    },
    "API-16": {
        "run_a_name_in_other_capitals": applications(lambda app, name: app.lower() == name),
        "refuse_the_listed_name": requests(RUNS, at("appName", lambda app: f"{app}.agent")),
    },
    "API-17": {
        "forget_turns_of_run": fresh(lambda path, _number: path == "/run"),
        "remember_stripped_texts": words(str.strip),
    },
    "API-18": {"stream_as_the_owner": as_owner(STREAM)},
    "AUT-01": {
        "require_a_key_to_create": locked(CREATE),
        "require_a_key_to_stream": requested(STREAM, to_login),
    },
    "AUT-02": {
        "take_the_beginning_of_a_key": admits(key(lambda own, sent: sent.startswith(own))),
        "hold_streams_back": stream_events(hold_back(list), f"POST {HOSTED}/run_sse"),
    },
    "AUT-03": {"let_others_list": shared(LIST), "let_others_see_artifacts": shared(ARTIFACTS)},
}
