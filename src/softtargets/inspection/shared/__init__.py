"""What advise, calibrate, compare and view have in common: estimates, words for numbers, tables, passes over a file."""
