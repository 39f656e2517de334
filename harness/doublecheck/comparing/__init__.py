"""Comparing two platforms' answers to one call: pure functions over values."""
