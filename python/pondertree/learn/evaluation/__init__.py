"""Strength of players and its report: matches against anchor opponents, Elo, exact play, metrics, plots, progress."""
