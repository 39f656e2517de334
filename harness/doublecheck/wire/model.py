"""The routes that control a double's model: scripts, requests and recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from doublecheck.errors import NotADoubleError
from doublecheck.target.target import Target
from doublecheck.values.double import ModelRequest, ModelRequests
from doublecheck.wire import calls
from doublecheck.wire.calls import Call

if TYPE_CHECKING:
    import httpx

_PATH = "/_emulator/model"
_FIELDS = ("form", "model", "prompt", "stream", "body")


@dataclass(frozen=True)
class ModelState:
    """A double's model: its requests, and the answers of its scripts that no request used.

    ``unused`` has the descriptions of the answers by the description of their script's condition.
    """

    requests: ModelRequests
    unused: Mapping[str, Sequence[str]]


def state(target: Target) -> Call[ModelState]:
    """Return the call that reads the state of the model."""
    return Call(_request(target, "GET"), _read_state)


def change(target: Target, document: Mapping[str, Any]) -> Call[ModelState]:
    """Return the call that adds a script or sets the names of models."""
    request = _request(target, "POST", content=calls.json_content(document))
    return Call(request, _read_state)


def clear(target: Target) -> Call[ModelState]:
    """Return the call that removes every script."""
    return Call(_request(target, "DELETE"), _read_state)


def start_recording(target: Target, document: Mapping[str, Any]) -> Call[int]:
    """Return the call that starts to record or to replay."""
    request = _request(target, "POST", "/recording", content=calls.json_content(document))
    return Call(request, lambda response: int(calls.read_json(response)["exchanges"]))


def recording(target: Target) -> Call[list[dict[str, Any]]]:
    """Return the call that reads the recorded requests with their answers."""
    request = _request(target, "GET", "/recording")
    return Call(request, lambda response: list(calls.read_json(response)["exchanges"]))


def _request(target: Target, method: str, path: str = "", **request: Any) -> calls.Request:
    if not target.admin:
        raise NotADoubleError("A scripted model", target.url)
    return calls.request(target, method, _PATH + path, **request)


def _read_state(response: httpx.Response) -> ModelState:
    document = calls.read_json(response)
    requests = ModelRequests(
        ModelRequest(
            turns=tuple(request["turns"]),
            tools=tuple(request["tools"]),
            **{name: request[name] for name in _FIELDS},
        )
        for request in document["requests"]
    )
    unused = {script["when"]: script["unused"] for script in document["scripts"]}
    return ModelState(requests, {when: steps for when, steps in unused.items() if steps})
