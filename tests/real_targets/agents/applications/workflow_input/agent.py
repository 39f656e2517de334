"""A Workflow that waits for the user."""

from google.adk import Context
from google.adk.events import RequestInput
from google.adk.workflow import START, Workflow


async def ask(ctx: Context, node_input: str):
    """Ask whether to go on."""
    yield RequestInput(interrupt_id="go_on", message=f"Go on with {node_input}?")


def tell(node_input: str) -> str:
    """Tell the answer."""
    return f"the answer was {node_input}"


root_agent = Workflow(name="patient", edges=[(START, ask, tell)])
