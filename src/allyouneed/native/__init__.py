"""The model in C, for translating on a CPU. `engine.py` calls the library that is compiled from these files."""
