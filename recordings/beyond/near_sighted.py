"""What a window costs a language model of pixels: the painter of the page, with several windows.

    make record ONLY=near_sighted

The page's own experiment, on handwritten digits. Each of three layers sees so many tokens, its own
among them; 65 is the whole text. A window of 3 reaches 6 tokens back, which is one too few for the
pixel above. About a minute on one core for each run.
"""

import math

import torch
import torch.nn.functional as F

from recordings.gate import Gate
from recordings.record import ROOT, page_code, seed_by_seed
from transformer_lib.beyond import digits
from transformer_lib.beyond.stacks import BandedLanguageModel, pixels_as_text
from transformer_lib.config import ModelConfig

OUT = ROOT / "results" / "beyond" / "near-sighted.json"
PAGE = "more_decoders"
SEEDS, UPDATES, FULL = range(3), 600, 65
CONFIG = ModelConfig(28, d_model=64, n_heads=4, d_ff=128, n_encoder_layers=0, n_decoder_layers=3,
                     dropout=0.0, activation="gelu", max_len=FULL, positional="learned")
GATE = Gate(
    chance=2.06,  # nats: a pixel by how often its shade comes, wherever it is
    arms=("window",),
    edge={"window": (17, None)},
    ends=("window above",),  # nothing is wider than the text
    missing={"rate": "at one learning rate"},
)


def draws(window: int, seed: int) -> dict:
    """Bits per pixel of the test set, and of the pictures that it was trained on."""
    train_set, _, test_set = digits.load_digits()
    page = page_code(
        PAGE, torch=torch, F=F, config=CONFIG, train_set=train_set,
        BandedLanguageModel=BandedLanguageModel, pixels_as_text=pixels_as_text,
    )
    model = page["learn_to_draw"](window, UPDATES, seed)
    with torch.no_grad():
        bits = [
            page["pixel_loss"](model, pixels_as_text(*pictures)).item() / math.log(2)
            for pictures in (test_set, train_set)
        ]
    return {"bits": bits[0], "training_bits": bits[1]}


def grid():
    """(settings, function) of every cell."""
    return list(seed_by_seed("pixels", draws, SEEDS, window=(FULL, 17, 3)))
