"""Speed and nothing else: the same loss, the same dropout and the same decoding in less time.

Nothing here is needed to understand or to train a model. TrainConfig.fast switches the training's
part on, and Translator takes the DecodingModel; tests check each against what the chapters print.

    training   a loss without its logits (on a CPU), cheap dropout, oneDNN's products
    decoding   a model laid out for decoding, and a batch on each thread
    compiled   its steps as a program in C, decoder.c, for translating many sentences
"""

from transformer_lib.fast.decoding import DecodingModel, for_decoding, parallel_map, refusal
from transformer_lib.fast.training import (
    Dropout,
    OneDnnProducts,
    accelerate,
    products,
    projected_cross_entropy,
    translation_loss,
)

__all__ = [
    "DecodingModel",
    "Dropout",
    "OneDnnProducts",
    "accelerate",
    "for_decoding",
    "parallel_map",
    "products",
    "projected_cross_entropy",
    "refusal",
    "translation_loss",
]
