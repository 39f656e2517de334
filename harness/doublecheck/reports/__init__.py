"""How a run of the checks is told: a matrix for a terminal, JSON for programs."""
