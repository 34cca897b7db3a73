"""Where do models put the examples of three classes, before the last layer?"""
