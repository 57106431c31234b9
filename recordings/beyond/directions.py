"""What a tag is worth, and a second one: several directions in one model, all with equal updates.

    make record ONLY=directions        # about eight minutes of one core; stops and goes on

On the book's small grammar. German to English and back, and a third way, German to German, which
shares its sources with the first. English to English is trained in no arm.
"""

import math
from functools import cache, partial
from pathlib import Path

import torch

from recordings.beyond.encoder_decoders import RUNS, Captions
from recordings.gate import Gate
from recordings.record import cell
from transformer_lib import fast
from transformer_lib.beyond.denoising import two_tags
from transformer_lib.config import BOS, ModelConfig
from transformer_lib.decoding import greedy_decode, in_batches
from transformer_lib.evaluation import score
from transformer_lib.models.transformer import Transformer
from transformer_lib.tokenization import encode_source
from transformer_lib.training import fit, translation_batches

PAGE = "many_directions"
OUT = Path(__file__).resolve().parents[2] / "results" / "beyond" / "directions.json"
THREE = ("de", "en"), ("en", "de"), ("de", "de")
ARMS = {  # tags: none, the target's (Johnson et al. 2017), or both (M2M-100)
    "three ways, no tag": 0,
    "three ways, target's tag": 1,
    "three ways, both tags": 2,
}
UPDATES = 500


@cache
def captions() -> Captions:
    return Captions("mini")


def sources(split: str, src: str, tgt: str, tags: int) -> tuple[list, list]:
    """Sources and targets with so many tags in front."""
    data = captions()
    tag = data.tags
    read = encode_source(data.tokenizer, data.texts(split, src))
    written = data.targets(split, tgt)
    if tags == 2:
        return two_tags(read, written, tag[src], tag[tgt])
    return [[tag[tgt]] * tags + ids for ids in read], written


def directions(arm: str, rate: float, seed: int) -> dict:
    data, tags = captions(), ARMS[arm]
    read, written = [], []
    for src, tgt in THREE:
        some = sources("train", src, tgt, tags)
        read, written = read + some[0], written + some[1]
    config = data.train_config(seed, UPDATES, rate)
    torch.manual_seed(seed)
    model = Transformer(ModelConfig(data.vocab_size, **data.sizes))
    loss = partial(fast.translation_loss, smoothing=config.label_smoothing)
    folder = RUNS / "directions" / f"{arm.replace(', ', '-').replace(' ', '-')}-{rate:g}-{seed}"
    fit(model, translation_batches(read, written, config.max_tokens, seed), loss, config, folder)
    found = {}
    for src, tgt in (*THREE, ("en", "en")):
        asked, _ = sources("test", src, tgt, tags)
        first = data.tags[tgt] if tags == 2 else BOS
        said = in_batches(
            lambda ids, first=first: data.tokenizer.decode_batch(
                greedy_decode(model, ids, bos_id=first).tolist()
            ),
            asked, 8192, torch.device("cpu"),
        )
        found[f"{src}-{tgt}"] = score(said, data.texts("test", tgt)).bleu
    return found


def grid():
    for seed in range(3):
        for arm in ARMS:
            yield cell("directions", directions, arm=arm, rate=5e-3, seed=seed)
    for rate in (2.5e-3, 1e-2):
        yield cell("directions", directions, arm="three ways, both tags", rate=rate, seed=0)


GATE = Gate(chance=math.log(400), arms=("arm",), edge={"rate": (5e-3, 5e-3)})
