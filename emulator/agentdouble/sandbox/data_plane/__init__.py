"""The data plane of sessions, ``/v1/...``: who may enter, and who answers.

The double answers requests for code itself, by the session's kernels; it forwards those for
terminals and files to the session's workbench.
"""

from agentdouble.sandbox.data_plane.refusals import render_refusal
from agentdouble.sandbox.data_plane.session_token import PREFIX, UPLOAD, is_data_plane

__all__ = ["PREFIX", "UPLOAD", "is_data_plane", "render_refusal"]
