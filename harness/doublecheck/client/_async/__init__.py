"""The async clients, from which ``harness/unasync.py`` generates the blocking ones."""
