"""The data plane of sessions, ``/v1/...``: who may enter, and who answers.

Code is answered by the double, from the session's kernels; terminals and files are forwarded
to the session's workbench.
"""

from agentdouble.sandbox.data_plane.browser_routes import BrowserRoutes
from agentdouble.sandbox.data_plane.refusing import render_refusal
from agentdouble.sandbox.data_plane.routes import UPLOAD, data_plane
from agentdouble.sandbox.data_plane.session_token import PREFIX, is_data_plane

__all__ = ["PREFIX", "UPLOAD", "BrowserRoutes", "data_plane", "is_data_plane", "render_refusal"]
