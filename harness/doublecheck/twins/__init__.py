"""Twin: the same calls to a double and to a live platform, and what differs."""
