"""A whole training: session, limits, and the loop of acting and learning."""
