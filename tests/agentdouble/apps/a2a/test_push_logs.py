"""What the log says of the receivers of push notifications."""

from __future__ import annotations

import httpx
import pytest

from agentdouble import A2AApp, Emulator
from tests.agentdouble.apps.a2a.protocol.receiver import receiving
from tests.agentdouble.apps.a2a.wire import V1


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("status", [200, 500])
def test_it_has_no_secrets_of_their_addresses(
    caplog: pytest.LogCaptureFixture, status: int, legacy: bool
) -> None:
    """Neither of those that were told, nor of those that refused."""
    caplog.set_level("INFO")
    part = {"text": "hi", **({"kind": "text"} if legacy else {})}
    message = {"messageId": "m", "role": "user" if legacy else "ROLE_USER", "parts": [part]}
    name = "pushNotificationConfig" if legacy else "taskPushNotificationConfig"
    with Emulator(A2AApp(runner="echo"), pool_size=0) as double, receiving() as receiver:
        receiver.status = status
        address = receiver.url.replace("//", "//ann:s3cret@") + "?sig=s3cret"
        answer = httpx.post(
            double.url,
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "message/send" if legacy else "SendMessage",
                "params": {"message": message, "configuration": {name: {"url": address}}},
            },
            headers={} if legacy else V1,
        )
        assert "result" in answer.json(), answer.text
        for _ in range(2):  # the first was logged before the second is sent
            receiver.got.get(timeout=60)

    assert "ann:***@127.0.0.1" in caplog.text
    assert "sig=***" in caplog.text
    assert "s3cret" not in caplog.text
