"""One small client a surface: a pure function builds a call, another reads its answer."""
