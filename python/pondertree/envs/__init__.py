"""Environments of other libraries as games of one player with rewards."""
