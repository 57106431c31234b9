"""Build your own Transformer: hand in its parts one by one, and what you wrote is the model.

    from exercises import own

    own.hand_in("attention", my_attention)   # tested by its laws; what is right is kept in a file
    own.parts()                              # which parts are yours, and which the library's
    model = own.model(config)                # the library's model with your parts in it
    own.train(model, tokenizer, pairs, config, run_dir)
    own.run_card(run_dir, pairs)             # your parts, your curve, your sentences, your BLEU

A part that is not written yet is the library's, so you can run the model at any stage. The laws are
in `exercises.checks.own`; `source` writes a part down, `transformer` puts the parts in. The card is
like any other run's.

What later models changed is handed in the same way, tested by `exercises.checks.descendants`, and
put into a model of any kind:

    own.hand_in("rotary", my_rotary)
    own.descendants()                        # which of these parts are yours
    llama = own.adopt(LanguageModel(config)) # a copy that computes with them
"""

import copy
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import nn

from exercises.checks import descendants as changed
from exercises.checks import own as laws
from exercises.checks.framework import LIMIT, TimeUp, time_limit
from exercises.own import source
from exercises.own.adopted import put_in
from exercises.own.transformer import OwnTransformer
from transformer_lib import decoding, training
from transformer_lib.batching import pad
from transformer_lib.config import BOS, EOS, PAD, ModelConfig, TrainConfig
from transformer_lib.data import Pairs
from transformer_lib.guards import guard
from transformer_lib.runs import card, checkpoint
from transformer_lib.runs.card import RunCard
from transformer_lib.runs.pretrained import find_run
from transformer_lib.schedule import cooldown
from transformer_lib.tokenization import encode_source, load_tokenizer

__all__ = [
    "DESCENDANTS", "PARTS", "Parts", "RunCard", "adopt", "descendants", "folder", "hand_in", "hint",
    "keep_in", "load", "model", "parts", "run_card", "train", "translate",
]


@dataclass(frozen=True)
class Part:
    """What a part is called with, where the book builds it, and the law that it must obey."""

    call: str
    chapter: str  # its title
    law: object


PARTS = {
    "padding_mask": Part("(ids, pad_id)", "Masks", laws.padding_mask),
    "decoder_mask": Part("(ids, pad_id)", "Masks", laws.decoder_mask),
    "attention": Part("(q, k, v, mask=None)", "Masks", laws.attention),
    "multi_head_attention": Part(
        "class (d_model, n_heads, attention)", "Multi-head attention", laws.multi_head_attention
    ),
    "positional_encoding": Part(
        "(max_len, d_model)", "Positional encodings", laws.positional_encoding
    ),
    "layer_norm": Part("class (d_model)", "Normalisation", laws.layer_norm),
    "feed_forward": Part("class (d_model, d_ff)", "Feed-forward", laws.feed_forward),
    "encoder_layer": Part(
        "(x, norm_1, attend, norm_2, feed_forward)", "The encoder", laws.encoder_layer
    ),
    "decoder_layer": Part(
        "(x, memory, src_mask, tgt_mask, norms, self_attend, cross_attend, feed_forward)",
        "The decoder", laws.decoder_layer,
    ),
    "loss": Part("(logits, targets, smoothing, ignore_index)", "Loss and schedule", laws.loss),
    "schedule": Part("(step, d_model, warmup)", "Loss and schedule", laws.schedule),
    "greedy_decode": Part(
        "(next_logits, n_sentences, bos_id, eos_id, max_len)", "Decoding", laws.greedy_decode
    ),
    "beam_search": Part(
        "(next_logits, beam_size, length_penalty, bos_id, eos_id, max_len)", "Decoding",
        laws.beam_search,
    ),
}

