"""Is a model's confidence to be believed? A file of predictions in, a verdict and a page out."""
