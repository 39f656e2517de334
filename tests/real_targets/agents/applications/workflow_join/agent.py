"""A Workflow that does two things at once and joins them."""

from google.adk.workflow import START, JoinNode, Workflow


def upper(node_input: str) -> str:
    """Write in capitals."""
    return node_input.upper()


def count(node_input: str) -> int:
    """Count the letters."""
    return len(node_input)


def tell(node_input: dict) -> str:
    """Tell both."""
    return f"{node_input['upper']} has {node_input['count']}"


join = JoinNode(name="join")
root_agent = Workflow(
    name="forked",
    edges=[(START, (upper, count), join, tell)],
)
