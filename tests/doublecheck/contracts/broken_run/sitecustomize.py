"""Imported by an interpreter that has this folder in its path: an A2AApp that loses its card."""

from agentdouble.apps.a2a import A2AApp

_run = A2AApp.run


def run(self: A2AApp, agent_card: object, host: str, port: int) -> None:
    """Run with another card than the one that was given."""
    from agentdouble import agent_card as made

    _run(self, made("another", "http://another.example"), host, port)


A2AApp.run = run  # type: ignore[method-assign,assignment]
