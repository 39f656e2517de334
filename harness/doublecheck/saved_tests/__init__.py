"""Saving what was asked and answered as a test that asks the same again."""
