"""Notebooks: how values look in them, and the magics."""
