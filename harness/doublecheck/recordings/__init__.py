"""Record the requests to a live platform and its answers, and replay them on a double."""
