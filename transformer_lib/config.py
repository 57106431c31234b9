"""The sizes of a model and of a training run, each in one dataclass."""

import dataclasses
import math
from dataclasses import KW_ONLY, dataclass

from transformer_lib.feed_forward import ACTIVATIONS
from transformer_lib.guards import guard, require_types
from transformer_lib.normalization import NORMS
from transformer_lib.positional import SCHEMES

PAD, BOS, EOS, UNK = range(4)  # ids of the special tokens, in every vocabulary


@dataclass(frozen=True)
class BlockConfig:
    """Sizes and choices of the layers, whatever they read. The defaults are the paper's base model
    (table 3), with pre-norm.

    Raises ValueError, naming the field, when a value cannot make a model.
    """

    d_model: int = 512  # D: width of every token's vector
    n_heads: int = 8  # H: each head works on d_model / n_heads numbers
    d_ff: int = 2048  # width inside the feed-forward sublayer
    n_encoder_layers: int = 6  # a model without an encoder does not read this
    n_decoder_layers: int = 6  # nor one without a decoder this
    dropout: float = 0.1  # on each sublayer's output and on the embeddings (sec. 5.4)
    attention_dropout: float = 0.0  # on attention weights; not in the paper
    max_len: int = 256  # longest sequence, in tokens
    _: KW_ONLY
    norm_first: bool = True  # True: pre-norm; False: post-norm, as the paper draws it
    norm: str = "layer"  # "layer" | "rms" | "batch" (for comparison only: it mixes sentences)
    eps: float = 1e-5  # inside the norm's root
    positional: str = "sinusoidal"  # "sinusoidal" | "learned" | "rotary" | "alibi" | "none"
    rotary_base: float = 10000.0  # of the wavelengths of rotary positions
    activation: str = "relu"  # "relu" | "gelu" | "gelu_tanh" | "swiglu"
    bias: bool = True  # in the linear maps of attention and feed-forward network
    n_kv_heads: int | None = None  # heads of keys and values; None: as many as of queries

    def __post_init__(self):
        require_types(self)
        for name in ("d_model", "n_heads", "d_ff", "max_len"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        for name in ("n_encoder_layers", "n_decoder_layers"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        for name in ("dropout", "attention_dropout"):
            _require(0 <= getattr(self, name) < 1, name, getattr(self, name), "in [0, 1)")
        for name in ("eps", "rotary_base"):
            _require(getattr(self, name) > 0, name, getattr(self, name), "above 0")
        for name, known in (("norm", NORMS), ("positional", SCHEMES), ("activation", ACTIVATIONS)):
            given = getattr(self, name)
            _require(given in known, name, given, f"one of {tuple(known)}")
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}: each head "
                "gets d_model / n_heads numbers, so choose sizes that divide."
            )
        kv = self.n_kv_heads
        fits = kv is None or (kv >= 1 and self.n_heads % kv == 0)
        _require(fits, "n_kv_heads", kv, f"None or a divisor of n_heads {self.n_heads}")
        if self.positional == "rotary" and (self.d_model // self.n_heads) % 2:
            raise ValueError(
                f"rotary positions turn pairs of numbers, but a head has "
                f"{self.d_model // self.n_heads}: choose an even d_model / n_heads."
            )
        if self.positional == "sinusoidal" and self.d_model % 2:
            raise ValueError(
                f"sinusoidal positions come in sine-cosine pairs; d_model {self.d_model} is odd: "
                "make it even."
            )


@dataclass(frozen=True)
class _Vocabulary:  # a class of its own, so that vocab_size is ModelConfig's first field
    vocab_size: int  # V: one vocabulary, shared by source and target


@dataclass(frozen=True)
class ModelConfig(BlockConfig, _Vocabulary):
    """BlockConfig and a vocabulary: the sizes of a model that reads and writes tokens."""

    pad_id: int = PAD  # the id of padding; no other is possible
    tie_embeddings: bool = True  # one matrix for source, target and output (sec. 3.4)
    scale_embeddings: bool = True  # times sqrt(d_model) (sec. 3.4); not in GPT, BERT and Llama

    def __post_init__(self):
        super().__post_init__()
        _require(self.vocab_size >= 1, "vocab_size", self.vocab_size, "at least 1")
        _require(self.pad_id == PAD, "pad_id", self.pad_id, f"{PAD}, the id of <pad> everywhere")


@dataclass(frozen=True)
class TrainConfig:
    """How to train. The defaults follow Transformer-Tiny on Multi30k (Wu et al. 2021).

    One update sees `accumulate` batches on each process, so a global batch holds about
    max_tokens * accumulate * (number of processes) target tokens, padding included.
    """

    max_steps: int = 8000  # updates of the weights
    max_tokens: int = 4096  # tokens in one batch, padding included
    accumulate: int = 1  # batches whose gradients are added before an update
    schedule: str = "inverse_sqrt"  # "inverse_sqrt" | "noam" | "constant"
    peak_lr: float = 5e-3  # for "noam", the paper's formula sets the rate instead
    warmup: int = 2000  # updates
    cooldown: int = 0  # the last updates, over which the rate falls in a line, almost to zero
    optimizer: str = "adam"  # "adam" | "muon", for the layers' matrices: see optimizers.py
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.0
    label_smoothing: float = 0.1
    clip_norm: float = 1.0  # 0 turns clipping off
    average: int = 10  # the last checkpoints, averaged into the final weights; 1: no averaging
    checkpoint_every: int = 200  # updates
    keep_checkpoints: int = 10
    validate_every: int = 200  # updates
    validation_bleu: bool = True  # greedy decoding of the validation set at each validation
    log_every: int = 20  # updates
    seed: int = 0
    device: str = "auto"  # "auto" | "cpu" | "cuda" | "cuda:1" | "mps"
    precision: str = "auto"  # "auto": bf16 on a GPU that has it, else fp32 | "fp32" | "bf16"
    fast: bool = False  # the same training in less time: see transformer_lib.fast
    tensorboard: bool = False
    progress: bool = True  # a progress bar on the terminal or in the notebook

    def __post_init__(self):
        require_types(self)
        # JSON has no tuples: a configuration read back from disk must equal the one written.
        object.__setattr__(self, "betas", tuple(self.betas))
        for name in (
            "max_steps",
            "max_tokens",
            "accumulate",
            "average",
            "checkpoint_every",
            "keep_checkpoints",
            "validate_every",
            "log_every",
        ):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        for name in ("warmup", "cooldown"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        _require(self.clip_norm >= 0, "clip_norm", self.clip_norm, "at least 0 (0: no clipping)")
        for name in ("peak_lr", "eps"):
            _require(0 < getattr(self, name) < math.inf, name, getattr(self, name), "above 0")
        _require(all(0 <= b < 1 for b in self.betas), "betas", self.betas, "two numbers in [0, 1)")
        _require(0 <= self.weight_decay < 1, "weight_decay", self.weight_decay, "in [0, 1)")
        _require(0 <= self.seed < 2**63, "seed", self.seed, "at least 0 and below 2 ** 63")
        _require(
            0 <= self.label_smoothing < 1, "label_smoothing", self.label_smoothing, "in [0, 1)"
        )
        _require(
            self.average <= self.keep_checkpoints,
            "average",
            self.average,
            f"at most keep_checkpoints {self.keep_checkpoints}",
        )
        schedules = ("inverse_sqrt", "noam", "constant")
        _require(self.schedule in schedules, "schedule", self.schedule, f"one of {schedules}")
        optimizers = ("adam", "muon")
        _require(self.optimizer in optimizers, "optimizer", self.optimizer, f"one of {optimizers}")
        decays = self.optimizer == "muon" and self.weight_decay
        _require(not decays, "weight_decay", self.weight_decay, 'zero with the optimizer "muon"')
        precisions = ("auto", "fp32", "bf16")
        _require(self.precision in precisions, "precision", self.precision, f"one of {precisions}")


def to_dict(config) -> dict:
    """A configuration as plain JSON values."""
    return dataclasses.asdict(config)


def from_dict(cls, values: dict, where: str = "the configuration"):
    """Build `cls` from a dictionary; unknown names are an error, so that a typing slip is seen."""
    known = {field.name for field in dataclasses.fields(cls)}
    if not isinstance(values, dict):
        raise ValueError(f"{where} holds {values!r}; expected the fields of {cls.__name__}.")
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(
            f"{where} has unknown fields {unknown}; {cls.__name__} knows {sorted(known)}."
        )
    try:
        return cls(**values)
    except TypeError as error:  # a field is missing or of another type
        raise ValueError(f"{where} does not make a {cls.__name__}: {error}.") from None


def _require(condition: bool, name: str, given, expected: str) -> None:
    if not condition:
        raise ValueError(f"{name} is {given!r}; it must be {expected}.")


guard(__name__)
