"""A package without an agent."""
