"""What the interpreter cannot show: real sizes, precision, streams, graphs, memory, and that the host never waits."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

pytest.importorskip("triton")

from softtargets.losses import (
    LABO,
    ConfidencePenalty,
    CrossEntropy,
    Distillation,
    FocalLoss,
    LabelSmoothing,
    use_kernels,
)

from ..making import distribution
from .running import exactly, losses, needs_teacher, rounding, run

pytestmark = pytest.mark.cuda


@pytest.fixture(autouse=True)
def always():
    with use_kernels("always"):
        yield


def example(rows, classes, dtype=torch.float32, seed=0, ignored=True):
    generator = torch.Generator("cuda").manual_seed(seed)
    logits = (2 * torch.randn(rows, classes, generator=generator, device="cuda")).to(dtype)
    labels = torch.randint(classes, (rows,), generator=generator, device="cuda")
    if ignored and rows > 2:
        labels[1::5] = -100
    return logits, labels


def near(found, exact, loss_dtype=None):
    """Classes that get little are compared with what they get, not with what the label gets."""
    (value, gradient), (exact_value, exact_gradient) = found, exact
    dtype = gradient.dtype
    relative, _ = rounding(loss_dtype or dtype, value.device)
    assert value.dtype == (loss_dtype or dtype)
    torch.testing.assert_close(value.double(), exact_value, rtol=1.05 * relative + 1e-5, atol=1e-6)
    relative, smallest = rounding(dtype, value.device)
    pulled = exact_gradient[exact_gradient != 0].abs()
    torch.testing.assert_close(
        gradient.double(),
        exact_gradient,
        rtol=1.05 * relative + 1e-4,
        atol=smallest + 1e-3 * pulled.median().item(),
    )


def check(loss, logits, labels, teacher=None, **more):
    loss = loss.cuda()
    near(run(loss, logits, labels, teacher), exactly(loss, logits, labels, teacher), **more)


SIZES = [
    (8, 32768, torch.float32),
    (8, 131072, torch.float32),
    (8, 131072, torch.bfloat16),
    (4, 262144, torch.bfloat16),
    (300, 1000, torch.float16),
    (1000, 100, torch.float32),
    (2000, 96, torch.bfloat16),
    (128, 10, torch.float32),
    (2, 10, torch.bfloat16),
    (3, 50257, torch.float32),
    (3, 151936, torch.bfloat16),
]


@pytest.mark.parametrize(("rows", "classes", "dtype"), SIZES)
def test_every_size_agrees_with_double_precision(rows, classes, dtype):
    for reduction in ("mean", "none") if classes == 32768 else ("mean",):
        logits, labels = example(rows, classes, dtype)
        loss = LABO(reduction=reduction) if rows == 8 else LabelSmoothing(reduction=reduction)
        check(loss, logits, labels)


CHOSEN = [
    "cross entropy", "focal", "anti-focal, not detached", "confidence penalty", "label smoothing, prior, others",
    "label smoothing, matrix", "labo, reversed", "labo, warming up", "distillation, own temperature",
    "distillation of logits",
]  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_every_loss_agrees_with_double_precision(name):
    logits, labels = example(300, 1000)
    teacher = example(300, 1000, seed=1)[0] if needs_teacher(name) else None
    check(losses(1000, reduction="sum")[name], logits, labels, teacher)


@pytest.mark.parametrize("name", ["focal", "penalty", "prior and weights", "distillation"])
def test_long_rows_of_every_kind(name):
    classes = 40_000
    logits, labels = example(6, classes, torch.bfloat16)
    teacher = None
    weight = torch.linspace(0.5, 2, classes, device="cuda")
    loss = {
        "focal": FocalLoss(),
        "penalty": ConfidencePenalty(0.3),
        "prior and weights": LabelSmoothing(0.2, prior=distribution(classes), weight=weight),
        "distillation": Distillation(2.0, 0.5, student_temperature=True),
    }[name]
    if name == "distillation":
        teacher = example(6, classes, torch.bfloat16, seed=1)[0]
    check(loss, logits, labels, teacher)


def test_other_layouts():
    logits, labels = example(300, 1024)
    check(LabelSmoothing(), logits[:, 3:1003], labels.clamp_max(999))
    logits, labels = example(3, 60_000)
    check(LABO(), logits[:, 7:50_264], labels.clamp_max(50_000))
    check(LabelSmoothing(), *example(100, 64)[:2])
    generator = torch.Generator("cuda").manual_seed(0)
    deep = torch.randn(4, 100, 50, generator=generator, device="cuda")
    labels = torch.randint(100, (4, 50), generator=generator, device="cuda")
    check(LABO(), deep, labels)
    image = torch.randn(2, 20, 8, 8, generator=generator, device="cuda").to(memory_format=torch.channels_last)
    check(LABO(), image, labels[:2, :32].repeat(1, 2).reshape(2, 8, 8) % 20)


@pytest.mark.parametrize(
    ("rows", "classes", "dtype"), [SIZES[0], SIZES[2], SIZES[4], (6, 50257, torch.float32)]
)
def test_in_place(rows, classes, dtype):
    logits, labels = example(rows, classes, dtype)
    teacher = example(rows, classes, dtype, seed=1)[0] if classes == 50257 else None
    loss = Distillation(2.0, 0.5) if classes == 50257 else LabelSmoothing()
    exact = exactly(loss, logits, labels, teacher)
    loss.inplace = True
    leaf = logits.clone().requires_grad_()
    given = leaf * 1
    place = given.data_ptr()
    seen = []
    given.register_hook(lambda each: seen.append(each.data_ptr()))
    value = loss(given, labels, teacher)
    (gradient,) = torch.autograd.grad(value, leaf)
    near((value.detach(), gradient), exact)
    assert seen == [place]


def test_extreme_logits():
    for rows, classes in ((4, 1000), (4, 40_000)):
        logits, labels = example(rows, classes, ignored=False)
        logits[0, : classes // 2] = -torch.inf
        logits[1, classes - 1] = 1e4
        logits[2] *= 1e3
        logits[3, 0] = -1e4
        labels[0] = classes - 2
        loss = LABO(alpha=0.0, reduction="none")
        value, gradient = run(loss, logits, labels)
        exact_value, exact_gradient = exactly(loss, logits, labels)
        torch.testing.assert_close(value.double(), exact_value, rtol=1e-5, atol=1e-3)
        torch.testing.assert_close(gradient.double(), exact_gradient, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("classes", [10, 40_000])
def test_a_label_that_is_no_class_spoils_its_own_row_only(classes):
    logits, labels = example(4, classes, ignored=False)
    wanted = run(LabelSmoothing(reduction="none"), logits, labels)
    labels[1], labels[2] = classes, -1
    value, gradient = run(LabelSmoothing(reduction="none"), logits, labels)
    assert value.isnan().tolist() == [False, True, True, False]
    assert gradient[1:3].isnan().all()
    torch.testing.assert_close(gradient[[0, 3]], wanted[1][[0, 3]], rtol=0, atol=0)
    assert LabelSmoothing()(logits, labels).isnan()


def test_hyper_parameters_may_stay_on_the_cpu():
    """As single values may in plain PyTorch."""
    logits, labels = example(64, 100)
    for make in (lambda: LABO(warmup_steps=2), lambda: LabelSmoothing(torch.tensor(0.3))):
        with use_kernels("never"):
            wanted = make()(logits, labels)
        torch.testing.assert_close(make()(logits, labels), wanted)


# --- the host does not wait ---


@pytest.fixture
def no_waiting():
    def forbid():
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")

    yield forbid
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("classes", [1000, 32768])
def test_the_host_never_waits(no_waiting, classes):
    logits, labels = example(64, classes)
    teacher = logits.flip(0).contiguous()
    leaf = logits.requires_grad_()
    weight = torch.linspace(0.5, 2, classes, device="cuda")
    calls = [
        lambda: LabelSmoothing()(leaf, labels),
        lambda: LabelSmoothing(reduction="none")(leaf, labels).sum(),
        lambda: LABO()(leaf, labels),
        lambda: Distillation(2.0, 0.5)(leaf, labels, teacher),
        lambda: weighted(leaf, labels),
        lambda: warm(leaf, labels),
    ]
    weighted = LabelSmoothing(0.1, "others", prior=torch.full((classes,), 1 / classes), weight=weight).cuda()
    warm = LABO(warmup_steps=1).cuda()
    for attempt in range(2):
        if attempt:
            no_waiting()
        found = [torch.autograd.grad(call() * 3, leaf)[0] for call in calls]
    torch.cuda.set_sync_debug_mode("default")
    assert all(bool(each.isfinite().all()) for each in found)


@pytest.mark.parametrize(("rows", "classes"), [(256, 1000), (8, 32768)])
def test_a_captured_graph_does_what_eager_mode_does(rows, classes):
    """Also through the warm-up, which the graph leaves by itself."""
    logits, labels = example(rows, classes)
    static, target = logits.clone().requires_grad_(), labels.clone()
    captured, eager = LABO(warmup_steps=2).cuda(), LABO(warmup_steps=2).cuda()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            torch.autograd.grad(captured(static, target), static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = captured(static, target)
        (gradient,) = torch.autograd.grad(loss, static)
    captured.step.zero_()
    for step in range(4):
        new, own = example(rows, classes, seed=step + 10)
        with torch.no_grad():
            static.copy_(new)
            target.copy_(own)
        graph.replay()
        wanted = run(eager, new, own)
        torch.testing.assert_close(loss.detach(), wanted[0], rtol=0, atol=0)
        torch.testing.assert_close(gradient, wanted[1], rtol=0, atol=0)
    assert captured.step.item() == eager.step.item() == 4


SIDE_BY_SIDE = """
import torch
from softtargets.losses import LABO, use_kernels

