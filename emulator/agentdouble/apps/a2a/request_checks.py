"""Refuse requests that the SDK accepts by mistake.

The SDK ignores the minor number of a version and unknown states, and so would answer a different
request. It fails at text that is not Unicode. It does not check whether a message has content, or
whether the card accepts its media types and extensions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3 import types as legacy
from a2a.types import AgentCard, Message, TaskState
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
    InvalidRequestError,
    VersionNotSupportedError,
)
from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from agentdouble.apps.a2a import writable

MOST_VALUES = 100_000  # of a body, which the SDK converts in a tenth of a second
VERSION_HEADER = "A2A-Version"
SPOKEN = ((1, 0), (0, 3))
STATES = tuple(TaskState.keys())

_LEGACY: Mapping[str, tuple[type[BaseModel], Callable[[Any], object]]] = {
    "message/send": (legacy.SendMessageRequest, conversions.to_core_send_message_request),
    "message/stream": (
        legacy.SendStreamingMessageRequest,
        conversions.to_core_send_message_request,
    ),
    "tasks/get": (legacy.GetTaskRequest, conversions.to_core_get_task_request),
    "tasks/cancel": (legacy.CancelTaskRequest, conversions.to_core_cancel_task_request),
    "tasks/resubscribe": (
        legacy.TaskResubscriptionRequest,
        conversions.to_core_subscribe_to_task_request,
    ),
    "tasks/pushNotificationConfig/set": (
        legacy.SetTaskPushNotificationConfigRequest,
        conversions.to_core_create_task_push_notification_config_request,
    ),
    "tasks/pushNotificationConfig/get": (
        legacy.GetTaskPushNotificationConfigRequest,
        conversions.to_core_get_task_push_notification_config_request,
    ),
    "tasks/pushNotificationConfig/list": (
        legacy.ListTaskPushNotificationConfigRequest,
        conversions.to_core_list_task_push_notification_config_request,
    ),
    "tasks/pushNotificationConfig/delete": (
        legacy.DeleteTaskPushNotificationConfigRequest,
        conversions.to_core_delete_task_push_notification_config_request,
    ),
}
_VERSION = re.compile(r"(\d+)(?:\.(\d+))?(?:\.\d+)*")


def check_request(request: Request) -> None:
    """Raise an A2AError if a request of any operation must be refused."""
    check_version(request.headers.get(VERSION_HEADER, ""))
    if request.scope["path"].endswith("/tasks"):
        check_state(request.query_params.get("status"))
    if "/v1/" in request.scope["path"]:  # the SDK checks it in version 1.0
        _check_length(request.query_params.get("historyLength", ""))


def _check_length(length: str) -> None:
    """Raise InvalidParamsError for a number of messages that protobuf cannot represent."""
    try:
        wrong = length != "" and not 0 <= int(length) < 1 << 31
    except ValueError:
        wrong = True
    if wrong:
        raise InvalidParamsError(
            f"The historyLength must be a number from 0 on, not {length[:20]!r}."
        )


def check_json_rpc(body: object, request: Request) -> A2AError | None:
    """Return the A2AError for a JSON-RPC request that must be refused, or None."""
    if not isinstance(body, dict) or not isinstance(body.get("id"), (str, int, type(None))):
        return None
    method, params = body.get("method"), body.get("params", {})
    try:
        if not isinstance(params, dict):
            raise InvalidRequestError("The params must be an object.")
        if isinstance(method, str) and "/" in method:
            _check_legacy(request.headers.get(VERSION_HEADER, ""))
            _check_convertible(method, body)
        if method == "ListTasks" and isinstance(params, dict):
            check_state(params.get("status"))
    except A2AError as error:
        return error
    return None


def check_size(value: object) -> None:
    """Raise InvalidRequestError for JSON of so many values that the SDK would stop the event loop."""
    count, ahead = 0, [value]
    while ahead:
        inside = ahead.pop()
        if isinstance(inside, dict | list):
            count += len(inside)
            ahead += inside.values() if isinstance(inside, dict) else inside
        if count > MOST_VALUES:
            raise InvalidRequestError(
                f"The body has more than {MOST_VALUES} values: send large data as text or as a file."
            )


def check_text(body: bytes, value: object) -> None:
    """Raise InvalidRequestError if the value of a JSON body contains a lone surrogate.

    JSON can escape a lone surrogate, but protobuf cannot represent it, and fails if it is in a
    name.
    """
    if b"\\ud" not in body and b"\\uD" not in body:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(
            "The body has half of a character (a lone surrogate), which is no valid Unicode text."
        ) from None


def _check_legacy(asked: str) -> None:
    """Raise VersionNotSupportedError if a method of 0.3 is called with another version."""
    if asked and not asked.startswith("0.3"):
        raise VersionNotSupportedError(f"Version {asked!r} of the protocol has no such method.")


def _check_convertible(method: str, body: Mapping[str, Any]) -> None:
    """Raise InvalidParamsError for a request of 0.3 that the SDK cannot convert to 1.0."""
    if method not in _LEGACY:
        return
    model, convert = _LEGACY[method]
    try:
        asked = model.model_validate(body)
    except ValidationError:  # the SDK answers this error
        return
    try:
        convert(asked)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidParamsError(f"The params cannot be read: {error}") from None


def check_version(asked: str) -> None:
    """Raise VersionNotSupportedError for an unknown major or minor version (section 3.6.2)."""
    found = _VERSION.fullmatch(asked.strip() or "0.3")
    if found is None or (int(found[1]), int(found[2] or 0)) not in SPOKEN:
        raise VersionNotSupportedError(
            f"Version {asked!r} of the protocol is not spoken here; 1.0 and 0.3 are."
        )


def check_state(state: Any) -> None:
    """Raise InvalidParamsError for an unknown task state."""
    if isinstance(state, str) and state and state not in STATES:
        raise InvalidParamsError(
            f"There is no task state {state!r}; there are {', '.join(STATES[1:])}."
        )


def check_message(message: Message, card: AgentCard, extensions: Collection[str]) -> None:
    """Raise an A2AError if a message must not be passed to an executor.

    ``extensions`` are the extensions that the caller supports.
    """
    _check_extensions(card, extensions)
    _check_content(message)
    _check_media_types(message, card)


def _check_extensions(card: AgentCard, declared: Collection[str]) -> None:
    required = [one.uri for one in card.capabilities.extensions if one.required]
    missing = [uri for uri in required if uri not in declared]
    if missing:
        raise ExtensionSupportRequiredError(
            f"The agent requires {', '.join(missing)}: name what you support in A2A-Extensions."
        )


def _check_content(message: Message) -> None:
    for number, part in enumerate(message.parts):
        if part.WhichOneof("content") is None:
            field = f"message.parts[{number}]"
            problem = "A part has one of text, raw, url and data."
            raise InvalidParamsError(
                f"{field} is empty. {problem}", {"errors": [{"field": field, "message": problem}]}
            )
    try:
        writable.check(message)
    except ValueError as error:
        raise InvalidParamsError(str(error)) from None


def _check_media_types(message: Message, card: AgentCard) -> None:
    modes = {mode.lower() for mode in card.default_input_modes}
    modes.update(mode.lower() for skill in card.skills for mode in skill.input_modes)
    for part in message.parts:
        if modes and part.media_type and not _accepts(modes, part.media_type):
            raise ContentTypeNotSupportedError(
                f"The agent takes {', '.join(sorted(modes))}, not {part.media_type!r}."
            )


def _accepts(modes: Iterable[str], media_type: str) -> bool:
    """Return whether a mode matches a media type: the type, its range or its kind ("text")."""
    essence = media_type.partition(";")[0].strip().lower()
    kind = essence.partition("/")[0]
    return any(mode in (essence, kind, f"{kind}/*", "*/*") for mode in modes)
