"""Which kernels a step of a study's training consists of, and how long each takes."""
