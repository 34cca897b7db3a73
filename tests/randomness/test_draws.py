import torch
from scipy import stats

from softtargets.randomness import below, draws, key_words, normals, permutation, uniforms, words
from softtargets.randomness.draws import stacked_keys


def test_every_coordinate_and_key_counts():
    keys = [key_words(seed, purpose) for seed in (0, 1) for purpose in ("order", "dropout")]
    places = [(0,), (1,), (0, 1), (0, 0, 1), (0, 0, 0, 1)]
    drawn = {tuple(words(key, *place).tolist()) for key in keys for place in places}
    assert len(drawn) == len(keys) * len(places)


def test_one_place_alone_and_among_others():
    key = key_words(5, "example")
    epoch = words(key, torch.arange(100), 3)
    assert epoch.shape == (100, 4)
    assert words(key, 42, 3).equal(epoch[42])
    keys = stacked_keys([4, 5, 6], "example")
    assert words(keys[:, None], torch.arange(100), torch.tensor([[1], [3], [3]]))[1].equal(epoch)


def test_uniforms_are_uniform_and_below_one():
    drawn = uniforms(words(key_words(1, "test"), torch.arange(50_000)))
    assert drawn.dtype == torch.float32
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert uniforms(torch.tensor([0, 2**32 - 1])).tolist() == [0.0, 1 - 2**-24]
    assert stats.kstest(drawn.flatten().numpy(), "uniform").pvalue > 1e-3
    correlations = torch.corrcoef(drawn.T) - torch.eye(4)
    assert correlations.abs().max() < 0.02


def test_below_is_even():
    drawn = below(words(key_words(2, "test"), torch.arange(50_000)), 7).flatten()
    assert stats.chisquare(torch.bincount(drawn, minlength=7).numpy()).pvalue > 1e-3
    assert below(torch.tensor([0, 2**32 - 1]), 7).tolist() == [0, 6]


def test_normals_are_normal():
    drawn = normals(words(key_words(3, "test"), torch.arange(50_000)))
    assert drawn.shape == (50_000, 2)
    assert stats.kstest(drawn.flatten().numpy(), "norm").pvalue > 1e-3
    assert normals(torch.tensor([2**32 - 1, 0])).isfinite().all()


def test_examples_whose_first_words_are_equal_are_ordered_by_their_second(monkeypatch):
    first = torch.tensor([7, 7, 3, 7, 2**32 - 1])
    second = torch.tensor([2**32 - 1, 6, 2**31, 2, 0])
    drawn = torch.stack((first, second, second.flip(0), first), dim=-1)
    monkeypatch.setattr(draws, "words", lambda *place: drawn)
    assert permutation(key_words(0, "order"), 5, 1).tolist() == [2, 3, 1, 0, 4]


def test_permutations_are_permutations_and_all_equally_likely():
    keys = stacked_keys(range(6_000), "order")
    orders = permutation(keys, 3, 1)
    assert orders.sort(-1).values.equal(torch.arange(3).expand(6_000, 3))
    numbers = torch.bincount(orders @ torch.tensor([9, 3, 1]))
    assert stats.chisquare(numbers[numbers > 0].numpy()).pvalue > 1e-3
    assert (numbers > 0).sum() == 6


def test_orders_are_drawn_from_63_bits():
    """Two of these 100,000 examples draw the same first word: the second decides, not their place."""
    key, count = key_words(2, "order"), 100_000
    drawn = words(key, torch.arange(count), 0)
    first, second = drawn[13789], drawn[52528]
    assert first[0] == second[0]
    assert first[1] > second[1]
    places = permutation(key, count, 0).argsort()
    assert places[13789] == places[52528] + 1
    numbers = [(int(a) << 31) + (int(b) >> 1) for a, b in drawn[:2000, :2]]
    assert permutation(key, 2000, 0).tolist() == sorted(range(2000), key=numbers.__getitem__)


def test_every_epoch_and_run_has_its_own_order():
    keys = stacked_keys([0, 1], "order")
    together = permutation(keys, 100, torch.tensor([4, 9]))
    assert together[0].equal(permutation(keys[0], 100, 4))
    assert together[1].equal(permutation(keys[1], 100, 9))
    assert not together[0].equal(permutation(keys[0], 100, 5))
