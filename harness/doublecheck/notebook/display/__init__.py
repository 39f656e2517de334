"""The displays of values in a notebook: escaped HTML, no assets, readable in light and dark."""
