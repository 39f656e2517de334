from __future__ import annotations

import subprocess
import sys

import pytest

import agentdouble
from agentdouble import agents

pytestmark = pytest.mark.smoke

HEAVY = [
    *("mcp", "a2a", "sqlalchemy", "jupyter_client", "ipykernel", "zmq", "matplotlib", "IPython"),
    *("jwt", "prometheus_client"),
]


def test_the_public_names_are_fixed() -> None:
    """Adding or removing one is a decision."""
    assert [
        "A2AApp",
        "AgentDoubleError",
        "Clock",
        "Context",
        "Emulator",
        "MCPApp",
        "Settings",
        "SimpleApp",
        "agent_card",
        "run_code",
    ] == agentdouble.__all__
    assert sorted([*agentdouble.__all__, "__version__"]) == dir(agentdouble)


def test_the_names_for_agents_are_fixed() -> None:
    """These are the types that an agent receives and yields."""
    assert ["Event", "Message", "Part", "Session"] == agents.__all__


def test_every_public_name_can_be_imported() -> None:
    """Late imports work too."""
    assert [] == [name for name in agentdouble.__all__ if not hasattr(agentdouble, name)]
    assert callable(agentdouble.run_code)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'agentdouble' has no attribute 'gone'"):
        agentdouble.gone  # noqa: B018


@pytest.mark.slow
def test_heavy_modules_are_imported_on_first_use() -> None:
    """A probed double with a service has imported no kernel and no SDK."""
    script = f"""
import sys
import urllib.request
import agentdouble
with agentdouble.Emulator() as double:
    urllib.request.urlopen(double.url + "/ping").read()
    double.mcp.create("service", "http://127.0.0.1:9/mcp")
print(sorted(set({HEAVY}) & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=180
    )

    assert "[]\n" == done.stdout


def test_importing_the_package_is_cheap() -> None:
    """The light names import no framework."""
    script = """
import sys
import agentdouble, agentdouble.core.ledger, agentdouble.core.signing, agentdouble.core.invoke_tool
print(sorted({"httpx", "pydantic", "starlette", "uvicorn", "asyncio"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=180
    )

    assert "[]\n" == done.stdout
