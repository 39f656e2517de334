"""A run of the contract checks: its start and its results."""
