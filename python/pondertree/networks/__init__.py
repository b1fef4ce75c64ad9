"""Networks of trained players: architectures, weight files, loading and export, an evaluator in NumPy.

`architecture`, `run_files`, `weights_file`, `numpy_player` and `loading` import PyTorch only where it is needed;
`policy_value` and the model's modules are PyTorch networks.
"""
