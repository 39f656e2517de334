"""The processes that run foreign code: how they are forked, confined, counted and ended.

A session's kernels and a runtime's instances both use this package.
"""
