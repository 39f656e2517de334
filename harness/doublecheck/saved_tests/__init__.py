"""Save requests and their answers as a test that sends the requests again."""
