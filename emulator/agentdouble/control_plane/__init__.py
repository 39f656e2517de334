"""The control plane: dispatch by Action and Version, the envelope, the actions (4.4, 2.8)."""

from agentdouble.control_plane.routes import (
    ControlPlane,
    is_control_plane,
    names_action,
    refuse_method,
    render_refusal,
)

__all__ = [
    "ControlPlane",
    "is_control_plane",
    "names_action",
    "refuse_method",
    "render_refusal",
]
