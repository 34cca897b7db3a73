"""How noisy the labels are, from what a model says of examples it has not been trained on."""
