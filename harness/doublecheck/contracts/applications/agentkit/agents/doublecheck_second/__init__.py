"""A second agent, for google-adk's API server; what it does: agent.py."""

from . import agent

__all__ = ["agent"]
