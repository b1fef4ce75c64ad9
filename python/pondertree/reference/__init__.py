"""The plain Python twin of the engine: one search per specification, in that specification's own names.

It is slow on purpose. It is the text to learn from, and the oracle: the engine must equal it visit for visit.
Nothing here needs more than the standard library, NumPy where a learned model is asked, and in `hybrid` the chess tools
of this package; import the module you want, e.g. `pondertree.reference.uct`.
"""
