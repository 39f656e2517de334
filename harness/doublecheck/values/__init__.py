"""The answers of a platform, as frozen values that a notebook can display."""
