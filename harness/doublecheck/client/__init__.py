"""The clients of a platform; how a target is found, started and probed.

``_async`` is written by hand and ``_sync`` is generated from it. The differences between the two,
apart from ``await``, are in ``live_outputs``.
"""
