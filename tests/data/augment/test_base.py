from __future__ import annotations

import pytest
import torch

from softtargets.data.augment.base import take

from .making import pictures


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.float64])
def test_every_pixel_comes_from_where_it_is_said_to_or_is_black(dtype):
    images = pictures(4, 2, 3, 5).to(dtype)
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(-2, 5, (4, 6, 7), generator=generator)
    columns = torch.randint(-2, 7, (4, 6, 7), generator=generator)
    found = take(images, rows, columns)
    assert (found.shape, found.dtype) == ((4, 2, 6, 7), dtype)
    black = 0
    for m in range(4):
        for c in range(2):
            for i in range(6):
                for j in range(7):
                    y, x = int(rows[m, i, j]), int(columns[m, i, j])
                    outside = not (0 <= y < 3 and 0 <= x < 5)
                    black += outside
                    assert found[m, c, i, j] == (0 if outside else images[m, c, y, x])
    assert 0 < black < found.numel()


def test_rows_and_columns_broadcast_and_images_need_not_be_contiguous():
    images = pictures(3, 2, 4, 5).permute(0, 1, 3, 2)
    rows, columns = torch.tensor([[[1], [-1]]] * 3), torch.tensor([[[0, 3, 4]]] * 3)
    found = take(images, rows, columns)
    assert found.equal(take(images.contiguous(), rows.expand(3, 2, 3), columns.expand(3, 2, 3)))
    assert found[:, :, 0, :2].equal(images[:, :, 1][..., [0, 3]])
    assert not found[:, :, 1].any()
    assert not found[..., 2].any()
