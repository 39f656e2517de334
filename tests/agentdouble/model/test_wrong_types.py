"""A value of a wrong type is refused in the vendor's form, whichever field has it."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble.model.fields import (
    CHAT_COMPLETIONS,
    EMBED_CONTENT,
    EMBEDDINGS,
    GENERATE_CONTENT,
    RESPONSES,
    FieldTable,
)
from tests.agentdouble.model.clients import CHAT, CONTENT, GEMINI, USER, Model
from tests.agentdouble.model.clients import RESPONSES as RESPOND

pytestmark = pytest.mark.slow

VALUES: tuple[Any, ...] = (
    *("x", "", 7, -1, 1.5, True, False, None, [], {}, [7], [None], [[]], ["x"], [{}], {"x": 1}),
    *([{"type": "function"}], [{"type": 7}], {"type": "function"}, {"type": "json_schema"}),
    *([{"role": "user", "content": 7}], [{"role": 7}], [{"type": "message"}], [{"parts": 7}]),
    *({"parts": [7]}, {"parts": [{"text": 7}]}, [{"function": 7, "type": "function"}]),
)
GEMINI_PATH = "/v1/models/m:"
FORMS: tuple[tuple[FieldTable, str, dict[str, Any]], ...] = (
    (CHAT_COMPLETIONS, "openai/chat/completions", {**CHAT, "messages": [USER]}),
    (RESPONSES, "openai/responses", {**RESPOND, "input": "x"}),
    (EMBEDDINGS, "openai/embeddings", {"model": "m", "input": "x"}),
    (GENERATE_CONTENT, f"gemini{GEMINI_PATH}generateContent", {**GEMINI, "contents": [CONTENT]}),
    (EMBED_CONTENT, f"gemini{GEMINI_PATH}embedContent", {"content": {"parts": [{"text": "x"}]}}),
)


@pytest.mark.parametrize(("table", "address", "body"), FORMS, ids=lambda value: str(value)[:30])
def test_a_wrong_type_is_the_client_s_mistake(
    model: Model, table: FieldTable, address: str, body: dict[str, Any]
) -> None:
    model.script({"text": "{}", "times": "all"})
    vendor, _, path = address.partition("/")
    client = model.openai if vendor == "openai" else model.gemini

    statuses = set()
    for name in sorted(table.names):
        for value in VALUES:
            answer = client.post(f"/{path}", json=nested(body, name, value))
            assert answer.status_code in (200, 400), f"{name}: {value!r}: {answer.text[:300]}"
            if answer.status_code == 400:
                assert answer.json()["error"]["message"]
            statuses.add(answer.status_code)

    assert {200, 400} == statuses


def nested(body: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return a body with a field, which may be in an object."""
    first, _, rest = name.partition(".")
    inner = body.get(first) if isinstance(body.get(first), dict) else {}
    return {**body, first: nested(inner or {}, rest, value) if rest else value}
