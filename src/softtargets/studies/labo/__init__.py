"""What the studies of LABO (Lu et al. 2023) share: how its models are trained, what is measured, how it is told."""
