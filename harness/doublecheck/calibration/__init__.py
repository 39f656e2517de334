"""Calibration: what a deployment answers to the unknowns, as a profile for the double."""
