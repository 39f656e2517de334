"""What runs inside an instance, in whatever interpreter it has: the standard library only."""
