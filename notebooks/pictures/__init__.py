"""Pictures of real runs, for the pages that people read."""
