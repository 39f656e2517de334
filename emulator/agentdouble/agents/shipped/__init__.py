"""The agents directory that agentdouble ships: agents that work without a model."""
