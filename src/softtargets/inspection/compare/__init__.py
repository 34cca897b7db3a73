"""Two models on the same examples: who is better at what, and which mistakes do they share?"""