def run(logits, labels):
    leaf = logits.detach().requires_grad_()
    loss = LABO()(leaf, labels)
    return loss.detach(), torch.autograd.grad(loss, leaf)[0]

with use_kernels("always"):
    generator = torch.Generator("cuda").manual_seed(0)
    sizes = [(300, 32768), (64, 131072), (300, 32768), (33, 262144)]
    cases = []
    for rows, classes in sizes:
        logits = torch.randn(rows, classes, generator=generator, device="cuda").bfloat16()
        cases.append((logits, torch.randint(classes, (rows,), generator=generator, device="cuda")))
    wanted = [run(*case) for case in cases]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in cases]
    for repeat in range(20):
        found = []
        for stream, case in zip(streams, cases):
            with torch.cuda.stream(stream):
                found.append(run(*case))
        torch.cuda.synchronize()
        for one, other in zip(found, wanted):
            assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1]), repeat
print("the same every time")
"""


def test_streams_side_by_side_finish_and_are_right():
    """In a program of its own, which can be ended should its kernels wait for each other for ever."""
    result = subprocess.run(
        [sys.executable, "-c", SIDE_BY_SIDE], capture_output=True, text=True, timeout=90, check=False
    )
    assert result.stdout.strip() == "the same every time", result.stderr[-2000:]


@pytest.mark.parametrize(("rows", "classes"), [(300, 1000), (8, 131072), (3, 50257)])
def test_the_same_every_time(rows, classes):
    logits, labels = example(rows, classes, torch.bfloat16)
    teacher = logits.flip(0).contiguous()
    loss = Distillation(2.0, 0.5) if classes == 50257 else LabelSmoothing()
    first = run(loss, logits, labels, teacher)
    for _ in range(5):
        for found, wanted in zip(run(loss, logits, labels, teacher), first, strict=True):
            assert torch.equal(found, wanted)


# --- torch around the kernels ---


def test_compiled_as_eager():
    torch._dynamo.reset()
    for loss in (LabelSmoothing(), LABO(warmup_steps=3).eval().cuda()):
        logits, labels = example(300, 1000)
        compiled = torch.compile(loss, fullgraph=True)
        found = run(lambda *call, compiled=compiled: compiled(*call[:2]), logits, labels)
        for one, other in zip(found, run(loss, logits, labels), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-8)


def test_packs():
    logits, labels = example(3 * 64, 1000)
    logits, labels = logits.reshape(3, 64, 1000), labels.reshape(3, 64)
    alphas, taus = torch.tensor([0.1, 0.5, 0.9], device="cuda"), torch.tensor([1.0, 1.5, 4.0], device="cuda")
    for loss in (LabelSmoothing(alphas), LABO(tau=taus)):
        near(run(loss, logits, labels), exactly(loss, logits, labels))
    own = torch.vmap(torch.func.grad(LABO()))(logits, labels)
    alone = torch.stack([run(LABO(), *case)[1] for case in zip(logits, labels, strict=True)])
    torch.testing.assert_close(own, alone, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    torch.manual_seed(0)
    net = nn.Linear(32, 1000).cuda()
    inputs = torch.randn(300, 32, device="cuda")
    labels = example(300, 1000)[1]
    with torch.autocast("cuda", dtype=dtype):
        logits = net(inputs)
        logits.retain_grad()
        loss = LabelSmoothing()(logits, labels)
    assert logits.dtype == dtype
    loss.backward()
    near((loss.detach(), logits.grad), exactly(LabelSmoothing(), logits.detach(), labels), torch.float32)


def test_a_scaled_loss_saves_small_half_gradients():
    """What a gradient scaler is for."""
    logits, labels = example(256, 10_000, torch.float16)
    value, gradient = exactly(LabelSmoothing(), logits, labels)
    leaf = logits.clone().requires_grad_()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = LabelSmoothing()(leaf, labels)
    (loss * 2.0**16).backward()
    near((loss.detach(), leaf.grad), (value, gradient * 2.0**16), torch.float32)


@pytest.mark.parametrize("inplace", [False, True])
def test_memory(inplace):
    rows, classes = 2048, 32768
    logits = torch.zeros(rows, classes, dtype=torch.bfloat16, device="cuda").normal_().requires_grad_()
    labels = torch.randint(classes, (rows,), device="cuda")
    loss = LABO(inplace=inplace)
    torch.autograd.grad(loss(logits, labels), logits)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    (gradient,) = torch.autograd.grad(loss(logits, labels), logits)
    extra = (torch.cuda.max_memory_allocated() - before) / (logits.numel() * logits.element_size())
    assert gradient.shape == logits.shape
    assert extra <= (0.02 if inplace else 1.05)


def test_a_loss_kept_for_the_record_keeps_no_logits():
    source = torch.randn(64, 10_000, device="cuda", requires_grad=True)
    labels = torch.zeros(64, dtype=torch.int64, device="cuda")
    before = torch.cuda.memory_allocated()
    loss = LabelSmoothing()(source * 1, labels)
    torch.autograd.grad(loss, source)
    assert torch.cuda.memory_allocated() - before < source.numel()  # bytes: a quarter of the logits


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_logits_on_a_gpu_that_is_not_the_current_one():
    logits, labels = example(64, 1000)
    wanted = run(LabelSmoothing(), logits, labels)
    found = run(LabelSmoothing(), logits.to("cuda:1"), labels.to("cuda:1"))
    torch.testing.assert_close(found[0].cpu(), wanted[0].cpu())
    torch.testing.assert_close(found[1].cpu(), wanted[1].cpu())


def test_a_kernel_compiled_for_aligned_rows_is_not_used_for_others():
    """Launches after the first go past Triton's search for the kernel that fits: only where the same one does."""
    logits, labels = example(65, 100)
    loss = LabelSmoothing()
    check(loss, logits[:64], labels[:64])
    check(loss, logits[:64], labels[:64])
    shifted = torch.empty(64 * 100 + 1, device="cuda")[1:].view(64, 100).copy_(logits[1:])
    assert shifted.data_ptr() % 16 == 4
    check(loss, shifted, labels[1:])
    check(loss, logits[1:], labels[1:])
    check(loss, logits[::2], labels[::2])
    check(LabelSmoothing(0.3), logits, labels)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_small_cross_entropy_is_torchs_own(reduction):
    logits, labels = example(128, 10)
    weight = torch.linspace(0.5, 2, 10)
    loss = CrossEntropy(weight=weight, reduction=reduction).cuda()
    with use_kernels("auto"):
        check(loss, logits, labels)
        found = loss(logits.requires_grad_(), labels)
        assert "NllLoss" in str(found.grad_fn), "a kernel costs the host more than torch's own way"
        torch.testing.assert_close(loss(logits, labels.int()), found)
        with pytest.raises(ValueError, match="target must have shape"):
            loss(logits, labels[1:])
