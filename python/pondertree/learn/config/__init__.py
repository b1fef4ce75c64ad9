"""What is trained: the configuration, its defaults, and the game."""
