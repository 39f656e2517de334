"""A small A2A client over JSON-RPC, in the version that an agent's card declares (section 4.6)."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentdouble.core.event_stream import MEDIA_TYPE
from doublecheck.errors import AnswerError
from doublecheck.target.target import Target
from doublecheck.values.agents import A2aAnswer
from doublecheck.wire import calls
from doublecheck.wire.calls import Call, Request

if TYPE_CHECKING:
    import httpx

PATH = "/"
CARD = "/.well-known/agent-card.json"
_METHODS = {  # in version 1.0 and in version 0.3
    "send": ("SendMessage", "message/send"),
    "stream": ("SendStreamingMessage", "message/stream"),
    "task": ("GetTask", "tasks/get"),
    "cancel": ("CancelTask", "tasks/cancel"),
}
SENDING = _METHODS["send"]
_KINDS = {
    "task": "task",
    "message": "message",
    "statusUpdate": "status-update",
    "artifactUpdate": "artifact-update",
}

_ids = itertools.count(1)


@dataclass(frozen=True)
class A2aAgent:
    """An A2A application at a path of a target, with its unchanged card."""

    target: Target
    path: str
    card: Mapping[str, Any]

    @property
    def modern(self) -> bool:
        """Whether the application speaks version 1.0."""
        interfaces = self.card.get("supportedInterfaces") or ()
        return any(str(entry.get("protocolVersion", "")).startswith("1.") for entry in interfaces)


def card(target: Target, path: str) -> Call[A2aAgent]:
    """Return the call that reads the card of the application at a path (A2A-01)."""
    call = calls.request(target, "GET", path.rstrip("/") + CARD, surface="a2a")
    return Call(call, lambda response: A2aAgent(target, path, _object(response)))


def send(agent: A2aAgent, *texts: str, **ids: str | None) -> Call[A2aAnswer]:
    """Return the call that sends a message and waits for the answer (A2A-02)."""
    return Call(request(agent, "send", message(agent, texts, ids)), read_answer)


def stream(agent: A2aAgent, text: str, **ids: str | None) -> Request:
    """Return the request that sends a message and streams the answers (A2A-03)."""
    return request(agent, "stream", message(agent, [text], ids))


def task(agent: A2aAgent, task_id: str) -> Call[A2aAnswer]:
    """Return the call that reads a task (A2A-04)."""
    return Call(request(agent, "task", {"id": task_id}), read_answer)


def cancel(agent: A2aAgent, task_id: str) -> Call[A2aAnswer]:
    """Return the call that cancels a task."""
    return Call(request(agent, "cancel", {"id": task_id}), read_answer)


def read_event(response: httpx.Response, data: str) -> A2aAnswer:
    """Return the event of one ``data:`` line. Raise RefusedError or AnswerError."""
    return _answer(response, calls.json_or_none(data), data)


def refuse_no_stream(response: httpx.Response) -> None:
    """Raise RefusedError or AnswerError for an answer that is not a stream of events."""
    read_answer(response)
    raise _wrong_answer(response, response.text)


def message(agent: A2aAgent, texts: Sequence[str], ids: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the parameters of a message with a part for each text."""
    fields: dict[str, Any] = {name: value for name, value in ids.items() if value is not None}
    fields["messageId"] = uuid.uuid4().hex
    if agent.modern:
        parts = [{"text": text} for text in texts]
        return {"message": {**fields, "role": "ROLE_USER", "parts": parts}}
    parts = [{"kind": "text", "text": text} for text in texts]
    return {"message": {**fields, "kind": "message", "role": "user", "parts": parts}}


