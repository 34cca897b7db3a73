"""Translation: text to tokens and back, beam search, BLEU, and how far probabilities of tokens can be trusted."""

from softtargets.translation.beam import Hypothesis, beam_search
from softtargets.translation.decoding import Translator, decode, score
from softtargets.translation.sampling import greedy, sample

__all__ = ["Hypothesis", "Translator", "beam_search", "decode", "greedy", "sample", "score"]
