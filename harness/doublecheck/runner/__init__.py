"""A run of the contract checks: how it is started, and what came of it."""
