"""The clients, written once: ``python -m tests.unasync`` makes those of ``_sync`` from them."""
