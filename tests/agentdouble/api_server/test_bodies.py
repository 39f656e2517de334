from __future__ import annotations

from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.api_server.wire import JSON, detail, new_user, sessions_of
from tests.agentdouble.calling import http

NO_OBJECT = "Input should be a valid dictionary or object to extract fields from"
NO_DICT = "Input should be a valid dictionary"


def problem(type_: str, loc: list[Any], message: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"type": type_, "loc": ["body", *loc], "msg": message, "input": value, **more}


def no_json(position: int, error: str) -> dict[str, Any]:
    return problem("json_invalid", [position], "JSON decode error", {}, ctx={"error": error})


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (b'{"a":', [no_json(5, "Expecting value")]),
        (b"{a}", [no_json(1, "Expecting property name enclosed in double quotes")]),
        (b"[1]", [problem("model_attributes_type", [], NO_OBJECT, [1])]),
        (b'"text"', [problem("model_attributes_type", [], NO_OBJECT, "text")]),
        (b"5", [problem("model_attributes_type", [], NO_OBJECT, 5)]),
        (
            b'{"sessionId": 5, "state": []}',
            [
                problem("string_type", ["sessionId"], "Input should be a valid string", 5),
                problem("dict_type", ["state"], NO_DICT, []),
            ],
        ),
        (
            b'{"events": [{"content": {"part": 1}}]}',
            [
                problem(
                    "extra_forbidden",
                    ["events", 0, "content", "part"],
                    "Extra inputs are not permitted",
                    1,
                )
            ],
        ),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else "",
)
def test_invalid_body_is_refused_by_field(
    shared: Emulator, content: bytes, problems: list[Any]
) -> None:
    """422 in the real server's format: location, message and input."""
    user = new_user()

    response = http.post(shared.url + sessions_of(user), content=content, headers=JSON)

    assert (422, problems) == detail(response)
    assert [] == http.get(shared.url + sessions_of(user)).json()


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}, {"content-type": "x"}])
def test_only_json_content_type_is_parsed(shared: Emulator, headers: dict[str, str]) -> None:
    """With any other content type, or none, a body is text and thus no object."""
    path = shared.url + sessions_of(new_user())

    answers = [http.post(url, content=b'{"a": 1}', headers=headers) for url in (path, path + "/s1")]

    text = '{"a": 1}'
    assert [
        (422, [problem("model_attributes_type", [], NO_OBJECT, text)]),
        (422, [problem("dict_type", [], NO_DICT, text)]),
    ] == [detail(answer) for answer in answers]


@pytest.mark.parametrize("content", [b'{"a": "\xff"}', b"[" * 100_000])
def test_unparsable_body_is_refused(shared: Emulator, content: bytes) -> None:
    """400, and the server keeps serving."""
    path = shared.url + sessions_of(new_user())

    assert (400, "There was an error parsing the body") == detail(
        http.post(path, content=content, headers=JSON)
    )
