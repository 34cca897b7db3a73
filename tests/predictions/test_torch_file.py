from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict

import pytest
import torch
from torch import nn

from softtargets.predictions import PredictionFileError, open_arrays, open_predictions

from .making import bomb, logits, refusal, same


@pytest.mark.parametrize("ending", [".pt", ".pth"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_dictionary_of_tensors(tmp_path, dtype, ending):
    scores, labels = logits()
    scores = torch.tensor(scores).to(dtype)
    torch.save({"logits": scores, "labels": torch.tensor(labels), "epoch": 3}, tmp_path / f"a{ending}")
    found = same(tmp_path / f"a{ending}", scores.double(), labels)
    assert next(found.chunks())[0].dtype == dtype


def test_arrays_are_those_that_torch_loads(tmp_path):
    base = torch.arange(60.0).reshape(6, 10)
    tensors = {
        "turned": base.T,
        "part": base[1:5, 2:7],
        "steps": base[::2],
        "row": base[3:4],
        "parameter": nn.Parameter(base.clone()),
        "nested": {"list": [torch.arange(3), torch.ones(2, dtype=torch.bool)]},
        "deep": base.reshape(3, 2, 10).permute(2, 0, 1),
        "empty": torch.zeros(0, 3),
        "same again": base,
        "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3),
    }
    torch.save(
        {**tensors, "device": torch.device("cpu"), "type": torch.int8, "size": base.shape}, tmp_path / "a.pt"
    )
    loaded = torch.load(tmp_path / "a.pt", weights_only=True)
    loaded |= {"nested.list.0": loaded["nested"]["list"][0], "nested.list.1": loaded.pop("nested")["list"][1]}
    expected = {name: value.detach() for name, value in loaded.items() if isinstance(value, torch.Tensor)}
    found = open_arrays(tmp_path / "a.pt")
    assert set(found) == set(expected)
    for name, tensor in expected.items():
        assert torch.equal(found[name].load(), tensor), name
        if tensor.numel():
            assert torch.equal(torch.cat(list(found[name].blocks(2))), tensor), name


def test_the_state_of_a_module(tmp_path):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    torch.save(model.state_dict(), tmp_path / "a.pt")
    found = open_arrays(tmp_path / "a.pt")
    assert torch.equal(found["0.weight"].load(), model[0].weight.detach())


def test_a_pickle_is_not_executed(tmp_path):
    harm, marker = bomb(tmp_path)
    torch.save({"logits": torch.zeros(3, 2), "labels": torch.zeros(3), "x": harm}, tmp_path / "a.pt")
    message = refusal(tmp_path / "a.pt", "asks for 'posix.mkdir'", "save the tensors alone")
    assert "weights_only" not in message
    assert not marker.exists()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_plain_pickle_is_not_executed(tmp_path, protocol):
    harm, marker = bomb(tmp_path)
    (tmp_path / "a.pt").write_bytes(pickle.dumps(harm, protocol=protocol))
    refusal(tmp_path / "a.pt", "is a pickle")
    (tmp_path / "a.npy").write_bytes(pickle.dumps(harm, protocol=protocol))
    refusal(tmp_path / "a.npy", "a pickle, which can execute code")
    assert not marker.exists()


def test_the_format_of_old_versions_is_refused(tmp_path):
    torch.save({"logits": torch.zeros(3, 2)}, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    refusal(tmp_path / "a.pt", "before 1.6", "save it again")


def archive(path, program: bytes, compression: int = zipfile.ZIP_STORED, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("archive/data.pkl", program)
        for name, content in members.items():
            file.writestr(f"archive/data/{name}", content)


class Named:
    """Pickles to the name of something in another module, called with arguments."""

    def __init__(self, function, *arguments) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def tensor_program(shape, strides, offset=0, count=12, storage=torch.FloatStorage) -> bytes:
    file = io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return ("storage", storage, "a", "cpu", count) if value == "STORAGE" else None

    rebuild = torch._utils._rebuild_tensor_v2
    Pickler(file, protocol=2).dump(
        {"logits": Named(rebuild, "STORAGE", offset, shape, strides, False, OrderedDict())}
    )
    return file.getvalue()


def test_a_tensor_made_by_hand_is_read(tmp_path):
    content = torch.arange(12.0).numpy().tobytes()
    archive(tmp_path / "a.pt", tensor_program((4, 3), (3, 1)), a=content)
    assert (
        open_arrays(tmp_path / "a.pt")["logits"].load().tolist() == torch.arange(12.0).reshape(4, 3).tolist()
    )


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((5, 3), (3, 1), 0),
        ((4, 3), (3, 1), 1),
        ((10**12, 10**3), (10**3, 1), 0),
        ((4, 3), (10**9, 1), 0),
        ((4, 3), (-3, 1), 11),
        ((4, 3), (3,), 0),
        ((4, -3), (3, 1), 0),
        ((4.0, 3), (3, 1), 0),
    ],
)
def test_a_tensor_that_is_not_within_the_file(tmp_path, shape, strides, offset):
    archive(tmp_path / "a.pt", tensor_program(shape, strides, offset), a=bytes(48))
    with pytest.raises(PredictionFileError, match=r"does not lie within the file|impossible shape"):
        open_arrays(tmp_path / "a.pt")


def test_a_compressed_archive_is_refused(tmp_path):
    archive(tmp_path / "a.pt", tensor_program((4, 3), (3, 1)), zipfile.ZIP_DEFLATED, a=bytes(48))
    refusal(tmp_path / "a.pt", "torch.save never does")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (b"\x80\x02}r\xff\xff\xff\xff.", "numbers an object"),
        (b"\x80\x02cos\nsystem\n(S'true'\ntR.", "'os.system'"),
        (b"(S'true'\nios\nsystem\n.", "operation INST"),
        (b"\x80\x02ctorch\nload\n.", "'torch.load'"),
        (b"\x80\x02ccollections\nOrderedDict\n}b.", "sets the state of a name"),
        (b"\x80\x02ctorch\nFloatStorage\n)R.", "calls what is not a function"),
        (b"\x80\x02K\x01Q.", "unknown reference"),
        (b"\x80\x02}", "cannot be read"),
        (b"", "cannot be read"),
        (b"\x80\x02K\x01.", "has no arrays"),
        (b"\x80\x02]q\x00h\x00a.", "has no arrays"),  # a list that contains itself
    ],
)
def test_programs_are_refused(tmp_path, program, words):
    archive(tmp_path / "a.pt", program)
    refusal(tmp_path / "a.pt", words)


