"""Legal variants of a platform: answers in another form must not fail any check."""
