"""Networks of trained players: architectures, weight files, loading and export."""
