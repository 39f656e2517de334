"""Unknowns in tests: which tests relied on which unknowns, and which depend on the answer."""
