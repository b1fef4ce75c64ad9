"""Searches over states and learned models: `Search`, the forest of trees it plants, and the worlds they grow in."""
