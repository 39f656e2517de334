"""A2A applications. The SDK is imported when a class is registered or a request arrives."""

from agentdouble.apps.a2a.application import A2AApp
from agentdouble.apps.a2a.cards import agent_card

__all__ = ["A2AApp", "agent_card"]
