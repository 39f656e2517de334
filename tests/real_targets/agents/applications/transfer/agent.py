"""An agent that transfers to another, which then keeps the conversation until it gives it back."""

from google.adk.agents import LlmAgent
from scripted import asked, call, echo, model


def script(request):
    return call("transfer_to_agent", agent_name="clerk") if asked(request) == "hello" else "front"


def clerk(request):
    return (
        call("transfer_to_agent", agent_name="desk") if asked(request) == "back" else echo(request)
    )


root_agent = LlmAgent(
    name="desk",
    model=model(script),
    sub_agents=[LlmAgent(name="clerk", model=model(clerk), description="Knows all")],
)
