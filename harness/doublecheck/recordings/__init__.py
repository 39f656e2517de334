"""Recording what a live platform is asked and answers, and replaying it at a double."""
