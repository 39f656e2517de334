from __future__ import annotations

import pytest

from agentdouble.core import environment
from agentdouble.core.environment import Connection

CONNECTION = Connection("http://127.0.0.1:8000", "t-1", "AK", "SK", "cn-beijing")


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
