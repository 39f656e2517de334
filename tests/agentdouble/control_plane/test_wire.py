from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, Field

from agentdouble import Emulator
from agentdouble.control_plane import wire
from agentdouble.errors import ActionError
from tests.agentdouble.calling import body_of, call, http


class Inner(BaseModel):
    Key: str


class Outer(BaseModel):
    Name: str
    Tags: tuple[Inner, ...] = ()
    Labels: dict[str, Inner] = Field(default_factory=dict)
    Inner_: Inner | None = Field(None, alias="Inner")
    Anything: Any = None


def unread(
    monkeypatch: pytest.MonkeyPatch, document: dict[str, Any], prefix: str = ""
) -> list[str]:
    noted: list[str] = []
    monkeypatch.setattr(wire, "note_unread", noted.extend)
    wire.read(Outer, document, prefix)
    return noted


def test_unknown_fields_are_found_at_every_depth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Paths include models, lists and mappings, and aliases count as names."""
    document = {
        "Name": "n",
        "Extra": {"Deep": 1},
        "Tags": [{"Key": "a"}, {"Key": "b", "Value": "v"}],
        "Labels": {"one": {"Key": "k", "More": 1}},
        "Inner": {"Key": "k", "Other": None},
        "Inner_": 1,
        "Anything": {"free": [1]},
    }

    assert [
        "In.Extra",
        "In.Tags.1.Value",
        "In.Labels.one.More",
        "In.Inner.Other",
        "In.Inner_",
    ] == unread(monkeypatch, document, "In.")


@pytest.mark.parametrize(
    ("document", "code", "message"),
    [
        ({}, "MissingParameter", "The request is missing P.Name parameter."),
        (
            {"Name": "n", "Tags": [{}]},
            "MissingParameter",
            "The request is missing P.Tags.0.Key parameter.",
        ),
        (
            {"Name": 1},
            "InvalidParameter",
            "The parameter P.Name is invalid: Input should be a valid string.",
        ),
    ],
)
def test_error_names_the_first_invalid_field(
    document: dict[str, Any], code: str, message: str
) -> None:
    """With its path and the prefix."""
    with pytest.raises(ActionError) as caught:
        wire.read(Outer, document, "P.")

    assert (code, 400, message) == (caught.value.code, caught.value.status, str(caught.value))


def test_journal_lists_unread_fields(double: Emulator) -> None:
    """Without their values."""
    body = body_of(double, "1")
    payload = {**json.loads(body["OperationPayload"]), "colour": "red"}
    changed = {**body, "Tags": ["t"], "OperationPayload": json.dumps(payload)}

    assert 200 == call(double, changed).status_code

    (entry,) = http.get(f"{double.url}/_emulator/journal?bodies=true").json()["entries"]
    assert ["Tags", "OperationPayload.colour"] == entry["unread"]


def test_table_matches_the_published_one() -> None:
    """Number and status of every code match the platform's page."""
    assert {
        "MissingParameter": (100002, 400),
        "MissingAuthenticationToken": (100003, 401),
        "MissingRequestInfo": (100004, 400),
        "MissingSignature": (100005, 401),
        "InvalidTimestamp": (100006, 400),
        "ServiceNotFound": (100007, 404),
        "InvalidActionOrVersion": (100008, 404),
        "InvalidAccessKey": (100009, 401),
        "SignatureDoesNotMatch": (100010, 401),
        "LackPolicy": (100012, 403),
        "AccessDenied": (100013, 403),
        "InvalidSecurityToken": (None, 401),
    } == {name: (code.number, code.status) for name, code in wire.PUBLIC.items()}
