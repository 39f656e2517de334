"""Mutants of the tasks that A2A applications store."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.mutants import Mutant, lossy, wire
from tests.mutants.a2a import (
    SEND,
    STREAM,
    Change,
    Task,
    calls,
    change_texts,
    documents,
    in_state,
    streamed,
    task_of,
)

PERSISTED = "A task is persisted by a task store (2.9)"
GET = "get_task(task_id) returning the task or nothing (2.9)"
SAVE = "save_task(task) (2.9)"
DELETE = "delete_task(task_id) (2.9)"

GET_TASK = ("GetTask", "tasks/get")
NOT_FOUND = -32001


def _stored(change: Callable[[Task], Any]) -> Change:
    """Change stored tasks that are asked for, in place."""

    def changed(result: Any) -> Any:
        change(task_of(result))
        return result

    return calls(GET_TASK, changed)


def _id_of(request: wire.Request) -> str:
    return str(request.json["params"]["id"])


def _answer_with(document: Any, result: Any) -> Any:
    return {"jsonrpc": "2.0", "id": document["id"], "result": result}


def _refused(document: Any, code: int = NOT_FOUND, message: str = "Task not found") -> Any:
    error = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": document["id"], "error": error}


def _empty_for_unknown(document: Any, request: wire.Request) -> Any:
    if "error" not in document:
        return document
    status = {"state": "TASK_STATE_SUBMITTED"}
    return _answer_with(document, {"id": _id_of(request), "contextId": "", "status": status})


def _null_state_for_unknown(document: Any, _request: wire.Request) -> Any:
    return _answer_with(document, {}) if "error" in document else document


def _internal_for_unknown(document: Any, _request: wire.Request) -> Any:
    return _refused(document, -32603, "Internal error") if "error" in document else document


def _keep_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Answer with tasks that have been deleted."""
    seen: dict[str, Any] = {}

    def changed(document: Any, request: wire.Request) -> Any:
        if "result" in document:
            seen[_id_of(request)] = document["result"]
            return document
        known = seen.get(_id_of(request))
        return document if known is None else _answer_with(document, known)

    wire.install(patch, documents(GET_TASK, changed))


def _noting_tasks(note: Callable[[str], None], methods: tuple[str, ...] = SEND) -> wire.Change:
    """Note the ids of the tasks that messages make."""

    def noted(document: Any, _request: wire.Request) -> Any:
        task = task_of(document.get("result", {"message": {}}))
        if "id" in task:
            note(task["id"])
        return document

    if methods is SEND:
        return documents(SEND, noted)
    return streamed(noted)


def _keep_the_last(patch: pytest.MonkeyPatch) -> None:
    """Store only the task that was made last."""
    made: list[str] = []

    def changed(document: Any, request: wire.Request) -> Any:
        lost = _id_of(request) in made[:-1]
        return _refused(document) if lost else document

    wire.install(patch, _noting_tasks(made.append), documents(GET_TASK, changed))


def _forget_all(patch: pytest.MonkeyPatch) -> None:
    """Delete all tasks when one is deleted."""
    made: list[str] = []
    gone: set[str] = set()

    def forget(params: Any) -> Any:
        if str(params["message"]["parts"][0].get("text", "")).startswith("forget "):
            gone.update(made)
        return params

    def changed(document: Any, request: wire.Request) -> Any:
        return _refused(document) if _id_of(request) in gone else document

    wire.install(
        patch,
        *(wire.called_with(method, forget) for method in SEND),
        _noting_tasks(made.append),
        documents(GET_TASK, changed),
    )


def _first_for_each(patch: pytest.MonkeyPatch) -> None:
    """Answer with the task that was asked for first."""
    first: list[Any] = []

    def changed(result: Any) -> Any:
        first.append(result)
        return first[0]

    calls(GET_TASK, changed)(patch)


