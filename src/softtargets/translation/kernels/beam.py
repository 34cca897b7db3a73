"""A step of a beam search for all inputs at a time: what `softtargets.translation.beam.Beams.go_on` does, in one go."""

import triton
import triton.language as tl


@triton.jit
def go_on_kernel(
    added,  # (inputs * BEAM, EACH): log-probabilities of the likeliest tokens, likeliest first
    added_tokens,  # the tokens
    place,  # (1,): how many tokens there are
    limits,  # (inputs,)
    penalties,  # (MOST + 2,)
    log_probs,  # (inputs, BEAM), and so on as in `Beams`
    tokens,
    last,
    parents,
    kept_tokens,
    kept_lengths,
    kept_ends,
    kept_log_probs,
    kept_scores,
    done,
    wrong,
    origins,  # (inputs, BEAM, CAPACITY): beside which hypothesis keys and values of each one's past were written
    EOS: tl.constexpr,
    BEAM: tl.constexpr,
    EACH: tl.constexpr,
    NBEST: tl.constexpr,
    MOST: tl.constexpr,
    CAPACITY: tl.constexpr,
    FALLS: tl.constexpr,  # whether longer hypotheses are divided by more
    CANDIDATES: tl.constexpr,  # a power of 2, at least BEAM * EACH
    PICKS: tl.constexpr,  # a power of 2, at least 2 * BEAM
    ENTRIES: tl.constexpr,  # a power of 2, at least NBEST + 2 * BEAM
    COLUMNS: tl.constexpr,  # tokens that are moved at a time
):
    """One program for one input. Of equal numbers the first is taken, everywhere."""
    example = tl.program_id(0).to(tl.int64)
    now = tl.load(place)
    length = now + 1
    never = -float("inf")

    # The best continuations.
    candidate = tl.arange(0, CANDIDATES)
    there = candidate < BEAM * EACH
    before = tl.load(log_probs + example * BEAM + candidate // EACH, mask=there, other=never)
    number = tl.load(added + example * BEAM * EACH + candidate, mask=there, other=0.0)
    token = tl.load(added_tokens + example * BEAM * EACH + candidate, mask=there, other=0)
    number = tl.where(before == never, 0.0, number)  # may be anything for what has probability zero
    bad = tl.max(((number != number) | (number > 1e-3)).to(tl.int32), 0)
    tl.store(wrong, tl.full((), 1, tl.uint8), mask=bad != 0)
    sums = before + tl.minimum(number, 0.0).to(tl.float64)
    free = there
    pick = tl.arange(0, PICKS)
    picked_sums = tl.full((PICKS,), never, tl.float64)
    picked_tokens = tl.full((PICKS,), EOS, tl.int64)
    picked_parents = tl.zeros((PICKS,), tl.int32)
    # No `min`: what Triton 3.5 makes of it is no constant.
    for place_of in tl.static_range(2 * BEAM if EACH > 2 else BEAM * EACH):
        best = tl.max(tl.where(free, sums, never), 0)
        which = tl.min(tl.where(free & (sums == best), candidate, CANDIDATES - 1), 0)
        chosen = candidate == which
        free = free & (candidate != which)
        here = pick == place_of
        picked_sums = tl.where(here, best, picked_sums)
        picked_tokens = tl.where(here, tl.sum(tl.where(chosen, token, 0), 0), picked_tokens)
        picked_parents = tl.where(here, which // EACH, picked_parents)

    ends = picked_tokens == EOS
    # Which come next: those that have not ended, then, for want of others, those that have, as nothing.
    behind = (pick[None, :] <= pick[:, None]).to(tl.int32)
    going = tl.sum(behind * (1 - ends.to(tl.int32))[None, :], 1)
    ending = tl.sum(behind * ends.to(tl.int32)[None, :], 1)
    goers = tl.sum(1 - ends.to(tl.int32), 0)
    rank = tl.where(ends, goers + ending, going) - 1
    follows = rank < BEAM
    alive = tl.where(ends, never, picked_sums)
    limit = tl.load(limits + example)
    cut = limit == length
    ended = ends & (pick < BEAM) & (picked_sums > never)
    finished = tl.where(ended, picked_sums, never)
    stopped = tl.where(cut & follows, alive, never)

    # What is set aside: (kept so far, ended now, stopped at the limit), the best of them.
    if tl.max(tl.maximum(finished, stopped), 0) > never:
        entry = tl.arange(0, ENTRIES)
        old = entry < NBEST
        fresh = (entry >= NBEST) & (entry < NBEST + BEAM)
        late = (entry >= NBEST + BEAM) & (entry < NBEST + 2 * BEAM)
        old_scores = tl.load(kept_scores + example * NBEST + entry, mask=old, other=never)
        old_log_probs = tl.load(kept_log_probs + example * NBEST + entry, mask=old, other=never)
        old_lengths = tl.load(kept_lengths + example * NBEST + entry, mask=old, other=0)
        old_ends = tl.load(kept_ends + example * NBEST + entry, mask=old, other=0).to(tl.int32)
        is_fresh = fresh[:, None] & (pick[None, :] == (entry - NBEST)[:, None])
        is_late = late[:, None] & follows[None, :] & (rank[None, :] == (entry - NBEST - BEAM)[:, None])
        new_log_probs = tl.maximum(
            tl.max(tl.where(is_fresh, finished[None, :], never), 1),
            tl.max(tl.where(is_late, stopped[None, :], never), 1),
        )
        comes_from = is_fresh | is_late
        entry_tokens = tl.sum(tl.where(comes_from, picked_tokens[None, :], 0), 1)
        entry_parents = tl.sum(tl.where(comes_from, picked_parents[None, :], 0), 1)
        penalty = tl.load(penalties + length)
        scores = tl.where(old, old_scores, new_log_probs / penalty)
        entry_log_probs = tl.where(old, old_log_probs, new_log_probs)
        entry_lengths = tl.where(old, old_lengths, length)
        entry_ends = tl.where(old, old_ends, fresh.to(tl.int32))
        kept = tl.arange(0, PICKS)
        open_entries = entry < NBEST + 2 * BEAM
        from_entry = tl.zeros((PICKS,), tl.int32)
        for place_of in tl.static_range(NBEST):
            best = tl.max(tl.where(open_entries, scores, never), 0)
            which = tl.min(tl.where(open_entries & (scores == best), entry, ENTRIES - 1), 0)
            open_entries = open_entries & (entry != which)
            from_entry = tl.where(kept == place_of, which, from_entry)
        taken = kept < NBEST
        this = from_entry[:, None] == entry[None, :]
        new_scores = tl.max(tl.where(this, scores[None, :], never), 1)
        chosen_log_probs = tl.max(tl.where(this, entry_log_probs[None, :], never), 1)
        chosen_lengths = tl.sum(tl.where(this, entry_lengths[None, :], 0), 1)
        chosen_ends = tl.sum(tl.where(this, entry_ends[None, :], 0), 1)
        chosen_tokens = tl.sum(tl.where(this, entry_tokens[None, :], 0), 1)
        chosen_parents = tl.sum(tl.where(this, entry_parents[None, :], 0), 1)
        slot = example * NBEST + kept
        tl.debug_barrier()
        tl.store(kept_scores + slot, new_scores, mask=taken)
        tl.store(kept_log_probs + slot, chosen_log_probs, mask=taken)
        tl.store(kept_lengths + slot, chosen_lengths, mask=taken)
        tl.store(kept_ends + slot, chosen_ends.to(tl.uint8), mask=taken)
        stays = from_entry < NBEST
        for begin in range(0, length, COLUMNS):
            column = begin + tl.arange(0, COLUMNS)
            inside = taken[:, None] & (column < MOST)[None, :]
            old_row = kept_tokens + (example * NBEST + from_entry)[:, None] * MOST + column[None, :]
            new_row = tokens + (example * BEAM + chosen_parents)[:, None] * MOST + column[None, :]
            was = tl.load(old_row, mask=inside & stays[:, None], other=0)
            is_now = tl.load(new_row, mask=inside & (~stays)[:, None] & (column < now)[None, :], other=0)
            is_now = tl.where((column == now)[None, :], chosen_tokens[:, None], is_now)
            tl.debug_barrier()
            tl.store(
                kept_tokens + slot[:, None] * MOST + column[None, :],
                tl.where(stays[:, None], was, is_now),
                mask=inside,
            )
            tl.debug_barrier()

    # What goes on.
    left = tl.where(cut, never, alive)
    tl.store(log_probs + example * BEAM + rank, left, mask=follows)
    tl.store(last + example * BEAM + rank, picked_tokens, mask=follows)
    tl.store(parents + example * BEAM + rank, example * BEAM + picked_parents, mask=follows)
    for begin in range(0, length, COLUMNS):
        column = begin + tl.arange(0, COLUMNS)
        inside = follows[:, None] & (column < MOST)[None, :]
        past = tokens + (example * BEAM + picked_parents)[:, None] * MOST + column[None, :]
        history = tl.load(past, mask=inside & (column < now)[None, :], other=0)
        history = tl.where((column == now)[None, :], picked_tokens[:, None], history)
        tl.debug_barrier()
        tl.store(tokens + (example * BEAM + rank)[:, None] * MOST + column[None, :], history, mask=inside)
        tl.debug_barrier()
    for begin in range(0, length, COLUMNS):
        column = begin + tl.arange(0, COLUMNS)
        inside = follows[:, None] & (column < CAPACITY)[None, :]
        past = origins + (example * BEAM + picked_parents)[:, None] * CAPACITY + column[None, :]
        beside = tl.load(past, mask=inside & (column < now)[None, :], other=0).to(tl.int32)
        beside = tl.where((column == now)[None, :], picked_parents[:, None], beside)
        tl.debug_barrier()
        tl.store(
            origins + (example * BEAM + rank)[:, None] * CAPACITY + column[None, :],
            beside.to(origins.dtype.element_ty),
            mask=inside,
        )
        tl.debug_barrier()

    # Whether anything that goes on can still come to be among the kept.
    if FALLS:
        bound = tl.load(penalties + limit)
    else:
        bound = tl.load(penalties + length + 1)
    hope = tl.max(tl.where(follows, left / bound, never), 0)
    worst = tl.load(kept_scores + example * NBEST + NBEST - 1)
    tl.store(done + example, (worst >= hope).to(tl.uint8))
