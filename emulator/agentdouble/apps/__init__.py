"""The decorator contract (section 4.6): applications as their authors write them."""

from agentdouble.apps.simple import SimpleApp

__all__ = ["SimpleApp"]
