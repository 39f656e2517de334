"""What an agent is, and the agents that agentdouble ships."""
