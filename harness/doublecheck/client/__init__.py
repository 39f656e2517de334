"""The clients of a platform: calls, live outputs, faults, the clock, MCP and A2A.

``_async`` is written by hand and ``_sync`` is generated from it, at build time, by
``harness/unasync.py``. Their differences, apart from ``await``, are in ``live_outputs``;
``loop_thread`` runs async code for blocking callers, and ``transport`` sends and reads requests.

``open_target`` turns a URL, the environment or nothing into an open target, ``doubles`` starts a
double, and ``preflight`` checks that a target can be used. ``log_filter`` keeps their logs out of
a notebook.

The clients build their requests with ``wire`` and return ``values``. They import no pytest.
"""
