"""What a person or a test holds in hand: a platform, its servers, clock and faults."""
