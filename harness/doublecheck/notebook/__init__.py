"""Notebooks: the displays of values."""
