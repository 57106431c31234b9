"""The settings of a model and of a training run, each in one dataclass."""

import dataclasses
import math
from dataclasses import KW_ONLY, dataclass

from transformer_lib.feed_forward import ACTIVATIONS
from transformer_lib.guards import require_limits, require_types, within
from transformer_lib.normalization import NORMS
from transformer_lib.positional import SCHEMES

PAD, BOS, EOS, UNK = range(4)  # ids of the special tokens, in every vocabulary

@dataclass(frozen=True)
class BlockConfig:
    """Sizes and options of the layers, whatever their input. The defaults are the paper's base
    model (table 3), with pre-norm.

    Raises a ValueError that names the field if no model can be built with its value.
    """

    d_model: int = within(512, at_least=1, at_most=10**5)  # D: width of every token's vector
    n_heads: int = within(8, at_least=1, at_most=10**5)  # H: each has d_model / n_heads numbers
    d_ff: int = within(2048, at_least=1, at_most=10**6)  # width inside the feed-forward sublayer
    # A model without an encoder ignores the first of these, one without a decoder the second.
    n_encoder_layers: int = within(6, at_least=0, at_most=1000)
    n_decoder_layers: int = within(6, at_least=0, at_most=1000)
    dropout: float = within(0.1, at_least=0, below=1)  # on sublayers and embeddings (sec. 5.4)
    attention_dropout: float = within(0.0, at_least=0, below=1)  # not in the paper
    max_len: int = within(256, at_least=1, at_most=10**7)  # longest sequence, in tokens
    _: KW_ONLY
    norm_first: bool = True  # True: pre-norm; False: post-norm, as the paper draws it
    norm: str = within("layer", one_of=NORMS)  # "batch" only to compare: it mixes sentences
    eps: float = within(1e-5, above=0, below=math.inf)  # under the norm's square root
    positional: str = within("sinusoidal", one_of=SCHEMES)
    rotary_base: float = within(10000.0, above=0, below=math.inf)  # of rotary's wavelengths
    activation: str = within("relu", one_of=ACTIVATIONS)
    bias: bool = True  # in the linear maps of attention and feed-forward network
    n_kv_heads: int | None = None  # heads for keys and values; None: the same number as for queries

    def __post_init__(self):
        require_types(self)
        require_limits(self)
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}: each head "
                "gets d_model / n_heads numbers, so choose sizes that divide."
            )
        kv = self.n_kv_heads
        if kv is not None and (kv < 1 or self.n_heads % kv):
            raise ValueError(
                f"n_kv_heads is {kv}; it must be None or a divisor of n_heads {self.n_heads}."
            )
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
    vocab_size: int = within(at_least=1, at_most=10**7)  # V: shared by source and target


@dataclass(frozen=True)
class ModelConfig(BlockConfig, _Vocabulary):
    """BlockConfig and a vocabulary: the sizes of a model that reads and writes tokens."""

    pad_id: int = PAD  # the id of padding; no other is possible
    tie_embeddings: bool = True  # one matrix for source, target and output (sec. 3.4)
    scale_embeddings: bool = True  # times sqrt(d_model) (sec. 3.4); not in GPT, BERT and Llama

    def __post_init__(self):
        super().__post_init__()
        if self.pad_id != PAD:
            raise ValueError(f"pad_id is {self.pad_id}; it must be {PAD}, the id of <pad>.")


@dataclass(frozen=True)
class TrainConfig:
    """How to train. The defaults follow Transformer-Tiny on Multi30k (Wu et al. 2021).

    One update sees `accumulate` batches on each process, so a global batch holds about
    max_tokens * accumulate * (number of processes) target tokens, padding included.
    """

    max_steps: int = within(8000, at_least=1)  # updates of the weights
    max_tokens: int = within(4096, at_least=1)  # tokens in one batch, padding included
    accumulate: int = within(1, at_least=1, at_most=10**6)  # batches added up for an update
    both_directions: int = within(0, at_least=0)  # first epochs with swapped pairs, too
    schedule: str = within("inverse_sqrt", one_of=("inverse_sqrt", "noam", "constant"))
    peak_lr: float = within(5e-3, above=0, below=math.inf)  # "noam" uses the paper's instead
    warmup: int = within(2000, at_least=0)  # updates
    cooldown: int = within(0, at_least=0)  # last updates, over which the rate falls almost to 0
    optimizer: str = within("adam", one_of=("adam", "muon"))  # muon: see optimizers.py
    betas: tuple[float, float] = within((0.9, 0.98), at_least=0, below=1)
    eps: float = within(1e-9, above=0, below=math.inf)
    weight_decay: float = within(0.0, at_least=0, below=1)
    label_smoothing: float = within(0.1, at_least=0, below=1)
    r_drop: float = within(0.0, at_least=0, below=math.inf)  # weight of R-Drop's term; 0: one pass
    clip_norm: float = within(1.0, at_least=0, below=math.inf)  # 0 turns clipping off
    average: int = within(10, at_least=1)  # checkpoints averaged into the final weights; 1: none
    checkpoint_every: int = within(200, at_least=1)  # updates
    keep_checkpoints: int = within(10, at_least=1)
    validate_every: int = within(200, at_least=1)  # updates
    validation_bleu: bool = True  # greedy decoding of the validation set at each validation
    log_every: int = within(20, at_least=1)  # updates
    seed: int = within(0, at_least=0, below=2**63)
    device: str = "auto"  # "auto" | "cpu" | "cuda" | "cuda:1" | "mps"
    precision: str = within("auto", one_of=("auto", "fp32", "bf16"))  # auto: bf16 where it pays
    fast: bool = False  # the same training in less time: see transformer_lib.fast
    tensorboard: bool = False
    progress: bool = True  # a progress bar on the terminal or in the notebook

    def __post_init__(self):
        require_types(self)
        # JSON has no tuples: a configuration read back from disk must equal the one written.
        object.__setattr__(self, "betas", tuple(self.betas))
        require_limits(self)
        for name, limit in (("average", "keep_checkpoints"), ("cooldown", "max_steps")):
            given, most = getattr(self, name), getattr(self, limit)
            if given > most:
                raise ValueError(f"{name} is {given}; it must be at most {limit} {most}.")
        if self.optimizer == "muon" and self.weight_decay:
            raise ValueError(
                f'weight_decay is {self.weight_decay}; it must be zero with the optimizer "muon".'
            )


def to_dict(config) -> dict:
    """A configuration as plain JSON values."""
    return dataclasses.asdict(config)


def from_dict(cls, values: dict, where: str = "the configuration"):
    """Build `cls` from a dictionary. An unknown name is an error, so that typos get noticed."""
    known = {field.name for field in dataclasses.fields(cls)}
    if not isinstance(values, dict):
        raise ValueError(f"{where} holds {values!r}; expected the fields of {cls.__name__}.")
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(
            f"{where} has unknown fields {unknown}; {cls.__name__} knows {sorted(known)}."
        )
    missing = [field.name for field in dataclasses.fields(cls)
               if field.default is dataclasses.MISSING and field.name not in values]
    if missing:
        raise ValueError(f"{where} has no {', '.join(missing)}, which a {cls.__name__} needs.")
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:  # of a field
        why = str(error).rstrip(".")
        raise ValueError(f"{where} does not make a {cls.__name__}: {why}.") from None