def _last_for_unknown(patch: pytest.MonkeyPatch) -> None:
    """Answer with the last task that was asked for where there is none."""
    last: list[Any] = []

    def changed(document: Any, _request: wire.Request) -> Any:
        if "result" in document:
            last.append(document["result"])
        return _answer_with(document, last[-1]) if last else document

    wire.install(patch, documents(GET_TASK, changed))


def _finding(finds: Callable[[str, str], bool]) -> Change:
    """Find tasks by what is not their id."""

    def change(patch: pytest.MonkeyPatch) -> None:
        made: list[str] = []

        def changed(params: Any) -> Any:
            asked = str(params["id"])
            return {**params, "id": next((one for one in made if finds(one, asked)), asked)}

        wire.install(
            patch,
            _noting_tasks(made.append),
            *(wire.called_with(method, changed) for method in GET_TASK),
        )

    return change


def _not_of_streams(patch: pytest.MonkeyPatch) -> None:
    """Store no tasks of streams."""
    made: list[str] = []

    def changed(document: Any, request: wire.Request) -> Any:
        return _refused(document) if _id_of(request) in made else document

    wire.install(patch, _noting_tasks(made.append, STREAM), documents(GET_TASK, changed))


def _only_at_the_end(document: Any, _request: wire.Request) -> Any:
    state = task_of(document.get("result", {})).get("status", {}).get("state", "completed")
    return document if state.lower().endswith(("completed", "failed")) else _refused(document)


def _last_artifact(task: Task) -> None:
    if "artifacts" in task:
        task["artifacts"] = task["artifacts"][-1:]


MUTANTS = (
    Mutant("make_a_task_of_an_unknown_id", "A2A-04", GET, documents(GET_TASK, _empty_for_unknown)),
    Mutant(
        "answer_an_unknown_id_with_an_empty_task",
        "A2A-04",
        GET,
        documents(GET_TASK, _null_state_for_unknown),
    ),
    Mutant("fail_for_an_unknown_id", "A2A-04", GET, documents(GET_TASK, _internal_for_unknown)),
    Mutant("answer_an_unknown_id_with_the_task_before", "A2A-04", GET, _last_for_unknown),
    Mutant(
        "find_tasks_by_the_begin_of_their_ids",
        "A2A-04",
        GET,
        _finding(lambda one, asked: one.startswith(asked)),
    ),
    Mutant(
        "find_tasks_by_their_ids_in_any_case",
        "A2A-04",
        GET,
        _finding(lambda one, asked: one.lower() == asked.lower()),
    ),
    Mutant("answer_with_the_first_task_for_each", "A2A-04", GET, _first_for_each),
    Mutant("keep_tasks_that_were_deleted", "A2A-04", DELETE, _keep_forgotten),
    Mutant("delete_all_tasks_with_one", "A2A-04", DELETE, _forget_all),
    Mutant("store_only_the_last_task", "A2A-04", PERSISTED, _keep_the_last),
    Mutant("store_no_tasks_of_streams", "A2A-04", PERSISTED, _not_of_streams),
    Mutant(
        "store_tasks_only_at_their_end",
        "A2A-04",
        SAVE,
        documents(GET_TASK, _only_at_the_end),
    ),
    Mutant("store_no_artifacts", "A2A-04", SAVE, _stored(lambda task: task.pop("artifacts", None))),
    Mutant("store_only_the_last_artifact", "A2A-04", SAVE, _stored(_last_artifact)),
    Mutant("store_tasks_as_working", "A2A-04", SAVE, _stored(in_state("working"))),
    Mutant(
        "store_256_characters_of_a_text",
        "A2A-04",
        SAVE,
        _stored(lambda task: change_texts(task, lossy.cut(256))),
    ),
    Mutant("store_ascii", "A2A-04", SAVE, _stored(lambda task: change_texts(task, lossy.to_ascii))),
    Mutant(
        "store_tasks_under_another_id",
        "A2A-04",
        SAVE,
        _stored(lambda task: task.update(id=uuid.uuid4().hex)),
    ),
)
