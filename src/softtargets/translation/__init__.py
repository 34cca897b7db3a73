"""Translation: text to tokens and back, beam search, BLEU, and how far probabilities of tokens can be trusted."""

from softtargets.translation.tokeniser import Tokeniser
from softtargets.translation.unigrams import frequencies

__all__ = ["Tokeniser", "frequencies"]