# What the models after the Transformer changed: {name: part}, for `adopt`.
DESCENDANTS = {
    "rotary": Part("(x, start)", "Positional encodings", changed.rotary),
    "rms_norm": Part("class (d_model)", "Normalisation", changed.rms_norm),
    "swiglu": Part("class (d_model, d_ff)", "Feed-forward", changed.swiglu),
    "grouped_heads": Part(
        "class (d_model, n_heads, n_kv_heads, turn)", "What a cache costs", changed.grouped_heads
    ),
    "block": Part(
        "(x, kept, norm_1, attend, norm_2, feed_forward)", "Decoder-only", changed.block
    ),
    "relative_bias": Part(
        "class (n_heads, both_ways)", "T5's positions", changed.relative_bias
    ),
    "hide_tokens": Part(
        "(ids, mask_id, chance, fate, other)", "Encoder-only", changed.hide_tokens
    ),
    "patches": Part("(images, patch)", "Seeing", changed.patches),
    "play_for": Part("(env, choose, asked, context)", "Acting", changed.play_for),
    "scan": Part("(q, k, v, log_decay, write, replace, state)", "States", changed.scan),
    "keep_guesses": Part("(p, q, guesses, u)", "Speculative decoding", changed.keep_guesses),
    "dpo": Part(
        "(better, worse, better_before, worse_before, price)", "Preferences", changed.dpo
    ),
}
EVERY = PARTS | DESCENDANTS

PENALTY = 1.0  # of the lengths in beam search: nothing is chosen on the validation set

_chosen: Path | None = None  # the folder of keep_in
_judged: dict[tuple[str, str], tuple] = {}  # (name, SHA-256 of the file) -> (verdict, mistakes)


# ----------------------------------------------------------------------------- where parts are kept


def folder() -> Path:
    """Where your parts are kept: what keep_in chose, else MY_TRANSFORMER, else my-transformer/ in
    the working directory, which the notebooks of the book share.
    """
    return _chosen or Path(os.environ.get("MY_TRANSFORMER", "my-transformer"))


def keep_in(path: str | Path) -> None:
    """Keep your parts in this folder, and take them from it."""
    global _chosen
    if not isinstance(path, str | Path):
        raise TypeError(f"path is {path!r:.60}; expected the name of a folder.")
    _chosen = Path(path)


# ------------------------------------------------------------------------------------ handing in


def hand_in(name: str, part) -> bool | None:
    """Test a part by its laws, and keep it if it obeys them; prints the verdict.

    name: one of PARTS or DESCENDANTS. part: your function or class. Returns True (kept), False
    (wrong, with the law that it breaks) or None (not written yet). Raises ValueError for a name
    that isn't a part.
    """
    verdict, mistakes = _part(name).law.judge((part,))
    path = folder() / f"{name}.py"
    stays = f"your earlier one in {path}" if path.exists() else "the library's"
    if verdict is None:
        print(f"○ {name}: not written yet; the model uses {stays}.")
        return None
    if verdict:
        try:
            text = source.source_of(part)
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            partial.write_text(_header(name) + text, encoding="utf-8")
            _, mistakes = judge(name, partial)
            if not mistakes:
                partial.replace(path)
                print(f"✓ {name}: right, and yours from now on. It is kept in {path}.")
                return True
            partial.unlink()
            mistakes = [(f"right here, but not when read again from a file: {mistakes[0][0]}",)]
        except (ValueError, OSError) as error:
            mistakes = [(f"right, but it cannot be kept: {error}",)]
    for sentence, *details in mistakes:
        print(f"✗ {name}: {sentence}")
        for detail in details:
            print(f"    {detail}")
    print(f"    The model uses {stays}.")
    return False


def hint(name: str) -> None:
    """Print the next hint for a part."""
    print(f"Hint for {name}, {_part(name).law.hint()}")


def _part(name: str) -> Part:
    if name not in EVERY:
        raise ValueError(f"there is no part {name!r}; the parts are {', '.join(EVERY)}.")
    return EVERY[name]


def _header(name: str) -> str:
    return (
        f'"""Your {name}{EVERY[name].call.removeprefix("class ")}, as you handed it in.\n\n'
        'To change it, hand in another; own.parts() tests what is here again.\n"""\n\n'
    )