def request(agent: A2aAgent, method: str, params: Mapping[str, Any]) -> Request:
    """Return a JSON-RPC request. The method has its name in the version of the card."""
    modern, older = _METHODS.get(method, (method, method))
    body = {
        "jsonrpc": "2.0",
        "id": next(_ids),
        "method": modern if agent.modern else older,
        "params": params,
    }
    headers = {"Accept": f"application/json, {MEDIA_TYPE}", "Content-Type": "application/json"}
    if agent.modern:
        headers["A2A-Version"] = "1.0"
    content = calls.json_content(body)
    return calls.request(
        agent.target, "POST", agent.path, surface="a2a", headers=headers, content=content
    )


def read_answer(response: httpx.Response) -> A2aAnswer:
    """Return an answer. Raise RefusedError for an error, or AnswerError if it is not A2A."""
    calls.refuse_by_json_rpc(response)
    return _answer(response, calls.read_json(response), response.text)


def artifact_texts(answers: Iterable[A2aAnswer]) -> list[str]:
    """Return the text of each artifact of a task, or of the events of a stream.

    Its parts are joined, and so are updates that append to it (A2A-03).
    """
    ids: list[Any] = []
    texts: list[str] = []
    for answer in answers:
        content = _content(answer.raw)
        for artifact in _artifacts(content):
            id_, text = artifact.get("artifactId"), "".join(_texts(artifact))
            if content.get("append") and id_ in ids:
                texts[ids.index(id_)] += text
            else:
                ids.append(id_)
                texts.append(text)
    return texts


def _answer(response: httpx.Response, document: Any, text: str) -> A2aAnswer:
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(error, dict):
        raise calls.refused_by_json_rpc(response, error)
    result = document.get("result") if isinstance(document, dict) else None
    if not isinstance(result, dict) or not _is_answer(document, response.request):
        raise _wrong_answer(response, text)
    try:
        return _read_result(result)
    except (AttributeError, TypeError, KeyError):
        raise _wrong_answer(response, text) from None


def _is_answer(document: Mapping[str, Any], request: httpx.Request) -> bool:
    """Whether a JSON-RPC document answers this request."""
    sent = json.loads(request.content)
    return ("2.0", sent["id"]) == (document.get("jsonrpc"), document.get("id"))


def _read_result(result: Mapping[str, Any]) -> A2aAnswer:
    """Read a task, a message or an event of a stream, of either version."""
    name, content = _name(result), _content(result)
    status = content.get("status") or {}
    carriers = [content, status.get("message") or {}, *_artifacts(content)]
    kind = _KINDS.get(name, content.get("kind", "task"))  # the answer of tasks/get is a bare task
    return A2aAnswer(
        kind=kind,
        task_id=content.get("taskId") or (content.get("id") if kind == "task" else None),
        context_id=content.get("contextId"),
        state=_state(status.get("state")),
        texts=tuple(text for it in carriers for text in _texts(it)),
        raw=result,
    )


def _name(result: Mapping[str, Any]) -> str:
    """Return the field that holds the content in version 1.0, or an empty string."""
    return next((kind for kind in _KINDS if kind in result), "")


def _content(result: Mapping[str, Any]) -> Mapping[str, Any]:
    content: Mapping[str, Any] = result[name] if (name := _name(result)) else result
    return content


def _artifacts(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the artifacts of a task, or the one of an update."""
    updated = content.get("artifact")
    return [*([updated] if updated else ()), *(content.get("artifacts") or ())]


def _texts(carrier: Mapping[str, Any]) -> list[str]:
    parts = carrier.get("parts") or ()
    return [part["text"] for part in parts if part.get("text") is not None]


def _state(name: str | None) -> str | None:
    """Return the name of a state in version 0.3: ``input-required``."""
    return name and name.removeprefix("TASK_STATE_").lower().replace("_", "-")


def _object(response: httpx.Response) -> Mapping[str, Any]:
    document = calls.read_json(response)
    if isinstance(document, dict):
        return document
    raise _wrong_answer(response, response.text)


def _wrong_answer(response: httpx.Response, text: str) -> AnswerError:
    return calls.wrong_answer(
        response, f"The answer of {response.request.url} is not A2A: {text[:200]}"
    )
