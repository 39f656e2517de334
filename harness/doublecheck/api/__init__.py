"""What Python and notebooks ask for as a whole: the checks of a platform, a twin, the unknowns."""
