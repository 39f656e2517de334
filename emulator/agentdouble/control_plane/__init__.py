"""The control plane: Action and Version dispatch, its envelope, InvokeTool (4.4, 2.8)."""

from agentdouble.control_plane.invoke_tool_action import InvokeTool
from agentdouble.control_plane.routes import ControlPlane, is_control_plane, render_refusal

__all__ = ["ControlPlane", "InvokeTool", "is_control_plane", "render_refusal"]
