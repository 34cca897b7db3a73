"""Is confidence to be believed where nothing else is known? What calibrate says of files without scores of classes."""
