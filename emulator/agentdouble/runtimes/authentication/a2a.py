"""The tasks and contexts that an A2A request names, and those that its answer creates.

This covers A2A 0.3 and 1.0, over JSON-RPC at the root and over REST.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from agentdouble.runtimes.authentication.naming import (
    AmbiguousError,
    Fields,
    checked,
    plain,
    read,
)

_LONGEST_ANSWER = 1024 * 1024  # bytes that are searched for the first event
_LISTS = ("listtasks", "taskslist")


@dataclass(frozen=True)
class Asked:
    """The names in an A2A request; ``lists`` if it requests all tasks.

    ``call`` is the id of the JSON-RPC call, if it is one.
    """

    tasks: frozenset[str] = frozenset()
    contexts: frozenset[str] = frozenset()
    lists: bool = False
    call: Any = None


def is_message(segments: Sequence[str], method: str) -> bool:
    """Return whether the body of a request may name tasks and contexts."""
    if method != "POST":
        return False
    return not segments or _below_version(segments)[:1] in (["message:send"], ["message:stream"])


def in_body(body: bytes) -> Asked:
    """Return the names in a message, a JSON-RPC call or a batch of calls; raise AmbiguousError."""
    try:
        found = read(body)
    except AmbiguousError:
        return Asked()  # no A2A application reads it, and others may
    calls = found if isinstance(found, list) and not isinstance(found, Fields) else [found]
    asked = [_in_call(call) for call in calls if isinstance(call, Fields)]
    return Asked(
        frozenset().union(*(one.tasks for one in asked)),
        frozenset().union(*(one.contexts for one in asked)),
        any(one.lists for one in asked),
        next((one.call for one in asked), None),
    )


def in_head(segments: Sequence[str], method: str, query: bytes) -> Asked:
    """Return the names in ``/tasks/<id>:<verb>`` or ``/tasks?contextId=``; raise AmbiguousError."""
    below = _below_version(segments)
    if below[:1] != ["tasks"]:
        return Asked()
    if below[1:]:
        return Asked(tasks=frozenset(checked([below[1].partition(":")[0]])))
    pairs = parse_qsl(query.decode("latin-1"))
    contexts = frozenset(checked(value for name, value in pairs if plain(name) == "contextid"))
    return Asked(contexts=contexts, lists=method == "GET" and not contexts)


def _below_version(segments: Sequence[str]) -> list[str]:
    return list(segments[1:] if segments[:1] == ["v1"] else segments)


def _in_call(call: Fields) -> Asked:
    """Return the names in a call's ``params``, in their ``message``, or in a bare message."""
    params = [one for one in call.all("params") if isinstance(one, Fields)]
    holders = [*params, *(m for one in (*params, call) for m in one.all("message"))]
    ids = [one for holder in params for one in holder.all("id")]
    named = [one for one in holders if isinstance(one, Fields)]
    contexts = frozenset(checked(one for holder in named for one in holder.all("contextid")))
    tasks = [one for holder in named for one in holder.all("taskid")]
    references = [one for holder in named for one in holder.all("referencetaskids")]
    tasks += [one for several in references if isinstance(several, list) for one in several]
    lists = any(plain(str(method)) in _LISTS for method in call.all("method"))
    id_ = next((one for one in call.all("id") if isinstance(one, (str, int))), None)
    return Asked(frozenset(checked((*ids, *tasks))), contexts, lists and not contexts, id_)


class Made:
    """Finds, in an answer as it is sent, the task and the context that it begins with."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._done = False

    def feed(self, piece: bytes, *, last: bool) -> Asked:
        """Return the names found since the previous piece; none if the answer is not A2A."""
        if self._done:
            return Asked()
        self._begun += piece
        event = re.search(rb"^data:(.*?)\r?\n\r?\n", self._begun, re.M | re.S)
        whole = event[1] if event else bytes(self._begun) if last else b""
        self._done = bool(whole) or last or len(self._begun) > _LONGEST_ANSWER
        try:
            found = Asked() if not whole else _made(read(whole))
        except AmbiguousError:
            found = Asked()
        if self._done:
            self._begun.clear()
        return found


def _made(answer: Any) -> Asked:
    results = list(_objects(answer))
    tasks = [one for result in results for one in result.all("taskid")]
    tasks += [one for result in results if result.all("contextid") for one in result.all("id")]
    contexts = [one for result in results for one in result.all("contextid")]
    return Asked(frozenset(_texts(tasks)), frozenset(_texts(contexts)))


def _objects(answer: Any) -> Iterator[Fields]:
    """Yield a result, and the object that it wraps: ``{"result": {"task": {...}}}``."""
    if isinstance(answer, Fields):
        for result in (answer, *answer.all("result")):
            if isinstance(result, Fields):
                yield result
                wrapped = result.all("task", "message", "statusupdate", "artifactupdate", "msg")
                yield from (one for one in wrapped if isinstance(one, Fields))


def _texts(found: Sequence[Any]) -> Iterator[str]:
    return (one for one in found if isinstance(one, str) and one)
