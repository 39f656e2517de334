"""The processes of other people's code: how they are forked, confined, counted and ended.

What a session's kernels and a runtime's instances have in common.
"""
