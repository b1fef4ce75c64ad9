"""The UCI engine: what chess programs talk to (`ponderosa uci`). NumPy alone is enough for it."""
