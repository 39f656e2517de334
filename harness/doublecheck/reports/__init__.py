"""Reports on a run of the checks: a matrix for a terminal, HTML, JSON, JUnit XML."""
