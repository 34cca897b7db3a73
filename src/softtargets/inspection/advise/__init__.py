"""How wrong are labels, and how much smoothing does that ask for?"""
