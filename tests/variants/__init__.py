"""Legal variants of a platform: the form of an answer differs, not its meaning; no check may fail."""
