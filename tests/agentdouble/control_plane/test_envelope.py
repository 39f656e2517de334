from __future__ import annotations

import json
import re

from agentdouble import Emulator
from tests.agentdouble.calling import body_of, call, output, run

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
