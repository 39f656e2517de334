"""An agent whose module raises ValueError."""

raise ValueError("a setting is missing")
