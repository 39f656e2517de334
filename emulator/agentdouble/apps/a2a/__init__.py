"""A2A applications; the SDK is imported when one is decorated, or answers its first request."""

from agentdouble.apps.a2a.application import A2AApp
from agentdouble.apps.a2a.cards import agent_card

__all__ = ["A2AApp", "agent_card"]
