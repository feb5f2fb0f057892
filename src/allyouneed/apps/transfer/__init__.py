"""Training that begins with a trained model: a bundle adapted to corrections, a smaller model taught by a larger."""
