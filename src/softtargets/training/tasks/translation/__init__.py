"""Translation as a task: sentence pairs in buckets of tokens, what a model is shown of them, what is kept."""

from softtargets.training.tasks.translation.sentences import Sentences
from softtargets.training.tasks.translation.task import TranslationTask

__all__ = ["Sentences", "TranslationTask"]
