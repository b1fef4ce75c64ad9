"""The UCI engine: what chess programs talk to (`pondertree uci`). NumPy alone is enough for it."""
