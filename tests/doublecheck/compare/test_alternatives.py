"""A platform is not blamed for choosing another alternative."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

import pytest

from doublecheck import Platform, Target
from doublecheck.client.open_target import serving_double
from doublecheck.compare import conversation
from doublecheck.compare.differences import Class
from doublecheck.compare.run import run
from tests.doublecheck.compare.conftest import application

SESSIONS = "sessions and runs"
CHOSEN = [
    ("U-INVOKE-ENVELOPE", "object", "invocations"),
    ("U-PROBE-BODIES", "text", "probes"),
    ("U-PROBE-BODIES", "json-string", "probes"),
    ("U-PROBE-ERROR", "absent-404", "probes"),
    ("U-HEALTH-CLASH", "api-server", "probes"),
    ("U-LIST-APPS", "detailed", "API server lists"),
    ("U-SESSION-FIELDS", "id-only", SESSIONS),
    ("U-EVENT-FIELDS", "content-only", SESSIONS),
    ("U-SESSION-DUPLICATE", "400", SESSIONS),
    ("U-SESSION-DUPLICATE", "existing", SESSIONS),
    ("U-SESSION-LIST", "ids", SESSIONS),
    ("U-SESSION-DELETE", "204", SESSIONS),
    ("U-EXEC-SUCCESS", "true", "code in the sandbox"),
    ("U-MCP-ARGUMENTS", "refused", "MCP"),
    ("U-A2A-TASK", "0.3", "the agent card"),
    ("U-WEBHOOKS", "none", "the agent card"),
]


@pytest.fixture(scope="module")
def changing() -> Iterator[Target]:
    with serving_double(application("Hello.")) as target:
        yield target


@pytest.mark.slow
@pytest.mark.parametrize(("unknown", "answer", "topic"), CHOSEN)
def test_an_alternative_is_assumed(
    base: Platform, changing: Target, unknown: str, answer: str, topic: str
) -> None:
    """The unknown explains every difference."""
    with Platform(changing) as platform:
        platform.request(
            "PUT", "/_emulator/unknowns", content=json.dumps({unknown: answer}).encode()
        ).raise_for_status()
    with Platform(dataclasses.replace(changing, kind="live", name="live")) as live:
        token = f"{unknown}-{answer}".lower().replace(".", "-")
        topics = [item for item in conversation.default(base, live, token) if item.name == topic]
        comparison = run(topics, base, live, allow_writes=True, names=(token,))

    differences = [difference for call in comparison.calls for difference in call.differences]
    assert Class.ASSUMED is comparison.cls, differences
    assert {unknown} == {difference.because for difference in differences}
