"""Self-play: many games at once, one move in each at a time."""
