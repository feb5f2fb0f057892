"""The model in C, for translating on a CPU. `engine.py` calls the library that these files are compiled to."""
