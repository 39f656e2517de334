"""The clients of a platform: an operation of the platform is a method, and is written only here.

``_async`` is written by hand; the build generates ``_sync`` from it with ``harness/unasync.py``. It
has a module for each class: ``platform``, ``agents``, ``sandbox``, ``browser``, ``mcp``, ``a2a``,
and ``clock``, ``faults`` and ``model`` of a double. What differs between the two, apart from
``await``, is in ``live_outputs``. ``loop_thread`` runs async code for blocking callers, and
``transport`` sends requests and reads answers. ``created`` is what a test's client ends again.

``open_target`` turns a URL, the environment or nothing into an open target, ``doubles`` finds and
starts doubles, ``session_target`` opens the target of a test session, and ``preflight`` checks that
a target is usable, ``key_checks`` that the platform takes its keys.
``log_filter`` keeps their logs out of a notebook.

The clients use the formats of ``wire`` and return ``values``. They must not import pytest.
"""
