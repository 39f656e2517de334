"""Explorations that run from top to bottom; ``python -m notebooks`` writes what they show."""
