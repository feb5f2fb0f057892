"""The computer that a program runs on: device, threads, files, signals, the Python interpreter, and a cluster."""
