"""Benchmarks: ours against what people use today, as ratios measured in one run. Torch is imported late.

`losses`, `training` and `calibration` are a bench each; what lies beside them is what they share.
"""
