"""The computer that a program runs on: its device and threads, files, signals, this Python, and a cluster."""
