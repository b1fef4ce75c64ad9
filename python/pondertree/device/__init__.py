"""The hot part of a search where its network computes: on a GPU."""
