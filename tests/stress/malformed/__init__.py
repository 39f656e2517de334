"""Malformed requests: made by chance, sent as they are, and judged by what comes back."""
