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


def test_the_public_names_are_these() -> None:
    """A name that comes or goes is a decision."""
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


def test_agents_are_written_with_these_names() -> None:
    """Those that an agent gets and yields."""
    assert ["Event", "Message", "Part", "Session"] == agents.__all__


def test_every_public_name_is_there() -> None:
    """Each can be imported, although it is imported late."""
    assert [] == [name for name in agentdouble.__all__ if not hasattr(agentdouble, name)]
    assert callable(agentdouble.run_code)


def test_another_name_is_an_attribute_error() -> None:
    """A name that is not public is refused as Python does it."""
    with pytest.raises(AttributeError, match="'agentdouble' has no attribute 'gone'"):
        agentdouble.gone  # noqa: B018


@pytest.mark.slow
def test_what_is_heavy_is_imported_when_it_is_used() -> None:
    """A double that starts, answers a probe and has a service has imported no kernel and no SDK."""
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


def test_importing_the_package_imports_next_to_nothing() -> None:
    """The light names cost no framework."""
    script = """
import sys
import agentdouble, agentdouble.core.ledger, agentdouble.core.signing, agentdouble.core.invoke_tool
print(sorted({"httpx", "pydantic", "starlette", "uvicorn", "asyncio"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=180
    )

    assert "[]\n" == done.stdout
