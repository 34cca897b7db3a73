"""What studies of translation share: how models are trained, what is measured on them, how it is told."""
