"""The processes of other people's code: how they are forked, confined, counted and ended.

A session's kernels and a runtime's instances have this in common.
"""
