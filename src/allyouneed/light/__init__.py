"""Translations of a process that has not imported PyTorch yet: the model in NumPy."""
