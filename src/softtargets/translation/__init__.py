"""Translation: text to tokens and back, beam search, BLEU, and how far probabilities of tokens can be trusted."""

from softtargets.translation.batching import prefixes
from softtargets.translation.beam import Hypothesis, Penalty, beam_search
from softtargets.translation.bleu_statistics import (
    BleuInterval,
    bleu_difference,
    bleu_interval,
    bleu_of,
    sentence_statistics,
)
from softtargets.translation.chrf_statistics import chrf_interval
from softtargets.translation.decoding import Searcher, Translator, decode, score
from softtargets.translation.frequencies import (
    ChosenProbabilities,
    FrequencySplits,
    chosen_token_probabilities,
    frequency_scores,
    frequency_splits,
)
from softtargets.translation.next_tokens import predict_tokens
from softtargets.translation.plane import TokenStates, choose_tokens
from softtargets.translation.rows import divided, rows_of
from softtargets.translation.sampled import sample_translations
from softtargets.translation.sampling import greedy, sample
from softtargets.translation.scoring import Score, bleu, chrf, sacrebleu_metrics, sentence_scores
from softtargets.translation.sequences import (
    SequenceCalibration,
    exact_matches,
    sequence_calibration,
    spearman,
)
from softtargets.translation.symbols import BOS, EOS, IGNORED, PAD, SYMBOLS, UNK
from softtargets.translation.temperatures import TemperatureOptima, temperature_optima
from softtargets.translation.tokeniser import Tokeniser
from softtargets.translation.tokens import TokenCollector, TokenPredictions
from softtargets.translation.unigrams import frequencies

__all__ = [
    "BOS",
    "EOS",
    "IGNORED",
    "PAD",
    "SYMBOLS",
    "UNK",
    "BleuInterval",
    "ChosenProbabilities",
    "FrequencySplits",
    "Hypothesis",
    "Penalty",
    "Score",
    "Searcher",
    "SequenceCalibration",
    "TemperatureOptima",
    "TokenCollector",
    "TokenPredictions",
    "TokenStates",
    "Tokeniser",
    "Translator",
    "beam_search",
    "bleu",
    "bleu_difference",
    "bleu_interval",
    "bleu_of",
    "choose_tokens",
    "chosen_token_probabilities",
    "chrf",
    "chrf_interval",
    "decode",
    "divided",
    "exact_matches",
    "frequencies",
    "frequency_scores",
    "frequency_splits",
    "greedy",
    "predict_tokens",
    "prefixes",
    "rows_of",
    "sacrebleu_metrics",
    "sample",
    "sample_translations",
    "score",
    "sentence_scores",
    "sentence_statistics",
    "sequence_calibration",
    "spearman",
    "temperature_optima",
]
