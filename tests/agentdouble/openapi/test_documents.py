from __future__ import annotations

import re
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from agentdouble import Emulator
from agentdouble.control_plane.action_names import OF_THE_PLATFORM
from tests.agentdouble.calling import http, refusal, send, signed
from tests.agentdouble.openapi.driver import operations_of


@pytest.mark.slow
@pytest.mark.once  # five seconds: the validator looks at each reference of each operation
def test_document_is_valid_openapi(document: dict[str, Any]) -> None:
    """The specification's schema for version 3.1 accepts it."""
    assert [] == [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()]


def test_operations_have_unique_names_and_summaries(document: dict[str, Any]) -> None:
    """Generated clients call operations by these names."""
    operations = [operation for _, _, operation in operations_of(document)]
    names = [operation["operationId"] for operation in operations]

    assert len(set(names)) == len(names)
    assert [] == [operation["operationId"] for operation in operations if not operation["summary"]]
    assert [] == [name for name in names if not re.fullmatch(r"[A-Za-z]\w*", name)]


def test_operations_are_served(described: Emulator, document: dict[str, Any]) -> None:
    """None answers like an unknown path, action or method."""
    unserved = []
    for method, path, operation in operations_of(document):
        if "Action=" in path:
            continue
        at = re.sub(r"\{\w+\}", "x", path)
        with http.stream(method, described.url + at) as answer:
            unknown = answer.status_code == 404 and answer.read() in (
                b"Not Found",
                b'{"detail":"Not Found"}',
            )
        if unknown or answer.status_code == 405:
            unserved.append(f"{operation['operationId']} {answer.status_code}")

    assert [] == unserved


def test_implemented_actions_are_described(described: Emulator, document: dict[str, Any]) -> None:
    """The others are refused by name."""
    actions = {path[len("/?Action=") :].partition("&")[0] for path in document["paths"]}

    built = {name for name in OF_THE_PLATFORM if name in actions}
    others = OF_THE_PLATFORM - built
    assert {501} == {refusal(described, name)[0] for name in others}
    answers = [send(signed(described, {}, action=name)) for name in built]
    assert 501 not in {answer.status_code for answer in answers}


def test_document_is_refused_to_web_pages(described: Emulator) -> None:
    answer = http.get(f"{described.url}/openapi.json", headers={"Origin": "https://evil.example"})

    assert 403 == answer.status_code
