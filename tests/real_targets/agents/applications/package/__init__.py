"""A package whose agent imports relatively."""

from .parts.build import root_agent

__all__ = ["root_agent"]
