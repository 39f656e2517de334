"""doublecheck: the harness that puts a platform, or its double, through the same checks."""