def test_a_tuple_of_tuples_is_no_key(tmp_path):
    value: tuple = (1,)
    for _ in range(24):  # with 60 Python computes the hash for ever
        value = (value, value)
    archive(tmp_path / "a.pt", pickle.dumps({value: 1}, 2))
    refusal(tmp_path / "a.pt", "has a tuple of tuples as the key of a dictionary")


def test_tensors_by_pairs_are_read(tmp_path):
    torch.save({(0, "a"): torch.ones(3), 7: torch.zeros(2)}, tmp_path / "a.pt")
    assert set(open_arrays(tmp_path / "a.pt")) == {"(0, 'a')", "7"}


def test_a_key_of_thousands_of_digits_is_refused(tmp_path):
    archive(tmp_path / "a.pt", pickle.dumps({1 << 20_000: [1]}, 2))
    refusal(tmp_path / "a.pt", "a number of 20001 bits as the key")
    archive(tmp_path / "b.pt", tensor_program((1 << 20_000, 3), (3, 1)), a=bytes(48))
    refusal(tmp_path / "b.pt", "impossible shape")


def test_containers_in_containers_without_names(tmp_path):
    program = b"\x80\x02" + 5000 * b"}X\0\0\0\0" + b"}" + 5000 * b"s" + b"."
    archive(tmp_path / "a.pt", program)
    refusal(tmp_path / "a.pt", "has no arrays")


def test_a_compiled_model_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as file:
        for name in ("data.pkl", "constants.pkl", "code/__torch__.py"):
            file.writestr(f"archive/{name}", b"\x80\x02K\x01.")
    refusal(tmp_path / "a.pt", "not a compiled model")


def test_every_cut_is_refused(tmp_path):
    scores, labels = logits(rows=4)
    torch.save({"logits": torch.tensor(scores), "labels": torch.tensor(labels)}, tmp_path / "a.pt")
    whole = (tmp_path / "a.pt").read_bytes()
    for length in range(0, len(whole), 11):
        (tmp_path / "b.pt").write_bytes(whole[:length])
        with pytest.raises(PredictionFileError):
            open_predictions(tmp_path / "b.pt")
