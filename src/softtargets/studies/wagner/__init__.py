"""What studies of the replication of 2023 (Wagner, Kurowski, Holländer, Uelwer) share: networks, grids, measures."""
