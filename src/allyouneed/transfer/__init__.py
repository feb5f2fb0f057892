"""What one model hands to the next: a model adapted to corrections, and a smaller one taught by a larger."""
