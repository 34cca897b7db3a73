"""What studies of LABO's translations (Lu et al. 2023) share: columns, methods, what is measured, how it is told."""
