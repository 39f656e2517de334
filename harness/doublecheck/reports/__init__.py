"""How a run of the checks is told: a matrix for a terminal, HTML, JSON, JUnit XML."""
