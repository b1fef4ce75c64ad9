"""Games of OpenSpiel as games, and searches as bots of OpenSpiel."""
