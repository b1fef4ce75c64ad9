"""Searches over states and learned models: `Search`, `Forest`, `Tree`, and the worlds that store positions."""
