"""The blocking clients, generated from those of ``_async``: read those."""
