from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentdouble.core import environment, running_doubles
from agentdouble.core.environment import DoubleConnection
from agentdouble.errors import AgentDoubleError

CONNECTION = DoubleConnection("http://127.0.0.1:8000", "t-1", "AK", "SK", "cn-beijing")


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (
            "platform",
            {
                "PLATFORM_TOOL_ID": "t-1",
                "PLATFORM_TOOL_HOST": "127.0.0.1:8000",
                "PLATFORM_TOOL_SCHEME": "http",
                "PLATFORM_TOOL_REGION": "cn-beijing",
                "PLATFORM_ACCESS_KEY": "AK",
                "PLATFORM_SECRET_KEY": "SK",
            },
        ),
        (
            "veadk",
            {
                "AGENTKIT_TOOL_ID": "t-1",
                "AGENTKIT_TOOL_HOST": "127.0.0.1:8000",
                "AGENTKIT_TOOL_SCHEME": "http",
                "AGENTKIT_TOOL_REGION": "cn-beijing",
                "AGENTKIT_TOOL_SERVICE_CODE": "agentkit",
                "VOLCENGINE_ACCESS_KEY": "AK",
                "VOLCENGINE_SECRET_KEY": "SK",
            },
        ),
        (
            "agentkit",
            {
                "VOLCENGINE_AGENTKIT_HOST": "127.0.0.1:8000",
                "VOLCENGINE_AGENTKIT_SCHEME": "http",
                "VOLCENGINE_AGENTKIT_REGION": "cn-beijing",
                "VOLCENGINE_AGENT_IDENTITY_HOST": "127.0.0.1:8000",
                "VOLCENGINE_AGENT_IDENTITY_SCHEME": "http",
                "VOLCENGINE_CP_HOST": "127.0.0.1:8000",
                "VOLCENGINE_CP_SCHEME": "http",
                "VOLCENGINE_CR_HOST": "127.0.0.1:8000",
                "VOLCENGINE_CR_SCHEME": "http",
                "VOLCENGINE_IAM_HOST": "127.0.0.1:8000",
                "VOLCENGINE_IAM_SCHEME": "http",
                "VOLCENGINE_STS_HOST": "127.0.0.1:8000",
                "VOLCENGINE_STS_SCHEME": "http",
                "VOLCENGINE_ACCESS_KEY": "AK",
                "VOLCENGINE_SECRET_KEY": "SK",
            },
        ),
    ],
)
def test_variables_have_the_names_expected_by_each_client(
    client: str, expected: dict[str, str]
) -> None:
    """The host has no scheme."""
    assert expected == environment.variables(CONNECTION, client)


def test_an_unknown_client_is_refused() -> None:
    """The error lists the clients."""
    with pytest.raises(ValueError, match="'curl'; there are platform, veadk, agentkit"):
        environment.variables(CONNECTION, "curl")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that does not exist yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "agentdouble"


def test_permissions_of_an_open_directory_are_tightened(directory: Path) -> None:
    """It may have been created by hand."""
    directory.mkdir()
    directory.chmod(0o777)
    running_doubles.credentials()

    assert 0o700 == directory.stat().st_mode & 0o777


def test_a_directory_of_another_user_is_refused(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its keys would be taken for ours."""
    directory.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 4242)

    with pytest.raises(AgentDoubleError, match="name one of yours by XDG_STATE_HOME"):
        running_doubles.credentials()


def test_an_unlisted_double_is_found_at_its_port_only(directory: Path) -> None:
    double = DoubleConnection("http://127.0.0.1:9", "t-1", "AK", "SK", "r")
    with running_doubles.announced(double, listed=False):
        assert ([], [double]) == (running_doubles.doubles(), running_doubles.at(9))

    assert [] == running_doubles.at(9)
