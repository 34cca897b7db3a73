"""Benchmarks: ours against what people use today, as ratios measured in one run.

`losses`, `training` and `calibration` are a bench each: a subclass of `Bench`, with its cases, contestants, check and
sentences. What lies beside them is the harness they share. From a checkout: ``python -m benchmarks losses --help``.

`noise` measures no speed: how often the estimate of label noise is right (``python -m benchmarks.noise``).
`kernels` has no rivals: what a step of a study's training consists of (``python -m benchmarks.kernels``).
"""
