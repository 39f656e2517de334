"""Code that runs inside an instance, in any interpreter: the standard library only."""
