"""The entry points that the five specifications name, one page each.

`uct` (Classic UCT), `alphazero_chess` (AlphaZero chess), `muzero` (MuZero), `puct_connect_four` (PUCT mathematics) and
`hybrid_chess` (Hybrid chess).
"""
