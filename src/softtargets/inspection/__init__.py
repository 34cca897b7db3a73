"""Files of any model in, one page out: calibrate, compare, view."""
