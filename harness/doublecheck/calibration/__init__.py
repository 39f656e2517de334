"""Calibration: a deployment's answers to the unknowns, as a profile for the double."""
