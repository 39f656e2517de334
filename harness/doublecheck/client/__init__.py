"""The clients of a platform, and how its target is found, started and looked at.

``_async`` is written by hand and ``_sync`` generated from it. What differs between the two beyond
``await`` is in ``live_outputs``.
"""