def judge(name: str, path: Path) -> tuple:
    """(the part in a file, what is wrong with it), tested once for each text of the file."""
    key = name, hashlib.sha256(path.read_bytes()).hexdigest()
    if key not in _judged:
        try:
            with time_limit(LIMIT):
                part = source.read(path)
            verdict, mistakes = EVERY[name].law.judge((part,), explain=False)
            mistakes = mistakes or ([] if verdict else [("it is not written yet",)])
        except (Exception, SystemExit, TimeUp) as error:  # whatever a file of a reader may do
            part, mistakes = None, [(f"the file stops with {type(error).__name__} ({error})",)]
        _judged[key] = part, mistakes
    return _judged[key]


class Parts(dict):
    """The parts of a folder that obey their laws, {name: function or class}; printed, a table."""

    def __init__(self, where: Path, of: dict[str, Part] = PARTS):
        super().__init__()
        self.where, self.of, self.refused = where, of, {}
        for name in of:
            path = where / f"{name}.py"
            if path.exists():
                part, mistakes = judge(name, path)
                if mistakes:
                    self.refused[name] = mistakes[0][0]
                else:
                    self[name] = part

    def __repr__(self):
        def state(name):
            if name in self.refused:
                return f"the library's; yours no longer passes: {self.refused[name]}"
            return "yours" if name in self else "the library's"

        rows = [f"{'✓' if name in self else '·'} {name:<21} {one.chapter:<20} {state(name)}"
                for name, one in self.of.items()]
        head = f"  {'part':<21} {'chapter':<20} whose"
        count = f"{len(self)} of {len(self.of)} parts in {self.where} are yours."
        return "\n".join([head, *rows, count])


def parts(where: str | Path | None = None) -> Parts:
    """The parts kept in a folder (yours, if none is named), each tested anew."""
    return _kept(where, PARTS)


def descendants(where: str | Path | None = None) -> Parts:
    """As `parts`, of what later models changed."""
    return _kept(where, DESCENDANTS)


def _kept(where: str | Path | None, of: dict[str, Part]) -> Parts:
    if where and Path(where).exists() and not Path(where).is_dir():
        raise ValueError(f"{where} is a file; expected the folder that keeps your parts.")
    return Parts(Path(where) if where else folder(), of)


# -------------------------------------------------------------------------------------- the model


def model(config: ModelConfig, where: str | Path | None = None) -> OwnTransformer:
    """The library's model of these sizes with your parts in it; `rotary`, too, if its
    positions are rotary.
    """
    if not hasattr(config, "positional"):
        raise TypeError(f"config is {config!r:.60}; expected a ModelConfig.")
    own_parts = dict(parts(where))
    if config.positional == "rotary" and "rotary" in (later := descendants(where)):
        own_parts["rotary"] = later["rotary"]
    return OwnTransformer(config, own_parts)


def adopt(model: nn.Module, where: str | Path | None = None) -> nn.Module:
    """A copy of a library's model, with its weights, that computes with your parts of DESCENDANTS.

    model: one with rotary positions, T5's, RMSNorm, SwiGLU, grouped heads or states, one that only
    decodes, or one that reads patches. Its `own` holds the names of those of your parts that found
    a place in it.
    """
    adopted = copy.deepcopy(model)
    with torch.random.fork_rng(devices=[]):  # weights to be overwritten use no random numbers
        adopted.own = put_in(adopted, descendants(where))
    return adopted


def load(run: str | Path, where: str | Path | None = None):
    """(model, tokenizer) of a run, one of yours or a recorded one, such as "multi30k-de-en"; the
    model computes with your parts.
    """
    path = find_run(run)
    trained = checkpoint.load_model(path)
    own_model = model(trained.config, where)
    own_model.load_state_dict(trained.state_dict())
    return own_model.eval(), load_tokenizer(path / "tokenizer.json")


