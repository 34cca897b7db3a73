"""Adapters for other people's training loops: each library has one small file, which alone imports it.

``softtargets.integrations.huggingface``, ``.lightning``, ``.timm``, ``.torchmetrics``, ``.sklearn`` and ``.trackers``.
Importing this room imports none of them.
"""
