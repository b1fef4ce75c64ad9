"""Strength of a player during a training, and the report."""
