"""What a cluster costs: many tiny runs on the workers of a Ray cluster against plain processes on the same cores."""
