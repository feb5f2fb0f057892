"""Training that begins with a trained model: adapt a bundle to corrections, or teach a smaller model."""
