"""The variants of A2A applications."""

from __future__ import annotations

import uuid
from typing import Any

from tests.mutants.changes import at, drop, put
from tests.mutants.protocols import CARD, streamed, tasks, update_of, updates
from tests.mutants.wire import Request, answers, in_place, messages, raw_events
from tests.variants.forms import (
    IN_CAPITALS,
    JSON,
    of_json,
    of_streams,
    several_lines,
    typed,
    with_status,
)

A2A = "POST /"
WORKING = "TASK_STATE_WORKING"
TASKS = ("SendMessage", "GetTask")


def state_after(document: Any, **status: Any) -> Any:
    """Report after each result that the executor is still working."""
    update = update_of(document)
    if update is None:
        return document
    ids = {"taskId": update["taskId"], "contextId": update["contextId"]}
    told = {**ids, "status": {"state": WORKING, **status}, "metadata": {}}
    return [document, {**document, "result": {"statusUpdate": told}}]


def message(text: str) -> dict[str, Any]:
    """Return a message of the agent."""
    return {"messageId": uuid.uuid4().hex, "role": "ROLE_AGENT", "parts": [{"text": text}]}


def halves(text: str) -> tuple[str, str]:
    """Split a text, not always in two parts with text."""
    return text[: len(text) // 2], text[len(text) // 2 :]


def in_two_updates(document: Any, _request: Request) -> Any:
    """Send an artifact in two updates; the second one appends to the first."""
    update = update_of(document)
    if update is None:
        return document
    artifact = update["artifact"]
    sent = []
    for number, text in enumerate(halves(artifact["parts"][0]["text"])):
        part = {**artifact, "parts": [{"text": text}]}
        fields = {"artifact": part, "append": bool(number), "lastChunk": bool(number)}
        sent.append({**document, "result": {"artifactUpdate": {**update, **fields}}})
    return sent


def in_two_parts(parts: list[Any]) -> list[Any]:
    """Store the text of an artifact in two parts."""
    return [{"text": text} for part in parts for text in halves(part["text"])]


GRPC = {"url": "https://grpc.example", "protocolBinding": "GRPC", "protocolVersion": "1.0"}
KEY = {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}}
EXTENSION = {"uri": "https://extension.example/v1", "required": False, "params": {"a": 1}}
SIGNATURE = {"protected": "eyJhbGciOiJFUzI1NiJ9", "signature": "c2lnbmF0dXJl"}
IN_PARTS = tasks(TASKS, at("artifacts.*.parts", in_two_parts))
A2A_VARIANTS: dict[str, Any] = {
    **of_json(A2A),
    **of_streams(A2A),
    "several_data_lines": raw_events(A2A, several_lines),
    "content_type_in_capitals": in_place("* *", IN_CAPITALS),
    "card_over_several_lines": in_place(CARD, JSON["json_over_several_lines"]),
    "card_of_a_vendor_s_type": in_place(CARD, typed("application/a2a+json")),
    "card_in_chunks": in_place(CARD, JSON["answers_in_chunks"]),
    "a_card_with_further_fields": answers(
        CARD, put(provider={"organization": "o", "url": "https://o.example"})
    ),
    "a_card_with_nulls": answers(CARD, put(iconUrl=None, documentationUrl=None)),
    "a_card_with_optional_security": answers(CARD, put(securitySchemes=KEY)),
    "a_card_with_extensions": answers(CARD, at("capabilities", put(extensions=[EXTENSION]))),
    "a_signed_card": answers(CARD, put(signatures=[SIGNATURE])),
    "a_card_with_further_interfaces": answers(
        CARD, at("supportedInterfaces", lambda some: [GRPC, *some])
    ),
    "replies_with_further_members": messages("*", put(trace="1")),
    "tasks_with_metadata": tasks(TASKS, put(metadata={"x": 1})),
    "tasks_without_a_history": tasks(TASKS, drop("history")),
    "tasks_with_a_longer_history": tasks(TASKS, put(history=[message("On it."), message("")])),
    "a_state_without_its_time": tasks(TASKS, at("status", drop("timestamp"))),
    "a_state_with_a_message": tasks(TASKS, at("status", put(message=message("Done.")))),
    "named_artifacts": tasks(TASKS, at("artifacts.*", put(name="result", metadata={}))),
    "artifacts_with_extensions": tasks(
        TASKS, at("artifacts.*", put(description="", extensions=[EXTENSION["uri"]]))
    ),
    "artifacts_in_two_parts": IN_PARTS,
    "artifacts_in_two_updates": [*streamed(in_two_updates), *IN_PARTS],
    "artifacts_in_two_updates_joined_in_the_task": streamed(in_two_updates),
    "artifacts_that_end_with_their_update": updates(put(append=False, lastChunk=True)),
    "artifacts_with_further_parts": tasks(
        TASKS, at("artifacts.*.parts", lambda some: [*some, {"data": {"a": 1}}])
    ),
    "parts_with_further_fields": tasks(
        TASKS, at("artifacts.*.parts.*", put(metadata={}, mediaType="text/plain", filename=""))
    ),
    "streamed_updates_with_metadata": updates(put(metadata={"x": 1})),
    "streamed_updates_of_the_state": streamed(lambda it, _: state_after(it)),
    "streamed_updates_with_messages": streamed(
        lambda it, _: state_after(it, message=message("Still working."))
    ),
    "other_texts_of_errors": answers(A2A, at("error", put(message="No.", data=[]))),
    "errors_with_a_status": with_status(A2A, 404),
}
