"""The clients of a platform: calls, live outputs, faults, the clock, MCP and A2A.

``_async`` is written by hand; the build generates ``_sync`` from it with ``harness/unasync.py``.
What differs between the two, apart from ``await``, is in ``live_outputs``. ``loop_thread`` runs
async code for blocking callers, and ``transport`` sends requests and reads answers.

``open_target`` turns a URL, the environment or nothing into an open target, ``doubles`` finds and
starts doubles, ``session_target`` opens the target of a test session, and ``preflight`` checks that
a target is usable.
``log_filter`` keeps their logs out of a notebook.

The clients build their requests with ``wire`` and return ``values``. They must not import pytest.
"""
