"""The async clients, from which ``python -m tests.unasync`` generates the blocking ones."""
