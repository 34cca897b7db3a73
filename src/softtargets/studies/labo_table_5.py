"""Table 5 of Lu et al. 2023: ImageNet, for whoever has the images."""

from __future__ import annotations

from softtargets.claims import Claim, judge, published
from softtargets.recipes import (
    LABO,
    SGD,
    BetaSmoothing,
    CrossEntropy,
    Flip,
    ImageNet,
    KnowledgeRefinery,
    LabelSmoothing,
    Recipe,
    Regulariser,
    ResizedCrop,
    ResNet,
    Step,
    TFReg,
)
from softtargets.report import Section, Table
from softtargets.studies.grids import each_seed, stretched
from softtargets.studies.labo.claiming import SEEDS, base_and_gain
from softtargets.studies.labo.measures import RelativeTime, measure
from softtargets.studies.labo.protocol import (
    AXES,
    NAMES,
    SIZES,
    SMALL_SETTING,
    WARM_UP,
    base,
    method_cells,
)
from softtargets.studies.labo.telling import setting_title, what_differs
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import by_protocol, size_of
from softtargets.studies.study import LU, Findings, Settings, Study, Trial

TEST_IMAGES = 50_000
DEPTHS = {"resnet50": 50, "resnet152": 152}
SETTINGS = tuple(("imagenet", model) for model in DEPTHS)
# As the paper says: 90 epochs in batches of 256, momentum 0.9, weight decay 1e-4, a rate of 0.1 divided by 10 at 30, 60
# and 80, crops of random size and place, flips. Ours: photographs of more than 512 pixels in a direction are made
# smaller before crops are cut from them (docs/images.md).
_FULL = Recipe(
    data=ImageNet(size=512, keep="picture", standardise="channel"),
    model=ResNet(depth=50),
    augmentation=(ResizedCrop(size=224), Flip()),
    optimiser=SGD(lr=0.1, momentum=0.9, weight_decay=1e-4),
    schedule=Step(milestones=(30, 60, 80), factor=0.1, unit="epoch"),
    epochs=90,
    batch=256,
    precision="bf16",
)
METHODS: dict[str, Regulariser] = {
    "hard": CrossEntropy(),
    "ls": LabelSmoothing(alpha=0.1),
    # As strong as for ResNet-18 on CIFAR-100: TF-KD's divergence is a mean over classes too.
    "tf-reg": TFReg(alpha=0.1, temperature=20.0, multiplier=1000.0),
    "beta-ls": BetaSmoothing(),
    "kr-ls": KnowledgeRefinery(),
    "labo": LABO(warmup_steps=WARM_UP),
}


def trials(settings: Settings) -> list[Trial]:
    """For each network each method and seed; at small size what table 3 has there."""
    if settings.size == "small":
        recipe = base(settings, *SMALL_SETTING)
        cells = method_cells(recipe, settings.size, tuple(METHODS))
        data, model = SMALL_SETTING
        return each_seed(settings, recipe, [(v, {"data": data, "model": model, **n}) for v, n in cells])
    grid = []
    for data, model in SETTINGS:
        recipe = stretched(
            settings.base(_FULL.replace({"model.depth": DEPTHS[model]})), settings, 1 / 3, 2 / 3, 8 / 9
        )
        named = [
            ({"regulariser": part}, {"data": data, "model": model, "method": method})
            for method, part in METHODS.items()
        ]
        grid += each_seed(settings, recipe, named)
    return grid


def findings(results: Results) -> Findings:
    """Tables and claims."""
    made = claims(results)
    verdicts = [one.verdict for one in judge(made)]
    gains = [verdict for verdict in verdicts[1::2] if verdict != "not run yet"]
    answer = (
        "Not known yet: these runs have not been made. They need the images of ImageNet and days on a GPU."
    )
    if gains:
        answer = f"LABO is shown to gain accuracy over hard targets in {gains.count('reproduced')} of {len(gains)}."
    return Findings(_sections(results), made, answer)


def _sections(results: Results) -> tuple[Section, ...]:
    full = size_of(results) == "full"
    shown = SETTINGS if full else (SMALL_SETTING,)
    ours = (
        "As the paper says: 90 epochs in batches of 256, momentum 0.9, weight decay 1e-4, a rate of 0.1 divided by 10 "
        "at epochs 30, 60 and 80, crops of random size and place, random flips. Crops are cut from photographs of "
        "at most 512 x 512 pixels, and resized to 224. LABO has tau 1.25, rho 0.5 and a warm-up of 5,000 steps, none "
        "of which the paper prints for ImageNet. The other methods have the hyper-parameters of labo-table-3.",
    )
    return (
        Section.of(
            "Accuracy and time",
            "Validation images of ImageNet are the test set here, as in the paper." if full else "",
            *(_table(results, data, model, full) for data, model in shown),
        ),
        Section.of("What differs from the paper", *(ours if full else what_differs(results))),
    )


def _table(results: Results, data: str, model: str, full: bool) -> Table:
    rows: list[Row] = []
    for method in METHODS:
        labels = {"data": data, "model": model, "method": method}
        key = f"{data}-{model}/{method}"
        rows.append(
            {
                "method": NAMES[method],
                "printed": published(f"lu-2023/accuracy/{key}").value if full else None,
                "accuracy": results.sample("accuracy", **labels),
                "printed_time": published(f"lu-2023/time/{key}").value if full else None,
                "relative_time": results.sample("relative_time", **labels),
                "ece": results.sample("ece", **labels),
            }
        )
    return Table.of(
        f"{data}_{model}",
        f"{setting_title(data, model)}.",
        "method | printed .2%: accuracy, paper | accuracy .2%: accuracy, ours | printed_time .1f: time, paper | "
        "relative_time .2f: time, ours | ece: ECE, ours",
        rows,
        "Ours: mean ± standard deviation over seeds, after the last epoch. Times are multiples of that of hard "
        "targets, each alone on the device, in turns.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Two for each network; without its runs they are not run yet."""
    followed = by_protocol(results, trials)
    return tuple(
        claim for data, model in SETTINGS for claim in base_and_gain(followed, data, model, TEST_IMAGES)
    )


study = Study(
    name="labo-table-5",
    title="Is LABO more accurate than hard targets on ImageNet?",
    lead=(
        "Table 5 of Lu et al. (2023) has LABO and four other regularisers for ResNet-50 and ResNet-152 on ImageNet. "
        "The recipe is here for whoever has the images; the small size only shows that it runs."
    ),
    papers=(LU,),
    trials=trials,
    keep=("test:scores",),
    measure=measure,
    again=RelativeTime,
    timed=True,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
