"""The training loop: the session, its scheduling (alternating or concurrent), limits and devices. Needs PyTorch.

`loop.train.train` is offered as `pondertree.learn.train`; a name here would hide the module.
"""
