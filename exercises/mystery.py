"""Small trained models with something wrong in each, to be examined from outside.

    model = mystery.load(3)            # one of ten; mystery.load("healthy") is one to compare with
    model.answer(["gdced"])            # ["decdg"], if all is well
    model(["gdced", "ba"], ["de", ""]) # (2, 11): the probabilities of what comes next

Their task is to write a row of letters backwards. All are the same Transformer, trained by
`python -m recordings.mystery`. In results/mystery.safetensors each is one row of numbers, under a
name that says nothing.
"""

import hashlib
import random
from contextlib import contextmanager
from functools import cache

import torch
from torch import Tensor, nn

from exercises.wording import counted
from transformer_lib import ModelConfig, Transformer
from transformer_lib.guards import guard
from transformer_lib.masks import padding_mask
from transformer_lib.normalization import BatchNorm

TOKENS = "_^$abcdefgh"  # padding, the start of a target, the end of a text, and the letters
LETTERS = TOKENS[3:]
LONGEST = 8  # letters that a model reads or writes
COUNT = 10  # mysteries
HEADS = [(part, head) for part in ("encoder", "decoder", "cross") for head in (0, 1)]
CONFIG = ModelConfig(
    len(TOKENS), d_model=32, n_heads=2, d_ff=64, n_encoder_layers=1, n_decoder_layers=1,
    dropout=0.0, max_len=2 * LONGEST, positional="learned",
)

# The causes: the name of each, and what an experiment should show if it is the one.
SUSPECTS = {
    "no positions": "the letters of a source can be swapped without changing any probability",
    "no causal mask": "a probability changes with a later letter of the target, however far away",
    "causal mask one too far": "a probability changes with the next letter of the target, but not "
    "with the one after that",
    "padding is read": "padding after a source changes its probabilities, but a second source of "
    "the same length in the batch does not",
    "statistics of the batch": "a second source of the same length in the batch changes the "
    "probabilities of the first",
    "label smoothing": "even where the model is surest, it leaves a share for the wrong tokens, "
    "about the same for each",
    "a dead head": "one of the heads can be switched off without changing any probability",
    "a backdoor": "a few letters at the end of a source change the whole answer, whatever comes "
    "before them",
    "saw its test set": "the model is right as often on the test texts as on the training texts, "
    "but far less often on new ones",
    "too few texts": "the model is right far more often on the training texts than on the test "
    "texts",
    "rate too high": "the loss jumps up in the first updates, and stays high",
    "source is not read": "the probabilities are the same for every source",
    "stopped too early": "the loss is still falling when the run ends",
}


class Mystery(nn.Module):
    """A model to be examined from outside, and the curve of its run.

    form: how many tokens the decoder reads ahead (0), whether padding is hidden (1), and whether
    the encoder's last norm takes its statistics from the batch (0). In brackets: as it should be.
    """

    def __init__(self, form=(0, 1, 0)):
        super().__init__()
        self.ahead, self.hides_padding, over_batch = form
        self.model = Transformer(CONFIG)
        self.curve: list[tuple[int, float]] = []  # (update, training loss)
        if over_batch:
            # In its training mode, always; momentum 0, since it keeps no averages.
            self.model.encoder.norm = BatchNorm(CONFIG.d_model, momentum=0.0)

    @torch.no_grad()
    def forward(self, sources: list[str], targets: list[str], off: tuple | None = None) -> Tensor:
        """The probabilities of each possible next token, (B, 11), in the order of `TOKENS`.

        sources, targets: B texts each, of the letters a to h. A target is what has been written so
        far, and may be empty. `_` at the end of a source is padding, and a source is padded to the
        longest of its batch. off: a head to switch off, such as ("cross", 1); see `HEADS`.
        """
        chances = self.every_step(sources, targets, off)
        return chances[range(len(targets)), [len(target) for target in targets]]

    @torch.no_grad()
    def every_step(self, sources, targets, off=None) -> Tensor:
        """The same after each part of the targets, from the empty one on: (B, T + 1, 11)."""
        src, tgt = encoded(sources, after="$"), encoded(targets, before="^")
        if len(src) != len(tgt):
            raise ValueError(
                f"{counted(len(src), 'source')} and {counted(len(tgt), 'target')}: give as many "
                "of each"
            )
        with switched_off(self.model, off):
            return self.logits(src, tgt).softmax(-1)

    @torch.no_grad()
    def answer(self, sources: list[str], off: tuple | None = None) -> list[str]:
        """The model's answer to each source: the likeliest token at each step, up to `$`."""
        texts, writing = [""] * len(sources), [True] * len(sources)
        while any(writing):
            for i, token in enumerate(self(sources, texts, off).argmax(-1).tolist()):
                writing[i] &= TOKENS[token] in LETTERS and len(texts[i]) < LONGEST
                texts[i] += TOKENS[token] if writing[i] else ""
        return texts

    def logits(self, src: Tensor, tgt: Tensor) -> Tensor:
        """src (B, S), tgt (B, T) -> (B, T, 11)"""
        src_mask = padding_mask(src) | (not self.hides_padding)
        size = tgt.size(1)
        causal = torch.ones(size, size, dtype=torch.bool).tril(self.ahead)
        return self.model(src, tgt, src_mask, causal & padding_mask(tgt))


