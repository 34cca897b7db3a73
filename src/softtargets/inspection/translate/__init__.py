"""How good are a model's translations, and can its probabilities be trusted? A model and a test set in, a page out."""

from softtargets.inspection.translate.unknown import Unknown

__all__ = ["Unknown"]
