"""The computer that a program runs on: device, threads, files, signals, Python itself, and a cluster."""