def train(
    model: OwnTransformer,
    tokenizer: Tokenizer,
    pairs: Pairs,
    config: TrainConfig,
    run_dir: str | Path,
    on_log=None,
) -> list[dict]:
    """`training.train` with your loss and your schedule; what is not yours is the library's.

    Your schedule sets the rate where config.schedule is "noam"; config.cooldown lowers it at the
    end. The names of your parts are kept in run_dir/config.json, under "data".
    """
    own = model.own
    if "schedule" in own and config.schedule != "noam":
        raise ValueError(
            f'schedule is {config.schedule!r}; your part is eq. 3: use schedule="noam".'
        )

    def loss(model, batch, smoothing):
        src_ids, tgt_ids = batch  # (B, S), (B, T + 1)
        logits = model(src_ids, tgt_ids[:, :-1])  # (B, T, V)
        return own["loss"](logits, tgt_ids[:, 1:], smoothing, PAD)

    def rate(config, step, d_model):
        factor = cooldown(step, config.max_steps, config.cooldown)
        return float(own["schedule"](step, d_model, config.warmup)) * factor

    info = {"source": getattr(pairs, "source", "pairs"), "src": getattr(pairs, "src", "de"),
            "tgt": getattr(pairs, "tgt", "en"), "parts": sorted(own)}
    return training.train(
        model, tokenizer, pairs, config, run_dir, on_log, info,
        loss=loss if "loss" in own else None,
        rate=rate if "schedule" in own else None,
    )


@torch.inference_mode()
def translate(
    model: OwnTransformer, tokenizer: Tokenizer, texts: list[str], beam_size: int = 5,
    length_penalty: float = 1.0,
) -> list[str]:
    """Translate with your own beam search, or, with beam_size 1, your own greedy decoding.

    A decoding that is not yours is the library's.
    """
    sources = encode_source(tokenizer, list(texts))
    own, device = model.own, next(model.parameters()).device

    def limit(src_ids):
        return min(src_ids.size(1) + 50, model.config.max_len)

    def greedy(src_ids):
        if "greedy_decode" not in own:
            return decoding.greedy_decode(model, src_ids)
        next_logits = model.next_logits(src_ids)
        return own["greedy_decode"](next_logits, len(src_ids), BOS, EOS, limit(src_ids))

    def beam(src_ids):
        if "beam_search" not in own:
            return decoding.beam_search(model, src_ids, beam_size, None, length_penalty)[0]
        found = []
        for row in src_ids:
            one = row[row != PAD][None]  # (1, S)
            next_logits = model.next_logits(one)
            ids, _ = own["beam_search"](
                next_logits, beam_size, length_penalty, BOS, EOS, limit(one)
            )
            found.append(torch.as_tensor(ids).flatten().tolist())
        return pad(found)

    with decoding.evaluating(model):
        search = greedy if beam_size == 1 else beam
        ids = decoding.in_batches(lambda src_ids: list(search(src_ids)), sources, 4096, device)
    return [tokenizer.decode([int(i) for i in row]) for row in ids]


def run_card(
    run_dir: str | Path, pairs: Pairs, split: str = "test", limit: int | None = None,
    beam_size: int = 5, where: str | Path | None = None,
) -> RunCard:
    """Translate a split with your parts and the run's weights, score it, and describe the run.

    limit: how many of its sentences are translated and scored; None: all. where: the folder of
    your parts. Leaves card.json and scores.json in run_dir; the exported file carries the scores.
    """
    run_dir = Path(run_dir)
    trained, tokenizer = load(run_dir, where)
    config = checkpoint.read_config(run_dir)
    mine = [name for name in PARTS if name in config.get("data", {}).get("parts", [])]
    found = card.run_card(
        run_dir, pairs, lambda texts: translate(trained, tokenizer, texts, beam_size, PENALTY),
        split, limit, parts=mine, n_parts=len(PARTS),
    )
    card.keep_scores(run_dir, found, beam_size, PENALTY)
    return found


guard(__name__, stays=False)
