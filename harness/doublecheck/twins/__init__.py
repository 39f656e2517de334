"""Twin: send the same calls to a double and to a live platform, and compare the answers."""
