"""The requests and answers of each surface: one pure function builds a call, another reads it."""
