"""Attention over sentences so short that the scores of all their keys fit into registers, and its gradient.

Queries, keys and values are (sentences, places, heads * d), parts of what a linear layer has made of states, and are
read where they lie. A program works for one head of one sentence and holds all keys at once, so that neither maxima nor
sums have to be kept, and the gradient is added up by one program, in one order: the same bits every time, whatever
other sentences there are.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
# Numbers that a kernel is not compiled anew for: blocks and layouts are few, lengths many.
ANY = ["queries_there", "keys_there", "heads", "seen_sentence"]


@triton.jit
def rows_of(matrix, places, count, step, D: tl.constexpr):
    """Some rows (places, D) of a matrix whose rows are a step apart; 0 past the last."""
    offsets = places[:, None] * step + tl.arange(0, D)[None, :]
    return tl.load(matrix + offsets, mask=(places < count)[:, None], other=0.0)


@triton.jit
def write_rows(matrix, found, places, count, step, D: tl.constexpr):
    """The counterpart of `rows_of`."""
    offsets = places[:, None] * step + tl.arange(0, D)[None, :]
    tl.store(matrix + offsets, found.to(matrix.dtype.element_ty), mask=(places < count)[:, None])


@triton.jit
def counted(seen, columns, keys_there):
    """Which keys count: those that are there and, if there is a mask, are seen."""
    there = columns < keys_there
    if seen is not None:
        there = there & (tl.load(seen + columns, mask=there, other=0) != 0)
    return there


@triton.jit
def powers_of(q, k, rows, columns, counts, scale, CAUSAL: tl.constexpr, PRECISION: tl.constexpr):
    """exp of the scores (queries, keys), less the largest of each row, and the sums of the rows."""
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * (scale * LOG2_E)
    looked_at = counts[None, :]
    if CAUSAL:
        looked_at = looked_at & (columns[None, :] <= rows[:, None])
    scores = tl.where(looked_at, scores, float("-inf"))
    powers = tl.exp2(scores - tl.max(scores, 1)[:, None])
    return powers, tl.sum(powers, 1)


@triton.jit(do_not_specialize=ANY)
def attention_kernel(
    queries,
    keys,
    values,
    seen,  # (sentences, keys), whether each counts: one of a sentence does at least; or None
    results,  # (sentences, queries, heads * D), dense
    queries_there,  # of a sentence
    keys_there,
    heads,
    query_sentence,  # how far apart in memory
    query_place,
    key_sentence,  # of values as well
    key_place,
    seen_sentence,
    scale,
    D: tl.constexpr,
    QUERIES: tl.constexpr,  # of a program
    KEYS: tl.constexpr,  # not fewer than there are
    CAUSAL: tl.constexpr,  # whether a query looks at no keys after its own place
    PRECISION: tl.constexpr,
):
    """softmax(scale * Q K^T) V."""
    sentence, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    rows, columns = tl.program_id(1) * QUERIES + tl.arange(0, QUERIES), tl.arange(0, KEYS)
    if seen is not None:
        seen += sentence * seen_sentence
    q = rows_of(queries + sentence * query_sentence + head * D, rows, queries_there, query_place, D)
    k = rows_of(keys + sentence * key_sentence + head * D, columns, keys_there, key_place, D)
    v = rows_of(values + sentence * key_sentence + head * D, columns, keys_there, key_place, D)
    counts = counted(seen, columns, keys_there)
    powers, total = powers_of(q, k, rows, columns, counts, scale, CAUSAL, PRECISION)
    found = tl.dot(powers.to(v.dtype), v, input_precision=PRECISION) / total[:, None]
    results += sentence * queries_there * (heads * D) + head * D
    write_rows(results, found, rows, queries_there, heads * D, D)


@triton.jit(do_not_specialize=ANY)
def attention_gradient_kernel(
    queries,
    keys,
    values,
    seen,
    upstream,  # (sentences, queries, heads * D)
    of_queries,
    of_keys,
    of_values,
    queries_there,
    keys_there,
    heads,
    query_sentence,
    query_place,
    key_sentence,
    key_place,
    seen_sentence,
    upstream_sentence,
    upstream_place,
    of_query_sentence,
    of_query_place,
    of_key_sentence,
    of_key_place,
    scale,
    D: tl.constexpr,
    QUERIES: tl.constexpr,  # at a time
    KEYS: tl.constexpr,
    ONCE: tl.constexpr,  # whether that is all queries
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The gradients with respect to queries, keys and values; the weights of the sum are computed again.

    With weights P and pulls G V^T on them, the scores' gradient is P * (pull - the mean of the row's pulls under P).
    """
    sentence, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    columns = tl.arange(0, KEYS)
    if seen is not None:
        seen += sentence * seen_sentence
    queries += sentence * query_sentence + head * D
    upstream += sentence * upstream_sentence + head * D
    of_queries += sentence * of_query_sentence + head * D
    k = rows_of(keys + sentence * key_sentence + head * D, columns, keys_there, key_place, D)
    v = rows_of(values + sentence * key_sentence + head * D, columns, keys_there, key_place, D)
    counts = counted(seen, columns, keys_there)
    dk, dv = tl.zeros((KEYS, D), tl.float32), tl.zeros((KEYS, D), tl.float32)
    for begin in range(0, QUERIES if ONCE else queries_there, QUERIES):
        rows = begin + tl.arange(0, QUERIES)
        q = rows_of(queries, rows, queries_there, query_place, D)
        g = rows_of(upstream, rows, queries_there, upstream_place, D)
        powers, total = powers_of(q, k, rows, columns, counts, scale, CAUSAL, PRECISION)
        weights = powers / total[:, None]
        dv = tl.dot(tl.trans(weights.to(g.dtype)), g, dv, input_precision=PRECISION)
        pulls = tl.dot(g, tl.trans(v), input_precision=PRECISION)
        of_scores = (weights * (pulls - tl.sum(weights * pulls, 1)[:, None])).to(q.dtype)
        dk = tl.dot(tl.trans(of_scores), q, dk, input_precision=PRECISION)
        dq = tl.dot(of_scores, k, input_precision=PRECISION) * scale
        write_rows(of_queries, dq, rows, queries_there, of_query_place, D)
    of_head = sentence * of_key_sentence + head * D
    write_rows(of_keys + of_head, dk * scale, columns, keys_there, of_key_place, D)
    write_rows(of_values + of_head, dv, columns, keys_there, of_key_place, D)