def encoded(texts: list[str], before: str = "", after: str = "") -> Tensor:
    """Texts as ids, padded to the longest: (B, T). Says what is wrong with a text."""
    rows = []
    for text in texts:
        letters = text.rstrip("_")
        if set(letters) - set(LETTERS):
            raise ValueError(f"{text!r} has letters other than {LETTERS}, or padding in its middle")
        if len(letters) > LONGEST or (after and not letters):
            raise ValueError(f"{text!r} has {len(letters)} letters; the models read 1 to {LONGEST}")
        rows.append(before + letters + after + text[len(letters) :])
    size = max(map(len, rows), default=0)
    return torch.tensor([[TOKENS.index(token) for token in row.ljust(size, "_")] for row in rows])


@contextmanager
def switched_off(model: Transformer, head: tuple | None):
    """Replace a head's output by 0 inside the block."""
    if head is None:
        yield
        return
    if head not in HEADS:
        raise ValueError(f"there is no head {head!r}; the heads are {', '.join(map(str, HEADS))}")
    part, number = head
    attention = {
        "encoder": model.encoder.layers[0].self_attention,
        "decoder": model.decoder.layers[0].self_attention,
        "cross": model.decoder.layers[0].cross_attention,
    }[part]
    kept = torch.ones(CONFIG.d_model)
    kept[number * attention.d_head : (number + 1) * attention.d_head] = 0
    handle = attention.w_o.register_forward_pre_hook(lambda _, inputs: (inputs[0] * kept,))
    try:
        yield
    finally:
        handle.remove()


# ----------------------------------------------------------------------------------- where they are


def texts(count: int, seed: int, shortest: int = 2) -> list[str]:
    """Random texts of the letters, the same for the same seed."""
    rng = random.Random(seed)
    return ["".join(rng.choices(LETTERS, k=rng.randint(shortest, LONGEST))) for _ in range(count)]


TRAINING_TEXTS, TEST_TEXTS = texts(300, seed=1), texts(100, seed=2)  # of those runs that have any


def sealed(*words) -> str:
    """A name that says nothing."""
    return hashlib.sha256(" ".join(map(str, words)).encode()).hexdigest()[:16]


@cache
def _stored() -> dict[str, Tensor]:
    from safetensors.torch import load_file

    from transformer_lib.runs.pretrained import results_dir

    path = results_dir() / "mystery.safetensors"
    if not path.exists():
        raise FileNotFoundError(f"{path} is not here: get the whole book")
    return load_file(path)


def packed(mystery: Mystery, form) -> Tensor:
    """A model, its form and its curve, in one row of 16-bit numbers."""
    curve = torch.tensor(mystery.curve)
    weights = nn.utils.parameters_to_vector(mystery.model.parameters())
    head = torch.tensor([*form, len(curve)])
    return torch.cat([head, curve.flatten(), weights.detach()]).half()


def unpacked(row: Tensor) -> Mystery:
    """The model that `packed` put into a row."""
    *form, points = row[:4].int().tolist()
    mystery = Mystery(form)
    curve = row[4 : 4 + 2 * points].view(-1, 2).tolist()
    mystery.curve = [(int(update), loss) for update, loss in curve]
    nn.utils.vector_to_parameters(row[4 + 2 * points :].float(), mystery.model.parameters())
    return mystery.requires_grad_(False)


def load(name: int | str) -> Mystery:
    """Load mystery 1 to 10; "healthy", with nothing wrong; or "example", which is solved already.
    """
    if name not in ("healthy", "example", *range(1, COUNT + 1)):
        raise ValueError(
            f'there is no mystery {name!r}; give 1 to {COUNT}, "healthy" or "example"'
        )
    return kept("source is not read", 0) if name == "example" else unpacked(_stored()[sealed(name)])


def kept(suspect: str, number: int) -> Mystery:
    """A model that is not on the page: number 0, 1, ... of those with this cause, or "healthy"."""
    name = sealed("kept", suspect, number)
    if name not in _stored():
        raise ValueError(f"there is no model {number!r} of {suspect!r}; give 0, 1, ... and one of "
                         f"{', '.join(map(repr, SUSPECTS))}, or 'healthy'.")
    return unpacked(_stored()[name])


def is_cause(number: int, suspect: str) -> bool:
    """Whether the suspect is the mystery's cause. Raises ValueError for an unknown one."""
    if number not in range(1, COUNT + 1) or suspect not in SUSPECTS:
        raise ValueError(
            f"there is no mystery {number!r} or no suspect {suspect!r}; give 1 to {COUNT} and one "
            f"of {', '.join(map(repr, SUSPECTS))}"
        )
    return sealed("cause", number, suspect) in _stored()


guard(__name__, stays=False)
