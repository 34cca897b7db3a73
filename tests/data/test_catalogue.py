from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import pytest

from softtargets.data import CATALOGUE
from softtargets.data.catalogue import find_source
from softtargets.exceptions import DataError

CHECKSUM = re.compile(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}")


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_entry_is_complete_and_well_formed(name):
    source = CATALOGUE[name]
    assert source.name == name
    assert all((source.title, source.what, source.citation, source.terms, source.homepage))
    files = [file for layout in source.layouts for known in layout for file in (known, *known.instead)]
    for checksum in [archive.checksum for archive in source.archives] + [file.checksum for file in files]:
        assert checksum is None or CHECKSUM.fullmatch(checksum)
    for archive in source.archives:
        assert archive.checksum or archive.inspect, "a download nobody can check"
        assert all(urlsplit(url).scheme in ("http", "https") for url in archive.urls)
        assert (archive.unpack == "keep") == (not archive.into)
    for path in [file.path for file in files] + [archive.file for archive in source.archives]:
        assert not PurePosixPath(path).is_absolute()
        assert ".." not in PurePosixPath(path).parts


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_kept_download_is_a_file_that_is_checked_and_an_unpacked_one_provides_them(name):
    source = CATALOGUE[name]
    known = {file.path for layout in source.layouts for file in layout}
    for archive in source.archives:
        if archive.unpack == "keep":
            assert archive.file in known
        else:
            assert any(path.startswith(f"{archive.into}/") for path in known)


def test_no_two_files_share_a_checksum():
    sums = [
        archive.checksum for source in CATALOGUE.values() for archive in source.archives if archive.checksum
    ]
    assert len(sums) == len(set(sums))


def test_the_remedy_quotes_for_the_shell():
    assert find_source("mnist").remedy(Path("/a b")).endswith("fetch mnist --to '/a b'")
    assert "/sets/imagenet/train/<wnid>" in find_source("imagenet").remedy(Path("/sets"))


def test_the_size_of_a_download_is_told_where_it_is_known():
    sizes = [archive.size for archive in CATALOGUE["mnist"].archives]
    assert sizes == [9_912_422, 28_881, 1_648_877, 4_542]
    assert [archive.size for archive in CATALOGUE["emnist"].archives] == [None]


def test_an_unknown_name_lists_the_known():
    with pytest.raises(
        DataError, match=r"no dataset 'cub' \(did you mean 'cub200'\?\); known: digits, mnist"
    ):
        find_source("cub")
