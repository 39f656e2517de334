"""veadk's Agent with its run_code, and the double's model."""

from __future__ import annotations

from typing import Any

from agentdouble import Emulator
from tests.agentdouble.calling import act
from tests.vendor import environment


def test_an_agent_runs_code_in_one_session(python: str) -> None:
    """Both turns of a conversation share a sandbox, with the id that veadk derives."""
    with Emulator(model_scripts=_scripts("x = 6 * 7", "print(x)")) as double:
        told = environment.run(python, "agent", double, prompts=["keep it", "tell it"])
        listed = act(double, "ListSessions", ToolId=double.tool_id)

    assert [["run_code"], ["run_code"]] == told["called"]
    assert "42" in told["said"][1]
    (session,) = listed["SessionInfos"]
    assert session["UserSessionId"].startswith("coder_ann_")


def _scripts(first: str, second: str) -> tuple[dict[str, Any], ...]:
    """Script a model that runs code for each prompt and then says what it printed."""
    calls = {"keep it": first, "tell it": second}
    return (
        {"when": {"after": "run_code"}, "steps": [{"text": "It is {{result}}", "times": "all"}]},
        *(
            {
                "when": {"contains": prompt},
                "steps": [
                    {
                        "calls": [
                            {
                                "name": "run_code",
                                "arguments": {"code": code, "language": "python3"},
                            }
                        ]
                    }
                ],
            }
            for prompt, code in calls.items()
        ),
    )


def test_an_agent_uses_a_tool_of_type_all_in_one(python: str) -> None:
    with Emulator(model_scripts=_scripts("x = 6 * 7", "print(x)")) as double:
        tool = act(double, "CreateTool", Name="aio", ToolType="All-in-one")["ToolId"]
        asked = {"prompts": ["keep it", "tell it"], "tool_id": tool}
        told = environment.run(python, "agent", double, **asked)
        listed = act(double, "ListSessions", ToolId=tool)

    assert "42" in told["said"][1]
    assert 1 == len(listed["SessionInfos"])
