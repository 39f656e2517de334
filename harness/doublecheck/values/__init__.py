"""What a platform answers, as frozen values that show themselves in a notebook."""
