"""The data plane of sessions, ``/v1/...``: who may enter, and who answers.

The double answers requests for code itself, by the session's kernels; it forwards those for
terminals and files to the session's workbench.
"""

from agentdouble.sandbox.data_plane.browser_routes import BrowserRoutes
from agentdouble.sandbox.data_plane.refusals import render_refusal
from agentdouble.sandbox.data_plane.routes import UPLOAD, data_plane
from agentdouble.sandbox.data_plane.session_token import PREFIX, is_data_plane

__all__ = ["PREFIX", "UPLOAD", "BrowserRoutes", "data_plane", "is_data_plane", "render_refusal"]
