"""Ways of looking at a net from outside: its layers as they run, its size, and itself in a stack of several."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state
from torch.nn import functional


def layers(net, shape):
    """Every convolution and linear layer in the order in which an image meets them.

    A convolution is (before, after, kernel, stride, groups, height and width of its output, has a bias), a linear
    layer (before, after).
    """
    seen = []

    def note(module, inputs, output):
        if isinstance(module, nn.Conv2d):
            assert module.kernel_size[0] == module.kernel_size[1]
            seen.append(
                (
                    module.in_channels,
                    module.out_channels,
                    module.kernel_size[0],
                    module.stride[0],
                    module.groups,
                    tuple(output.shape[2:]),
                    module.bias is not None,
                )
            )
        else:
            seen.append((module.in_features, module.out_features))

    handles = [m.register_forward_hook(note) for m in net.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    with torch.no_grad():
        net.eval()(torch.zeros(1, *shape))
    for handle in handles:
        handle.remove()
    return seen


def size(net):
    return sum(weight.numel() for weight in net.parameters())


def same_pooled(maps):
    """TensorFlow's "SAME": ceil(n / 2) windows, the padding split evenly, the odd pixel of it at the end."""
    planes = [[_pooled(plane) for plane in image] for image in maps.tolist()]
    return torch.tensor(planes, dtype=maps.dtype)


def _pooled(plane):
    height, width = len(plane), len(plane[0])
    rows, columns = (height + 1) // 2, (width + 1) // 2
    top = max((rows - 1) * 2 + 3 - height, 0) // 2
    left = max((columns - 1) * 2 + 3 - width, 0) // 2
    return [
        [
            max(
                plane[y][x]
                for y in range(2 * row - top, 2 * row - top + 3)
                for x in range(2 * column - left, 2 * column - left + 3)
                if 0 <= y < height and 0 <= x < width
            )
            for column in range(columns)
        ]
        for row in range(rows)
    ]


class Held:
    """The tensors of a net in evaluation, and what is done with them, apart from the net's own code."""

    def __init__(self, net):
        self.tensors = net.eval().state_dict()

    def conv(self, maps, name, stride=1, groups=1):
        weight = self.tensors[f"{name}.weight"]
        return functional.conv2d(maps, weight, stride=stride, padding=weight.shape[-1] // 2, groups=groups)

    def norm(self, maps, name):
        mean, variance, scale, shift = (
            self.tensors[f"{name}.{key}"][:, None, None]
            for key in ("running_mean", "running_var", "weight", "bias")
        )
        return (maps - mean) / (variance + 1e-5).sqrt() * scale + shift


def exercised(net, images):
    """The same net after its batch norms have seen something and have other scales and shifts than 1 and 0."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, mean=1, std=0.3)
            nn.init.normal_(module.bias, std=0.3)
    net.train()(images)
    return net.eval()


def step(net, images):
    """Logits, gradients and buffers of one step of training with a loss that no logit escapes."""
    net.train()
    net.zero_grad()
    logits = net(images)
    logits.square().sum().backward()
    gradients = {name: weight.grad for name, weight in net.named_parameters()}
    return logits.detach(), gradients, dict(net.named_buffers())


def check_stack(nets, shape, batch=4):
    """In a stack under vmap, in training mode, each net gives what it gives alone: logits, gradients, buffers."""
    nets = [net.double() for net in nets]
    images = torch.randn(len(nets), batch, *shape, dtype=torch.float64)
    parameters, buffers = stack_module_state(nets)
    skeleton = deepcopy(nets[0]).train()

    def one(own, held, seen):
        return functional_call(skeleton, (own, held), (seen,))

    logits = torch.vmap(one)(parameters, buffers, images)
    logits.square().sum().backward()
    close = {"rtol": 1e-9, "atol": 1e-9}
    for run, net in enumerate(nets):
        alone, gradients, held = step(net, images[run])
        torch.testing.assert_close(logits[run].detach(), alone, **close)
        for name, gradient in gradients.items():
            # Relative to the gradient as a whole: sums of thousands of terms that cancel have no more to offer.
            scale = gradient.abs().max()
            assert (parameters[name].grad[run] - gradient).abs().max() <= 1e-9 * (1 + scale), name
        for name in buffers:
            torch.testing.assert_close(buffers[name][run], held[name], **close)


def check_compiles(net, shape):
    """The whole net is one graph, in training and in evaluation."""
    images = torch.randn(4, *shape)
    torch.compiler.reset()
    for mode in (True, False):
        net.train(mode)
        expected = deepcopy(net)(images)
        found = torch.compile(deepcopy(net), backend="eager", fullgraph=True)(images)
        torch.testing.assert_close(found, expected)
