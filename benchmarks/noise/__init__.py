"""Does the estimate of label noise hold what it promises? ``python -m benchmarks.noise --help``."""
