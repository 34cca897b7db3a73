"""Translation: text to tokens and back, beam search, BLEU, and how far probabilities of tokens can be trusted."""
