"""A root_agent that is no agent."""

root_agent = "an agent"
