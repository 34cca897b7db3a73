from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.exceptions import StorageError
from softtargets.inspection.view import streams
from softtargets.inspection.view.streams import Disagreement, gather


def stream(dtype=torch.float32, rows: int = 7, count: int = 50):
    generator = torch.Generator().manual_seed(0)
    activations = torch.randn(count, 4, generator=generator).to(dtype)
    labels = torch.randint(0, 5, (count,), generator=generator)
    return activations, labels, list(zip(activations.split(rows), labels.split(rows), strict=True))


@pytest.mark.parametrize("held", [0, 100, 1 << 20])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_rows_of_some_classes_are_kept_in_memory_or_in_a_file(held, dtype):
    activations, labels, chunks = stream(dtype)
    wanted = [place for place in range(50) if int(labels[place]) in (1, 3)]
    with gather(chunks, [3, 1], len(wanted), held=held) as rows:
        assert rows.places.tolist() == wanted
        assert rows.labels.tolist() == labels[wanted].tolist()
        assert np.array_equal(np.asarray(rows.activations, dtype=float), activations[wanted].double().numpy())
        assert isinstance(rows.activations, np.memmap) == (held < 1000)


def test_a_full_disk_is_one_sentence(monkeypatch):
    def full(self, content):
        raise OSError(28, "No space left on device")

    class Full:
        def __enter__(self):
            return type("File", (), {"write": full})()

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(streams.tempfile, "TemporaryFile", Full)
    with (
        pytest.raises(StorageError, match=r"No space left on device\); set TMPDIR"),
        gather(stream()[2], [1], 9, held=10),
    ):
        pass


@pytest.mark.parametrize("batch", [1, 20, 1 << 20])
def test_disagreement_over_a_stream_is_that_of_the_sample(batch, monkeypatch):
    monkeypatch.setattr(streams, "BATCH", batch)
    activations, _, chunks = stream(torch.float64)
    generator = torch.Generator().manual_seed(1)
    means, weights = (
        torch.randn(5, 4, generator=generator).double(),
        torch.randn(5, 4, generator=generator).double(),
    )
    sample = torch.tensor([0, 6, 7, 20, 21, 22, 49])
    nc4 = Disagreement(sample, means, weights, None)
    passed = list(nc4.watching(chunks))
    assert all(torch.equal(one[0], two[0]) for one, two in zip(passed, chunks, strict=True))
    apart = 0
    for row in activations[sample]:
        apart += int((row - means).norm(dim=1).argmin()) != int((weights @ row).argmax())
    assert 0 < apart < 7
    assert nc4.share() == pytest.approx(apart / 7)


def test_a_share_of_nothing_is_refused():
    nc4 = Disagreement(torch.tensor([0]), torch.eye(2), torch.eye(2), None)
    with pytest.raises(ValueError, match="no examples"):
        nc4.share()


def test_a_file_that_changes_while_it_is_read_is_refused():
    with pytest.raises(ValueError, match="has the file changed"), gather(stream()[2], [0, 1, 2, 3, 4], 51):
        pass
