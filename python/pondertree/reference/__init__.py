"""The plain Python reference implementation: one module per search, in the names of its specification.

It is written for reading, not for speed, and serves as the oracle: the engine must reproduce its visit counts exactly.
It needs only the standard library, NumPy for networks and models, and in `hybrid` this package's chess functions.
Import a module by name, e.g. `pondertree.reference.uct`. A comment marked "Trap" explains a deviation from a
specification.
"""
