"""Learning by self-play, and how well what was learned plays."""
