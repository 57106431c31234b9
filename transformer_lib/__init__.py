"""The Transformer of "Attention Is All You Need", small enough to read and fast enough to use.

Text flows through the modules in this order:

    data           sentence pairs: Multi30k, another data set, or the embedded mini corpus
    tokenization   text to ids and back
    batching       ids to padded batches of sentences of similar length
    masks          which positions may look at which
    models         ids to logits: embeddings, positional, attention, normalization,
                   feed_forward, dropout, blocks, encoder, decoder
    loss           how wrong the logits are
    training       schedule: many small corrections; fast: the same in less time
    decoding       logits to a sentence: greedy, sampling, beam search
    evaluation     how good the sentences are: BLEU and its relatives
    visualize      what went on inside

`python -m transformer_lib --help` trains, translates and evaluates without a line of code.
"""

import pkgutil
from importlib import import_module

from transformer_lib import _door

__version__ = "1.0.0"
__all__ = ["ModelConfig", "TrainConfig", "Transformer", "Translator", "load_pretrained"]

_door.stand()

# Loaded at first use, so that `import transformer_lib` costs no more than it must.
_HOME = {
    "ModelConfig": "config",
    "TrainConfig": "config",
    "Transformer": "models.transformer",
    "Translator": "translator",
    "load_pretrained": "runs.pretrained",
}


def _modules() -> set[str]:
    """The modules and subpackages in this folder."""
    return {found.name for found in pkgutil.iter_modules(__path__) if found.name[0] != "_"}


def __getattr__(name: str):
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _modules():
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*__all__, *_modules()])
