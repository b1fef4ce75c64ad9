"""The entry points that the five specifications name, one page each."""
