"""The functions for Python and notebooks: check, twin, calibrate, connect and unknowns."""
