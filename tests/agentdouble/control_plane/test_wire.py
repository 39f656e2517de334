from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel, Field

from agentdouble import Emulator
from agentdouble.control_plane import public_errors, wire
from agentdouble.errors import ActionError
from tests.agentdouble.calling import body_of, call, http, output, run


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
    } == {name: (code.number, code.status) for name, code in public_errors.PUBLIC.items()}


HEX_ID = re.compile(r"[0-9a-f]{32}")


def test_success_has_every_field_of_the_specification(shared: Emulator) -> None:
    """The whole envelope of 2.8 and the whole JSON of 2.7, no more and no less."""
    code = "import sys\nprint('67 <&> ü')\nprint('oops', file=sys.stderr)\n6 * 7"

    response = call(shared, body_of(shared, code, "envelope"))

    document = response.json()
    request_id = document["ResponseMetadata"]["RequestId"]
    session_id = document["Result"]["SessionId"]
    inner = document["Result"]["Result"]
    msg_id = json.loads(inner)["data"]["msg_id"]
    assert HEX_ID.fullmatch(request_id)
    assert re.fullmatch(r"s-[0-9a-z]+", session_id)
    assert isinstance(msg_id, str)
    assert msg_id
    assert 200 == response.status_code
    assert {
        "ResponseMetadata": {
            "RequestId": request_id,
            "Action": "InvokeTool",
            "Version": "2025-10-30",
            "Service": "agentkit",
            "Region": "cn-beijing",
        },
        "Result": {
            "ToolId": "t-sandbox",
            "UserSessionId": "envelope",
            "SessionId": session_id,
            "Endpoint": "",
            "InternalEndpoint": "",
            "Result": inner,
        },
    } == document
    assert {
        "success": True,
        "message": "Code executed successfully",
        "data": {
            "kernel_name": "python3",
            "session_id": session_id,
            "status": "ok",
            "execution_count": 1,
            "outputs": [
                output("stream", name="stdout", text="67 <&> ü\n"),
                output("stream", name="stderr", text="oops\n"),
                output("execute_result", data={"text/plain": "42"}, execution_count=1),
            ],
            "code": code,
            "msg_id": msg_id,
        },
    } == json.loads(inner)


def test_inner_json_is_formatted_like_the_platform_s(shared: Emulator) -> None:
    """Two spaces of indent, and < > & escaped."""
    response = call(shared, body_of(shared, "print('<&>')", "formatted"))

    inner = response.json()["Result"]["Result"]
    assert inner.startswith('{\n  "success": true,\n  "message": ')
    assert '"text": "\\u003c\\u0026\\u003e\\n"' in inner
    assert not set("<&>") & set(inner)


def test_failure_has_an_error_output(shared: Emulator) -> None:
    """SBX-06: ename, evalue and traceback follow the printed output."""
    inner = run(shared, "print('before')\n1 / 0", "failure")

    traceback = inner["data"]["outputs"][1]["traceback"]
    assert "ZeroDivisionError" in traceback[-1]
    assert (False, "Code execution failed: ZeroDivisionError: division by zero", "error") == (
        inner["success"],
        inner["message"],
        inner["data"]["status"],
    )
    assert [
        output("stream", name="stdout", text="before\n"),
        output("error", ename="ZeroDivisionError", evalue="division by zero", traceback=traceback),
    ] == inner["data"]["outputs"]
