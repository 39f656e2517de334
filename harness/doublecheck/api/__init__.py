"""The functions for Python and notebooks: check, calibrate, connect and unknowns."""
