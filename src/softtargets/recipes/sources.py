"""What parts compute, in one line each, and where that comes from: for people who choose among them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Source", "source_of"]


class Source(NamedTuple):
    """A formula in plain characters (empty where words say it better), and the paper, or whose default it is."""

    formula: str
    paper: str


# By slot and name. y is the label, p the prediction, z the logits, K the number of classes, q where mass goes.
_SOURCES = {
    ("regulariser", "cross_entropy"): Source("H(y, p) = -log p_y", "maximum likelihood"),
    ("regulariser", "label_smoothing"): Source(
        "H((1 - alpha) onehot(y) + alpha q, p), q = 1/K unless said otherwise",
        "Szegedy et al. 2016, section 7 (alpha 0.1); unigram: Pereyra et al. 2017; matrix: Chen et al. 2020",
    ),
    ("regulariser", "distillation"): Source(
        "(1 - beta) H(y, p) + beta H(teacher(T), p)",
        "Hinton, Vinyals & Dean 2015; Müller et al. 2019, section 4 (beta 1)",
    ),
    ("regulariser", "confidence_penalty"): Source(
        "-log p_y - beta H(p)", "Pereyra et al. 2017; the default 0.1 is ours"
    ),
    ("regulariser", "focal"): Source("-(1 - p_y)^gamma log p_y", "Lin et al. 2017, equation 4 (gamma 2)"),
    ("regulariser", "anti_focal"): Source(
        "-(1 + alpha p_y)^gamma log p_y", "Raunak et al. 2020, defaults of their released criterion"
    ),
    ("regulariser", "labo"): Source(
        "H((1 - alpha) onehot(y) + alpha softmax(z / tau), p); alpha = 1 - rho H(p) / log K unless given",
        "Lu et al. 2023, Theorem 1 and equation 16",
    ),
    ("regulariser", "tf_reg"): Source(
        "(1 - alpha) H(y, p) + alpha m KL(softmax(teacher / T) || p), a teacher made by hand",
        "Yuan et al. 2020, section 4.2, defaults of the released code",
    ),
    ("regulariser", "cs_kd"): Source(
        "-log p_y + strength T^2 KL(softmax(z' / T) || softmax(z / T)), z' of another example of the class",
        "Yun et al. 2020, equation 2 (T 4, strength 1)",
    ),
    ("regulariser", "beta_smoothing"): Source(
        "(1 - alpha) H(y, p) + alpha H(t, p), t_y = b ~ Beta(beta, 1), sorted by confidence",
        "Zhang & Sabuncu 2020, section 5, defaults of the released code",
    ),
    ("regulariser", "online_label_smoothing"): Source(
        "H((1 - alpha) onehot(y) + alpha S_y, p), S the mean prediction of the epoch before",
        "Zhang et al. 2021 (alpha 0.5 for CIFAR)",
    ),
    ("regulariser", "knowledge_refinery"): Source(
        "-log p_y + alpha KL(p without y || table row y without y)", "Ding et al. 2021, Algorithm 1"
    ),
    ("regulariser", "forward_correction"): Source(
        "-log (T' p)_y, T[i, j] = P(noisy j | clean i)", "Patrini et al. 2017, section 4.2"
    ),
    ("regulariser", "logit_smoothing"): Source(
        "-log softmax((1 - alpha) z + alpha mean(z))_y", "Chen et al. 2020, equation 19; the default is ours"
    ),
    ("regulariser", "disturb_label"): Source(
        "-log p_k, k = y with probability 1 - alpha (K - 1) / K, else drawn", "Xie et al. 2016"
    ),
    ("regulariser", "max_sup"): Source("-log p_y + alpha (max(z) - mean(z))", "Zhou et al. 2025"),
    ("optimiser", "sgd"): Source("b <- momentum b + (1 - dampening) g, w <- w - lr b", "torch.optim.SGD"),
    ("optimiser", "adam"): Source(
        "w <- w - lr m / (sqrt(v) + eps), m and v moving averages of g and g^2, corrected for their start",
        "Kingma & Ba 2015, algorithm 1; torch.optim.Adam",
    ),
    ("optimiser", "adamw"): Source(
        "w <- (1 - lr weight_decay) w, then Adam without decay",
        "Loshchilov & Hutter 2019, algorithm 2; torch.optim.AdamW (weight_decay 0.01)",
    ),
    ("schedule", "step"): Source("lr factor^(milestones passed)", "as in Müller et al. 2019, appendix A.2"),
    ("schedule", "linear"): Source("lr (1 - (1 - end) t)", "as in Müller et al. 2019, appendix A.5"),
    ("schedule", "cosine"): Source(
        "lr (end + (1 - end) (1 + cos(pi t)) / 2)", "Loshchilov & Hutter 2017 (SGDR), without restarts"
    ),
    ("schedule", "inverse_sqrt"): Source("lr sqrt(warmup / step)", "Vaswani et al. 2017, section 5.3"),
    ("noise", "symmetric"): Source(
        "T[i, j] = rate / (K - 1), j not i", "as in the released code of Han et al. 2018 (Co-teaching)"
    ),
    ("noise", "pair"): Source(
        "T[i, i + 1] = rate", "as in the released code of Han et al. 2018 (Co-teaching)"
    ),
    ("noise", "class_conditional"): Source(
        "T[i, j] = matrix[i][j]", "two classes: Natarajan et al. 2013; several: Patrini et al. 2017"
    ),
    ("noise", "instance"): Source(
        "r softmax(W_y x) over the other classes, r ~ N(rate, 0.1^2) cut off, W_y drawn once",
        "the released code of Xia et al. 2020 (part-dependent label noise), cut off evenly so that rate is the mean",
    ),
    ("model", "mlp"): Source("", "Müller et al. 2019, appendix A.5"),
    ("model", "alexnet"): Source("", "TensorFlow's CIFAR-10 tutorial; Müller et al. 2019, appendix A.1"),
    ("model", "preact_resnet"): Source(
        "", "He et al. 2016 (Identity Mappings); tensor2tensor, as in Müller et al. 2019, appendix A.2"
    ),
    ("model", "resnet18"): Source("", "He et al. 2016 (Deep Residual Learning), for small images"),
    ("model", "resnet"): Source("", "He et al. 2016 (Deep Residual Learning), as torchvision has it"),
    ("model", "inception_v4"): Source("", "Szegedy et al. 2016; Müller et al. 2019, appendix A.4"),
    ("model", "mobilenet_v2"): Source("", "Sandler et al. 2018, for small images"),
    ("model", "resnext29"): Source(
        "",
        "Xie et al. 2017, with the blocks of the released code (those of the paper for CIFAR are pre-activated)",
    ),
    ("model", "transformer"): Source("", "Vaswani et al. 2017, the base model"),
}


def source_of(slot: str, name: str) -> Source | None:
    """What is known of a part, by the field of a recipe that it fits and its name.

    >>> source_of("regulariser", "focal").formula
    '-(1 - p_y)^gamma log p_y'
    """
    return _SOURCES.get((slot, name))
