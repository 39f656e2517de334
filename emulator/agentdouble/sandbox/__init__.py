"""The sandbox: session instances, each with a real Jupyter kernel (sections 1 and 3)."""

from agentdouble.sandbox.instances import Instance, Instances
from agentdouble.sandbox.result import ExecutionResult, Output

__all__ = ["ExecutionResult", "Instance", "Instances", "Output"]
