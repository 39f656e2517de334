"""A2A applications. The SDK is imported when a class is registered or a request arrives."""

from agentdouble.apps.a2a.application import A2AApp

__all__ = ["A2AApp"]
