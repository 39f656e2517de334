"""The data plane of sessions, ``/v1/...``: its access control and its routes.

The double itself answers requests for code, with the session's kernels. It forwards requests for
terminals and files to the session's workbench.
"""
