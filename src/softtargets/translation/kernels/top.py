"""The likeliest tokens of each row of logits, with their log-probabilities, in one reading."""

import triton
import triton.language as tl


@triton.jit
def _logits(logits, columns, there, temperature, SCALED: tl.constexpr):
    seen = tl.load(logits + columns, mask=there, other=-float("inf"))
    if SCALED:
        seen = tl.div_rn(seen, tl.zeros_like(seen) + temperature)
    return seen


@triton.jit
def keys_of(numbers, places):
    """Whole numbers in the order of the numbers, of equal ones in the opposite order of their places."""
    bits = (numbers + 0.0).to(tl.int32, bitcast=True)  # which makes 0 of -0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return (ordered.to(tl.int64) << 32) | (0x7FFFFFFF - places).to(tl.int64)


@triton.jit
def top_kernel(
    logits,
    log_probs,
    tokens,
    temperature,
    VOCABULARY: tl.constexpr,
    COUNT: tl.constexpr,  # how many of each row
    BLOCK: tl.constexpr,  # a power of 2, at least the vocabulary
    CHUNK: tl.constexpr,  # a power of 2 that divides the block
    SEARCHED: tl.constexpr,  # how many chunks are searched, a power of 2, at least COUNT; 0: everything
    SCALED: tl.constexpr,  # whether the temperature is not 1
):
    """Logits (rows, VOCABULARY) to (rows, COUNT) each, likeliest first, of equals the lower token first.

    Numbers are compared together with their tokens, as `softtargets.translation.ranking.best` does: no two are equal,
    and what is no number comes first. Only the chunks with the largest maxima are searched, since they hold all that
    can be among the best.
    """
    lowest = -0x7FFFFFFFFFFFFFFF
    row = tl.program_id(0).to(tl.int64)
    logits += row * VOCABULARY
    chunk = tl.arange(0, BLOCK // CHUNK)
    within = tl.arange(0, CHUNK)
    columns = chunk[:, None] * CHUNK + within[None, :]
    there = columns < VOCABULARY
    seen = _logits(logits, columns, there, temperature, SCALED)
    maxima = tl.max(seen, 1)
    largest = tl.max(maxima, 0)
    total = tl.log(tl.sum(tl.sum(tl.where(there, tl.exp(seen - largest), 0.0), 1), 0))
    if SEARCHED:
        chunks = keys_of(maxima - largest - total, chunk)
        place = tl.arange(0, SEARCHED)
        chosen = tl.zeros((SEARCHED,), tl.int32)
        for number in tl.static_range(SEARCHED):
            best = tl.max(chunks, 0)
            chunks = tl.where(chunks == best, lowest, chunks)
            chosen = tl.where(place == number, 0x7FFFFFFF - (best & 0xFFFFFFFF).to(tl.int32), chosen)
        columns = chosen[:, None] * CHUNK + within[None, :]
        there = columns < VOCABULARY
        seen = _logits(logits, columns, there, temperature, SCALED)
    keys = tl.where(there, keys_of(seen - largest - total, columns), lowest)
    for number in tl.static_range(COUNT):
        best = tl.max(tl.max(keys, 1), 0)
        keys = tl.where(keys == best, lowest, keys)
        found = (best >> 32).to(tl.int32)
        found = found ^ ((found >> 31) & 0x7FFFFFFF)
        tl.store(log_probs + row * COUNT + number, found.to(tl.float32, bitcast=True))
        tl.store(tokens + row * COUNT + number, 0x7FFFFFFF - (best & 0xFFFFFFFF))
