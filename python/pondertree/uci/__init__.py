"""The UCI engine (`pondertree uci`). Requires NumPy only."""
