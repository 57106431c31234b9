"""Is it the weights of its own, or the links that they come with? Streams that translate.

    make record ONLY=one_stream        # about ten minutes of one core; stops and goes on

The chapter on decoder-only models goes from a causal stream to an encoder-decoder in three steps, a
mask, weights of its own for the source, and an attention of its own. `decoder_only` recorded these.
Here the second step is taken without the first, with the same settings and seeds.
"""

import math
import shutil
from pathlib import Path

from recordings.beyond import decoder_only
from recordings.gate import Gate
from recordings.record import cell
from transformer_lib.config import TrainConfig
from transformer_lib.data import load_parallel

PAGE = "20_decoder_only"
OUT = Path(__file__).resolve().parents[2] / "results" / "beyond" / "one-stream-controls.json"


def translate(data: str, arm: str, seed: int, factor: float = 1.0) -> dict:
    """BLEU of one arm, with the settings of `decoder_only`; factor: of its rate."""
    settings = decoder_only.DATA[data][-1]
    config = TrainConfig(**settings | {"seed": seed, "peak_lr": factor * settings["peak_lr"]})
    if factor != 1:  # a folder of another rate is another run
        shutil.rmtree(decoder_only.folder_of(data, arm, seed), ignore_errors=True)
    found = decoder_only.translation(data, arm, config, load_parallel(data))
    if factor != 1:
        shutil.rmtree(decoder_only.folder_of(data, arm, seed), ignore_errors=True)
    return {key: found[key] for key in ("validation", "test", "block_parameters", "device")}


def grid():
    for seed in range(3):
        yield cell("streams", translate, data="mini", arm="causal, own weights", seed=seed)
    for factor in (0.5, 2.0):
        yield cell("streams", translate, data="mini", arm="causal, own weights", seed=0,
                   factor=factor)


def guessing(settings: dict) -> float:
    return math.log(decoder_only.DATA[settings["data"]][1])


GATE = Gate(
    chance=guessing,
    arms=("arm",),
    edge={"factor": (1.0, 1.0)},
)
