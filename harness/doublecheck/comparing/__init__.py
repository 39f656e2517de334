"""Compare two platforms' answers to one call, with pure functions."""
