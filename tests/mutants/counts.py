"""Mutants that lose or repeat the n-th of many: events, parts, artifacts, outputs, sessions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from doublecheck.client._sync.platform import Platform
from tests.mutants import Witnessed, agents, application, protocols, sandbox, wire, witnesses
from tests.mutants.changes import at
from tests.mutants.repetition import sessions_beyond
from tests.mutants.wire import Change, Request
from tests.mutants.witnesses import numbered, require

# ---- changes


def without(number: int) -> Callable[[list[Any]], list[Any]]:
    """Lose the item of this number, from 1."""
    return lambda some: [*some[: number - 1], *some[number:]]


def doubled(number: int) -> Callable[[list[Any]], list[Any]]:
    """Repeat the item of this number, from 1."""
    return lambda some: [*some[:number], *some[number - 1 :]]


def session_as_first(number: int) -> Callable[[str], str]:
    """Use the first session of a user for the one of this number."""
    names: dict[str, list[str]] = {}

    def changed(name: str) -> str:
        some = names.setdefault(name.rpartition("_")[0], [])
        if name not in some:
            some.append(name)
        return some[0] if some[number - 1 : number] == [name] else name

    return changed


def path_lost(number: int) -> Change:
    """Upload the file of this number in a session to another path."""
    paths: dict[str, list[bytes]] = {}

    def change(request: Request) -> None:
        path = sandbox.PATH.search(request.body)
        some = paths.setdefault(str(request.query), [])
        if path is not None and path[2] not in some:
            some.append(path[2])
        if path is not None and some[number - 1 : number] == [path[2]]:
            request.body = sandbox.PATH.sub(
                lambda match: match[1] + match[2] + b"-lost" + match[3], request.body, count=1
            )

    return wire.requested(sandbox.UPLOAD, change)


def forgotten(number: int) -> list[Change]:
    """Forget the variables of Python before the call of this number in a session."""
    counts: dict[Any, int] = {}

    def matches(request: Request) -> bool:
        if not wire.action(sandbox.INVOKE)(request):
            return False
        name = (request.json or {}).get("UserSessionId")
        counts[name] = counts.get(name, 0) + 1
        return counts[name] == number

    forget = sandbox.before_python(sandbox.FORGET.format("True"))
    return [replace(forget[0], matches=matches), forget[1]]


# ---- witnesses


def artifacts(platform: Platform) -> None:
    """Save many artifacts and list them."""
    session, names = witnesses.session_of(platform), [f"name {n:02}" for n in range(30)]
    witnesses.run(platform, session, "save", names=names)
    require(names, sorted(platform.agents.list_artifacts(session)))


def events(platform: Platform) -> None:
    """Run a turn of many events."""
    session, texts = witnesses.session_of(platform), numbered(60)
    events = witnesses.run(platform, session, "events", texts=texts)
    require(texts, [event.text for event in events])


def parts(platform: Platform) -> None:
    """Run a turn with an event of many parts."""
    session, texts = witnesses.session_of(platform), numbered(30)
    [event] = witnesses.run(platform, session, "parts", texts=texts)
    require(texts, [part["text"] for part in event.parts])


def parts_of_a_message(platform: Platform) -> None:
    """Send a message of many parts."""
    texts = numbered(30)
    events = witnesses.said(platform, witnesses.session_of(platform), *texts)
    require("".join(texts), events[-1].text)


def history(platform: Platform) -> None:
    """Read the history of many events."""
    session, texts = witnesses.session_of(platform), numbered(70)
    witnesses.run(platform, session, "events", texts=texts)
    require(texts, witnesses.history(platform, session)[1:])


def turns(platform: Platform) -> None:
    """Run many turns and ask for the messages."""
    session, texts = witnesses.session_of(platform), numbered(20)
    for text in texts:
        witnesses.said(platform, session, text)
    heard = json.loads(witnesses.run(platform, session, "history")[-1].text)
    require(texts, heard[:20])


def sessions(platform: Platform) -> None:
    """Create many sessions and list them."""
    user = witnesses.new_id()
    created = sorted(witnesses.session_of(platform, user).id for _ in range(60))
    listed = platform.agents.list(witnesses.AGENT, user_id=user)
    require(created, sorted(session.id for session in listed))


def sessions_of_a_runtime(platform: Platform) -> None:
    """Use many sessions of a runtime."""
    with witnesses.hosted(platform) as runtime:
        for number in range(30):
            runtime.invoke("hello", do="say", session_id=f"session-{number}")


def strings_of_a_stream(platform: Platform) -> None:
    """Read a stream of many strings."""
    require(numbered(60), witnesses.strings(platform, numbered(60)))


def parts_of_an_a2a_message(platform: Platform) -> None:
    """Send an executor a message of many parts."""
    texts = numbered(30)
    require(texts, [*witnesses.send(platform, *texts).texts])


def results_of_a_task(platform: Platform) -> None:
    """Read the many results of a task."""
    require(numbered(30), [*witnesses.order(platform, "say", numbered(30)).texts])


def stored_results(platform: Platform) -> None:
    """Read the many stored results of a task."""
    answer = witnesses.order(platform, "say", numbered(30))
    require(numbered(30), [*platform.a2a().task(str(answer.task_id)).texts])


def tasks(platform: Platform) -> None:
    """Read many tasks."""
    ids = [str(witnesses.order(platform, "say", ["one"]).task_id) for _ in range(30)]
    for id_ in ids:
        require(["one"], [*platform.a2a().task(id_).texts])


def streamed_results(platform: Platform) -> None:
    """Stream many results."""
    require(numbered(60), witnesses.results(platform, "say", numbered(60)))


def outputs(platform: Platform) -> None:
    """Run code with many outputs."""
    code = (
        "import sys\nfor n in range(30):\n"
        "    print('out', n, flush=True)\n    print('err', n, file=sys.stderr, flush=True)"
    )
    result = witnesses.box_of(platform).run(code)
    require("".join(f"out {n}\n" for n in range(30)), result.stdout)


def values(platform: Platform) -> None:
    """Show many values."""
    code = "from IPython.display import display\nfor n in range(30): display(n)"
    result = witnesses.box_of(platform).run(code)
    shown = [(output.data or {}).get("text/plain") for output in result.outputs]
    require([str(number) for number in range(30)], shown)


def calls_of_a_session(platform: Platform) -> None:
    """Read a variable after many calls."""
    box = witnesses.box_of(platform)
    box.run("kept = 7")
    for _ in range(30):
        require("7\n", witnesses.printed(box, "print(kept)"))


def executions(platform: Platform) -> None:
    """Count many executions."""
    box = witnesses.box_of(platform)
    require([*range(1, 31)], [box.run("pass").execution_count for _ in range(30)])


def sandboxes(platform: Platform) -> None:
    """Use many sandbox sessions of a user."""
    user = witnesses.new_id()
    boxes = [platform.sandbox(f"s{number}", user_id=user) for number in range(11)]
    ids = [box.exec_bash("true").session_id for box in boxes]
    require(len(boxes), len(set(ids)))


def files(platform: Platform) -> None:
    """Upload many files and read them."""
    box = witnesses.box_of(platform)
    for number in range(12):
        box.upload(f"/tmp/file-{number}", b"content")
    for number in range(12):
        assert box.download(f"/tmp/file-{number}") == b"content"


TABLE: dict[str, dict[str, Any]] = {
    "INV-05": {
        "repeat_the_51st_string": Witnessed(
            application.strings(lambda text, before: [text, text] if len(before) == 50 else text),
            strings_of_a_stream,
        )
    },
    "HST-01": {"serve_20_sessions": Witnessed(sessions_beyond(20), sessions_of_a_runtime)},
    "API-04": {
        "lose_the_51st_session": Witnessed(wire.answers(agents.LIST, without(51)), sessions),
        "list_the_51st_session_twice": Witnessed(wire.answers(agents.LIST, doubled(51)), sessions),
    },
    "API-05": {"repeat_the_51st_event": Witnessed(agents.history(doubled(51)), history)},
    "API-07": {
        "lose_the_51st_event": Witnessed(agents.of_run(without(51)), events),
        "lose_the_eleventh_part_of_the_message": Witnessed(
            agents.message(at("parts", without(11))), parts_of_a_message
        ),
    },
    "API-10": {
        "lose_the_eleventh_part": Witnessed(agents.runs(at("content.parts", without(11))), parts)
    },
    "API-13": {
        "lose_the_eleventh_artifact": Witnessed(agents.artifacts(without(11)), artifacts),
        "list_20_artifacts": Witnessed(agents.artifacts(lambda some: some[:20]), artifacts),
    },
    "API-17": {
        "forget_the_turns_before_the_21st": Witnessed(
            agents.fresh(lambda _path, number: number == 21), turns
        )
    },
    "A2A-02": {
        "lose_the_eleventh_artifact": Witnessed(
            protocols.tasks(protocols.SEND, at("artifacts", without(11))), results_of_a_task
        ),
        "lose_the_eleventh_part_of_a_message": Witnessed(
            protocols.message(at("parts", without(11))), parts_of_an_a2a_message
        ),
    },
    "A2A-03": {
        "lose_the_51st_result": Witnessed(
            protocols.numbered(lambda number: number != 51), streamed_results
        )
    },
    "A2A-04": {
        "store_20_results": Witnessed(
            protocols.tasks(protocols.GET_TASK, at("artifacts", lambda some: some[:20])),
            stored_results,
        ),
        "keep_the_last_20_tasks": Witnessed(
            protocols.created_tasks(
                lambda ids, document, id_: (
                    protocols.missing(document) if id_ in ids[:-20] else document
                )
            ),
            tasks,
        ),
    },
    "CTL-02": {"lose_the_21st_value": Witnessed(sandbox.outputs(without(21)), values)},
    "SBX-02": {"forget_variables_in_the_21st_call": Witnessed(forgotten(21), calls_of_a_session)},
    "SBX-04": {
        "use_the_first_session_for_the_eleventh": Witnessed(
            sandbox.sessions(session_as_first(11)), sandboxes
        )
    },
    "SBX-05": {
        "give_20_outputs": Witnessed(sandbox.outputs(lambda some: some[:20]), outputs),
    },
    "SBX-07": {
        "count_to_20": Witnessed(
            sandbox.data(at("execution_count", lambda number: min(number, 20))), executions
        )
    },
    "SBX-10": {"lose_the_eleventh_file": Witnessed(path_lost(11), files)},
}
