"""How values look in a notebook: escaped HTML, no assets, readable on light and dark."""
