"""The likeliest tokens of each row of logits, with their log-probabilities, in one reading."""

import triton
import triton.language as tl


@triton.jit
def top_kernel(
    logits,
    log_probs,
    tokens,
    temperature,
    VOCABULARY: tl.constexpr,
    COUNT: tl.constexpr,  # how many of each row
    BLOCK: tl.constexpr,  # a power of 2, at least the vocabulary
    SCALED: tl.constexpr,  # whether the temperature is not 1
):
    """Logits (rows, VOCABULARY) to (rows, COUNT) each, likeliest first, of equals the lower token first.

    Numbers are compared together with their tokens, as `softtargets.translation.ranking.best` does: no two are equal,
    and what is no number comes first.
    """
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    there = columns < VOCABULARY
    seen = tl.load(logits + row * VOCABULARY + columns, mask=there, other=-float("inf"))
    if SCALED:
        seen = tl.div_rn(seen, tl.zeros_like(seen) + temperature)
    largest = tl.max(seen, 0)
    total = tl.sum(tl.where(there, tl.exp(seen - largest), 0.0), 0)
    numbers = seen - largest - tl.log(total) + 0.0  # which makes 0 of -0
    bits = numbers.to(tl.int32, bitcast=True)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys = (ordered.to(tl.int64) << 32) | (VOCABULARY - columns).to(tl.int64)
    lowest = tl.full((BLOCK,), -0x7FFFFFFFFFFFFFFF, tl.int64)
    keys = tl.where(there, keys, lowest)
    for place in tl.static_range(COUNT):
        best = tl.max(keys, 0)
        keys = tl.where(keys == best, lowest, keys)
        found = (best >> 32).to(tl.int32)
        found = found ^ ((found >> 31) & 0x7FFFFFFF)
        tl.store(log_probs + row * COUNT + place, found.to(tl.float32, bitcast=True))
        tl.store(tokens + row * COUNT + place, VOCABULARY - (best & 0xFFFFFFFF))
