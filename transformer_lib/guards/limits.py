"""Limits of a dataclass field, written next to it: `size: int = within(8, at_least=1)`."""

import contextlib
import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable
from numbers import Real
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn

from transformer_lib.guards.callbacks import are_rules
from transformer_lib.guards.checks import require_mask
from transformer_lib.guards.values import DEVICES, computes, describe, is_device, takes

# What a parameter of this name may be, in every public function or in the one that is named.
PARAMETERS = {name: limits for limits, names in (
    ({"at_least": 1, "at_most": 10**9},
     "d_model n_heads d_ff d_head n_classes max_tokens n_state n_actions channels "
     "learning_rate.step noam.step inverse_sqrt.step"),
    ({"at_least": 1, "at_most": 10**4}, "patch n_experts n_clusters"),
    ({"at_least": 1},
     "n_kv_heads beam_size speed_up.tokens Exits.n_layers run_card.limit largest.k largest.width "
     "nearest_attention.n Training.batch_size Training.accumulate"),
    ({"at_least": 2, "at_most": 10**6}, "policy_gradient_loss.n draw_walks.length"),
    ({"at_least": 1, "at_most": 10**7},
     "TokenEmbedding.vocab_size SinusoidalEncoding.max_len LearnedEncoding.max_len "
     "sinusoidal_table.max_len context rank log_probability.size segment bits "
     "quantised_bits.group latent latent.size n_rows n_told n_facts blank.n blank.length "
     "finished_score.length stride "
     "TableDraft.order n_windows n_episodes max_steps longest n_buckets max_distance chunk "
     "n_rounds tile members dilation every write_texts.n passes by_chunks.size factorise.width "
     "FactorisedEmbedding.width BandedLanguageModel.window NearLayer.window "
     "WindowAttention.window WindowCache.window Deberta.reach batch n_walks "
     "window_with_sinks.window block MemorizingAttention.n max_rows"),
    ({"at_least": 1, "at_most": 10**5},
     "AlibiBias.n_heads n_places n_bins orthogonal_directions.n rows inner columns"),
    ({"at_least": 0, "at_most": 65_536}, "causal_mask.size own_place_last.size"),
    ({"at_least": 0, "at_most": 1_000}, "n_layers orthogonalize.rounds"),
    ({"at_least": 1, "at_most": 1_000}, "max_hops depth"),
    ({"at_least": 0, "at_most": 10**4}, "n_shared n_asked n_local n_ahead"),
    ({"at_least": 1, "at_most": 65_536}, "reader.size reader.budget QuestionsGlobal.size"),
    ({"at_least": 0, "below": math.inf},
     "eps extra_epochs one_global_of n_queries n_keys positions_of.length "
     "r_drop_loss.weight cooldown.length "
     "TokenBatchSampler.set_epoch.epoch both_directions n_updates tokens_kept.length sinks "
     "with_global.n_global bytes_per_token.latent blank.mask_id draft_cost check_cost "
     "policy_gradient_loss.price arrival_loss.price n_links learn.cooldown "
     "neighbour_logp.distances policy_gradient_loss.entropy reach warmup at_most n_segments "
     "for_decoding.sentences format_seconds.seconds"),
    ({"at_least": 1, "at_most": 10**6}, "bootstrap.n paired_bootstrap.n"),
    ({"at_least": 0, "below": 2**63}, "seed gap first_gap fill mask_id of_source of_target"),
    ({"above": 0, "below": math.inf},
     "peak_lr product_speed.seconds base rotary_base rate bytes_per_token.bits dpo_loss.price "
     "reweighted.price ramp"),
    ({"at_least": 1e-30, "below": math.inf}, "distillation_loss.temperature neighbour_logp.scale"),
    ({"at_least": -100, "at_most": 100}, "length_penalty"),
    ({"above": -math.inf, "below": math.inf},
     "sample.temperature cooldown.step GruGate.bias OutputGate.bias add_gates.bias "
     "orthogonalize.matrices truncated_svd.weight quantise.x"),
    ({"at_least": 0, "at_most": 1},
     "BatchNorm.momentum share sure_enough agreement decay mask_tokens.rate calibrate.allowed "
     "SpanAttention.start masked_loss.rate replaced_loss.rate "
     "losses_of_layers.progress mask_at.rate calibrate.losses pixels_as_text.images "
     "balance_loss.probabilities translation_loss.smoothing projected_cross_entropy.smoothing"),
    ({"at_least": 1, "at_most": 8_192}, "orthogonal_directions.size"),
    ({"at_least": 0, "at_most": 10**7}, "start window"),  # a window of 0: a token sees itself
    ({"at_least": 0, "below": 1}, "dropout dropout_p Muon.momentum"),
    ({"at_least": 0, "at_most": 10**6}, "captions.n"),
    ({"at_least": 0, "at_most": 700}, "poisson.mean"),  # exp(-mean) is still a number
    ({"above": 0, "at_most": 700}, "span"),
    ({"at_least": 1, "at_most": 8}, "quantise.bits QuantisedCache.bits"),
    ({"at_least": 0, "at_most": 16_384}, "as_mask.size"),
    ({"at_least": 2, "at_most": 10**4}, "levels"),
    ({"above": 0}, "learn.clip"),
    ({}, "dim ignore_index shift eos_id pad_id train_tokenizer.vocab_size beam_search.beam_size"),
    ({"at_most": 0},  # logarithms of shares
     "scan.log_decay quadratic.log_decay by_chunks.log_decay what_is_left.log_decay "
     "what_is_written.log_decay masked_scores.log_decay interpolate.model_logp "
     "interpolate.found_logp"),
    ({"above": 0, "at_most": 1}, "move_centroids.rate AdaptiveSteps.threshold"),
    ({"at_least": 0, "at_most": 2}, "rewards_of.actions"),
    ({"at_least": 1, "at_most": 2}, "rewards_of.turn"),
    ({"above": 0, "below": 1}, "calibrate.risk"),
    ({"at_least": 5}, "mask_tokens.mask_id"),  # ids below 4 are special; one must be left to draw
) for name in names.split()}


SHARP = "softmax", "softmax, gated"  # what a SharpMixer can be
FINITE = {"above": -math.inf, "below": math.inf}
LISTED = {"ids", "source", "sources", "target", "targets", "sequences", "guesses"}  # or in lists
COUNT = {"at_least": 0}
CHOOSE = "TrainConfig", "load_pretrained", "Processes"  # these take 'auto' as well
COMPUTE = ("causal_mask", "own_place_last", "places_between", "in_batches", "product_speed",
           "Batches.tensors", "DamagedBatches.tensors")  # these use it at once


def require_parameter(function: str, name: str, given, counts: bool) -> ValueError | None:
    """Raise ValueError for a number outside what PARAMETERS allows for this name or, if it has no
    entry, for one that isn't finite. For one that counts something and is below 0, return the error
    instead: the function may know a higher limit.

    A tensor with such a number in it raises it too, if the entry also names the function.
    """
    full = PARAMETERS.get(f"{function}.{name}")
    if full and isinstance(given, Tensor) and given.numel() and given.device.type != "meta":
        slack = 1e-4 if given.is_floating_point() else 0  # what rounding may do to a sum of shares
        for n in (given.min().item(), given.max().item()):
            if not any(_inside(n + s, full) for s in (-slack, 0, slack)):
                raise ValueError(f"{function}: {name} holds {n:.4g}; each number must be "
                                 f"{_in_words(full)}.")
    if name == "device" and isinstance(given, (str, torch.device)) and not is_device(given):
        auto = "'auto', " if function in CHOOSE else ""
        if not auto or given != "auto":
            raise ValueError(f"{function}: device is {str(given)!r}; it must be {auto}{DEVICES}.")
    elif name == "device" and function in COMPUTE and given is not None and not computes(given):
        raise ValueError(f"{function}: device is {str(given)!r}, which this machine does "
                         f"not have; it must be {DEVICES}, whichever it has.")
    if name in LISTED and isinstance(given, (list, tuple)):
        rows = [row if isinstance(row, (list, tuple)) else [row] for row in given]
        if wrong := [n for row in rows for n in row if isinstance(n, int) and n < 0]:
            raise ValueError(f"{function}: {name} holds {wrong[0]}; ids count from 0.")
    limits = PARAMETERS.get(name, COUNT if counts else FINITE) if full is None else full
    if isinstance(given, Real) and not _inside(given, limits):
        problem = ValueError(f"{function}: {name} is {given!r}; it must be {_in_words(limits)}.")
        if limits is COUNT:
            return problem
        raise problem
    return None


# The type of an argument that no signature gives, by its name in every function or in one.
TYPES = {name: kind for kind, names in (
    (bool, "need_weights absolute released replace LatentAttention.bias"),
    (str, "weighting"),
    (int, "d_model n_heads n_kv_heads n_layers n_rows n_extra draw.names Recaller.names "
          "Reader.size by_chunks.size walk.length walk.warmup vocab_size d_ff max_len "
          "causal_mask.size make_pairs.count"),
    (float, "LatentAttention.dropout masked_loss.rate replaced_loss.rate walk.until "
            "sequence_loss.smoothing label_smoothed_cross_entropy.smoothing"),
    (Tensor, "q k v query src_ids tgt_ids log_decay write NearLayer.x ParallelLayer.x "
             "DecoderLayer.read_memory.y"),
    (Tensor | None,
     "key mask src_mask tgt_mask segments scan.state NearLayer.memory ParallelLayer.memory "
     "DecoderLayer.read_memory.memory LatentAttention.value WindowAttention.value "
     "StateMixer.value SharpMixer.value"),
    (Callable[[], object], "decoder_cache.own decoder_cache.memory"),
    (Callable[[Tensor], object], "train.change fill_in.watch Residual.sublayer "
     "GatedResidual.sublayer"),
    (Callable[[Tensor, list, Tensor], object], "speculative_decode.keep"),
    (Callable[[nn.Module, object], Tensor], "walk.loss"),
    (Callable, "translate_streams.decode convert.kind add_gates.gate Agent.gate"),
    (torch.Generator, "generator"),
    (str | torch.device | None, "device"),
) for name in names.split()}
# Tensors of token ids and other numbers that count; and those that layers multiply.
COUNTS = {"ids", "src_ids", "tgt_ids", "segments", "actions", "steps", "hops", "arrows", "rows"}
WHOLE = COUNTS - {"rows"} | {
    "targets", "agreement_loss.words", "Datastore.tokens", "KeyValueCache.select.rows",
    "DecoderCache.select.rows", "DecodingState.select.rows", "Counting.texts",
    "guessing_loss.read", "distance_bucket.distance"}
LATE = {"label_smoothed_cross_entropy.targets"}  # once their shape is known to be right
ANY = {"label_smoothed_cross_entropy.logits", "matrix.tensor"}  # padding counts for nothing
REAL = {"x", "q", "k", "v", "query", "key", "value", "memory", "hidden", "logits", "matrices"}
BOOL = {"guessing_loss.chosen", "masked_softmax.mask"}


def type_of(function: str, name: str):
    """The type of an argument without a hint; None if it isn't known."""
    return TYPES.get(f"{function}.{name}", TYPES.get(name))


def require_numbers(function: str, name: str, given: Tensor) -> None:
    """Raise ValueError for a tensor of numbers that an argument of this name cannot hold."""
    full, floating = f"{function}.{name}", given.is_floating_point()
    if given.layout != torch.strided:
        raise ValueError(
            f"{function}: {name} is a sparse tensor; expected a dense one: use .to_dense()."
        )
    if given.is_complex():
        raise ValueError(f"{function}: {name} is {describe(given)}; expected real numbers.")
    whole = {name, full} & WHOLE and full not in LATE
    if whole and (floating or given.dtype == torch.bool):
        raise ValueError(
            f"{function}: {name} is {describe(given)}; {name} must be whole numbers: use "
            ".long() if they are."
        )
    if full in BOOL and given.dtype != torch.bool:
        raise ValueError(f"{function}: {name} is {describe(given)}; expected a bool tensor: use "
                         ".bool() for ones and zeros.")
    if function.endswith("loss") and not given.numel():
        raise ValueError(f"{function}: {name} is {describe(given)}; there is nothing in it.")
    with contextlib.suppress(RuntimeError):  # under vmap nobody can look
        if floating and full not in ANY and given.device.type == "cpu" and not (
                given < math.inf).all():
            wrong = given[~(given < math.inf)][0]
            raise ValueError(f"{function}: {name} holds {wrong:.4g}; each number must be finite.")
    if name in REAL and not floating and ("." not in function or name == "hidden"):
        raise ValueError(
            f"{function}: {name} is {describe(given)}; expected numbers of a float type: use "
            ".float(), or an embedding where they are ids."
        )


OF_SEGMENTS = "Classifier MaskedLanguageModel EncoderOnly.encode"
OF_EPISODES = "DecisionTransformer DecisionTransformer.tokens"
# Numbers that count from 0: the functions, the argument, how many there are, and what that is.
COUNTED = (
    ("KeyValueCache.select", "rows", "self.keys.shape[0]", "the rows that the cache has"),
    ("DecoderCache.select", "rows", "self.layers[0].own.keys.shape[0]", "the rows that it has"),
    ("DecoderCache.select", "sentences", "self.layers[0].memory.keys.shape[0]", "the sentences"),
    ("DecodingState.select", "rows", "self.cache.layers[0].own.keys.shape[0]", "the rows it has"),
    ("DecodingState.select", "sentences", "self.memory.shape[0]", "the sentences"),
    ("Transformer.start LanguageModel.start", "bos_id", "self.config.vocab_size", "vocab_size"),
    ("greedy_decode beam_search sample n_best ModelDraft", "bos_id", "model.config.vocab_size",
     "vocab_size"),
    ("Counting", "ids", "self.config.vocab_size", "vocab_size"),
    ("FactorisedEmbedding", "ids", "self.lookup.num_embeddings", "vocab_size"),
    (OF_SEGMENTS, "segments", "self.segments.num_embeddings", "n_segments"),
    (OF_EPISODES, "actions", "self.embed_action.num_embeddings", "n_actions"),
    (OF_EPISODES, "steps", "self.config.max_len", "max_len"),
    ("Follower", "arrows", "self.arrow.num_embeddings", "n_places"),
    ("Follower", "hops", "self.hops.num_embeddings", "max_hops + 1"),
    ("Recaller Reader", "names", "self.name.num_embeddings", "the names that it knows"),
    ("Recaller Reader", "values", "self.value.num_embeddings", "the values that it knows"),
    ("balance_loss", "chosen", "probabilities.shape[1]", "the number of experts"),
    ("keep_likeliest KeepByChance", "guesses", "logits.shape[1]", "the vocabulary"),
)
# What broadcasts or fails in a layer: the functions, the argument, its last size, what that is.
WIDTHS = (
    (OF_EPISODES, "states", "self.embed_state.in_features", "n_state"),
    ("SinusoidalEncoding SinusoidalEncoding.add LearnedEncoding LearnedEncoding.add", "x",
     "self.table.shape[1]", "d_model"),
    ("LayerNorm RMSNorm BatchNorm", "x", "self.weight.shape[0]", "d_model"),
    ("RotaryEmbedding", "x", "self.d_head", "d_head"),
    ("RotaryEmbedding.turn", "q", "self.d_head", "d_head"),
    ("RotaryEmbedding.turn", "k", "self.d_head", "d_head"),
    ("QueryKeyNorm.turn", "q", "self.q_norm.weight.shape[0]", "d_head"),
    ("QueryKeyNorm.turn", "k", "self.k_norm.weight.shape[0]", "d_head"),
    ("DisentangledAttention", "distances", "config.d_model", "d_model"),
    ("positive_features fourier_features", "x", "directions.shape[1]", "as each direction"),
)


def _mask(name: str, mask: Tensor, ids: Tensor, model) -> bool | str:
    """Whether attention among these ids takes a mask; the sentence of `require_mask` if not."""
    try:
        require_mask(mask, (len(ids), model.config.n_heads, ids.shape[1], ids.shape[1]))
    except ValueError as error:
        return str(error).replace("mask has", f"{name} has", 1).rstrip(".")
    return True


def _targets(logits: Tensor, targets: Tensor, ignore_index: int = 0) -> bool | str:
    wrong = targets[(targets != ignore_index) & ((targets < 0) | (targets >= logits.shape[-1]))]
    return not wrong.numel() or (
        f"targets holds {wrong[0]}, and logits has {logits.shape[-1]} numbers per row")


def _finite(model) -> bool | str:
    """Whether the weights are finite: others give ids too, and nobody sees that they mean nothing.
    """
    for name, weight in model.named_parameters():
        if weight.numel() and not all(end.isfinite() for end in (weight.min(), weight.max())):
            return f"model holds numbers that are not finite, in {name}"
    return True


def _of_muon(self, state_dict) -> bool:
    """Whether a state belongs to a Muon for a model of the same sizes."""
    inside = {id(p) for matrices in self.matrices.values() for p in matrices}
    ours = [p for group in self.param_groups for p in group["params"]]
    try:
        theirs = [i for group in state_dict["param_groups"] for i in group["params"]]
        kept = [state_dict["state"].get(i, {}) for i in theirs]
        return len(ours) == len(theirs) and all(
            not state or ("momentum" in state) == (id(p) in inside) and all(
                x.shape in (p.shape, ()) for x in state.values())
            for p, state in zip(ours, kept, strict=True))
    except (AttributeError, KeyError, TypeError):
        return False


def _started(self, ids, state) -> bool:
    """Whether a decoding of as many rows by a model of these sizes can go on from a state."""
    reads = any(name.endswith("cross_attention") for name, _ in self.named_modules())
    keys = getattr(state.cache and state.cache.layers[0].own, "keys", None)
    fits = keys is None or len(keys) == len(ids) and (
        keys[0, :, 0].numel() == self.decoder.layers[0].self_attention.w_k.out_features)
    width = None if state.memory is None else state.memory.shape[-1]
    return width == (self.config.d_model if reads else None) and fits and (
        _layers(self, state.cache) is True)


def _of_epoch(batches, epoch: int) -> list:
    sampler = batches.with_extra if epoch < batches.extra_epochs else batches.sampler
    sampler.set_epoch(epoch)
    return sampler.batches()


def _entry(entry: dict, data: bytes) -> bool | str:
    """Whether the bytes hold a tensor where an entry says."""
    said = f"entry is {describe(entry)}, data {len(data)} bytes"
    try:
        shape, offset, scales = entry["shape"], entry["offset"], entry.get("scales")
        ends = [offset + math.prod(shape) * (4 if scales is None else 1)]
        ends += [] if scales is None else [scales + 4 * shape[0]]
        whole = all(type(n) is int and n >= 0 for n in (*shape, offset, scales or 0))
        return whole and max(ends) <= len(data) or said
    except (TypeError, KeyError, IndexError):
        return said


def _formats(number: str) -> bool:
    try:
        return bool(format(0.5, number))
    except ValueError:
        return False


def _layers(self, cache) -> bool | str:
    n = len(getattr(self, "decoder", self).layers)
    return cache is None or len(cache.layers) == n or (
        f"layers of cache: {len(cache.layers)}, of the decoder: {n}")


# (functions, what their parameters must be together, the sentence where they are not). Where the
# condition returns a string, that says what was given, in place of the arguments.
RELATIONS = (
    ("Datastore", lambda keys, tokens: len(keys) == len(tokens),
     "there must be as many tokens as keys: each key has the token that followed it"),
    ("DecoderLayer Decoder NearLayer ParallelLayer DecoderLayer.read_memory Transformer.decode",
     lambda memory, x=(), y=(), tgt_ids=(): len(memory) > 0 and not any(
         len(rows) % len(memory) for rows in (x, y, tgt_ids)),
     "both must have the same batch size (or a row of memory serve several rows)"),
    ("Batches", lambda columns, lengths, counts: all(
        len(column) == len(lengths) for column in (*columns, counts)),
     "every column, lengths and counts must have one entry for each example"),
    ("Batches", lambda counts: all(n >= 0 and n % 1 == 0 for n in counts),
     "counts must be whole numbers, 0 or more"),
    ("Batches", lambda lengths, extra: 0 <= extra < len(lengths),
     "extra must be at least 0 and below the number of examples"),
    ("Batches.n_tokens Batches.tensors",
     lambda self, batch: all(0 <= i < len(self.counts) for i in batch),
     "batch must hold numbers of examples, counted from 0"),
    ("Batches.restore", lambda state: all(
        isinstance(state[name], int) and not isinstance(state[name], bool) and state[name] >= 0
        for name in ("epoch", "next_batch")),
     "state must hold epoch and next_batch, whole numbers from 0, as Batches.state gives them"),
    ("Batches.restore", lambda self, state: (
        state["next_batch"] <= len(_of_epoch(self, state["epoch"]))),
     "state must be that of the same Batches, whose epoch has at least next_batch batches"),
    ("Muon.load_state_dict", _of_muon,
     "state_dict must be that of a Muon for a model of the same sizes, as its state_dict() gives"),
    ("roll_back", lambda state, length: state.cache is not None and length <= state.length,
     "state must have a cache, and length be at most the tokens in it (state.length)"),
    ("Transformer.step LanguageModel.step", _started,
     "state must be what start of this model returned for as many rows, and ids the next ones"),
    ("greedy_decode sample beam_search n_best speculative_decode", _finite,
     "load weights that are: an earlier checkpoint, or a copy that is not damaged"),
    ("Translator.translate", lambda self: _finite(self.model),
     "load weights that are: an earlier checkpoint, or a copy that is not damaged"),
    ("encoder_input queries_keys_values", lambda model: model.config.vocab_size == 12
     and model.config.n_encoder_layers > 0,
     "model must be one for the example's 12 tokens, as tiny_model() gives it"),
    ("tokens", lambda ids: bool((ids < 12).all()), "ids must be those of the example's 12 tokens"),
    ("scaled_dot_product_attention", lambda q: q.shape[-1] > 0, "q must hold numbers to compare"),
    ("Transformer Transformer.encode", lambda src_ids: src_ids.shape[-1] > 0,
     "src_ids must hold a token"),
    ("record_attention", lambda module: "MultiHeadAttention" in {
        base.__name__ for part in module.modules() for base in type(part).__mro__},
     "module must hold a MultiHeadAttention"),
    ("KeyValueCache.append", lambda keys, values: all(
        x.dim() == 4 and x.is_floating_point() for x in (keys, values)),
     "keys and values must be (batch, heads, tokens, numbers), of a float type"),
    ("KeyValueCache.append", lambda self, keys, values: self.keys is None or all(
        (*old.shape[:2], old.shape[3]) == (*new.shape[:2], new.shape[3])
        for old, new in ((self.keys, keys), (self.values, values))),
     "keys and values must have as many rows, heads and numbers as those that the cache holds"),
    ("load", lambda src, tgt: src != tgt, "src and tgt must be two languages"),
    ("padding_share", lambda lengths: all(n >= 0 for pair in lengths for n in pair),
     "lengths must be counts of tokens, 0 or more"),
    ("truncated_svd", lambda weight, rank: weight.dim() >= 2 and rank <= min(weight.shape[-2:]),
     "rank must be at most the smaller side of weight, a matrix"),
    ("MultiHeadAttention",
     lambda d_model, n_heads, positions: positions.d_head * n_heads == d_model,
     "positions must be made for d_head = d_model / n_heads"),
    ("MultiHeadAttention", lambda n_heads, positions: positions.bias(1, 1).shape[1] == n_heads,
     "positions must be made for as many heads"),
    ("DecoderLayer Decoder", lambda self, memory: memory is None or any(
        name.endswith("cross_attention") for name, _ in self.named_modules()),
     "memory would not be read: build with cross_attention=True"),
    ("DecodingState.select", lambda self, rows: self.cache.layers[0].own.keys is not None
     or bool((rows < len(self.memory)).all()),
     "rows must be numbers of rows, counted from 0"),
    ("cooldown", lambda step, max_steps: step < max_steps + 1, "step must be at most max_steps"),
    ("cooldown", lambda max_steps, length: length <= max_steps,
     "length must be at most max_steps: it is the last part of the run"),
    ("learning_rate", lambda config, step: step <= config.max_steps or (
        f"step is {step}, config.max_steps {config.max_steps}"),
     "step must be at most max_steps"),
    ("length_limits", lambda model, first: first <= model.config.max_len or (
        f"first is {first}, model.config.max_len {model.config.max_len}"),
     "first must be at most max_len: it is how many tokens are there already"),
    ("make_positions", lambda config: not isinstance(config, type),
     "config must be a configuration, such as BlockConfig(), not its class"),
    ("projected_cross_entropy", lambda hidden, targets: targets.shape == hidden.shape[:-1],
     "targets must have the shape of hidden, without its last axis"),
    ("in_batches", lambda sources: all(sources), "each of sources must hold a token"),
    ("encode_source encode_pairs", lambda tokenizer: tokenizer.token_to_id("<eos>") == 2,
     "tokenizer must have this library's special tokens, as one from train_tokenizer has"),
    ("draw_windows train", lambda episodes, context=20: context <= episodes.states.shape[1] or (
        f"context is {context}, and episodes hold {episodes.states.shape[1]} steps"),
     "context must be at most the steps that they hold"),
    ("best draw_windows", lambda episodes: bool(
        (episodes.lengths <= episodes.actions.shape[1]).all()),
     "no length of episodes may be above the number of steps that they hold"),
    ("random_exit_loss EarlyLeaving", lambda model, exits: (
        len(exits.maps) + 1 == len(model.decoder.layers)),
     "exits must be made for as many layers as the decoder has"),
    ("solve_maps", lambda states: all(len(x) > x.shape[-1] for x in states),
     "each of states must have more rows than a row has numbers"),
    ("bytes_per_token", lambda latent=0, turned=0: latent > 0 or not turned,
     "turned belongs to LatentAttention: give latent, too"),
    ("any_of", lambda rules=(): len(rules) > 0, "rules must hold at least one"),
    ("any_of", lambda rules: are_rules(*rules), "expected a bool tensor, True = may attend"),
    ("causal", lambda rule: are_rules(rule), "expected a bool tensor, True = may attend"),
    ("evaluating", lambda model: hasattr(model, "train"), "model must be a Module"),
    ("to_ids", lambda texts: len(texts) > 0, "texts must hold at least one text"),
    ("sparse_attention", lambda q, plan: (
        plan.block * sum(len(rows) for rows, *_ in plan.groups) == q.shape[-2]),
     "plan must be made for as many tokens as there are"),
    ("Compression", lambda self, old: old.shape[1] % self.rate == 0,
     "the number of places in old must be a multiple of the rate"),
    ("calibrate", lambda losses: losses.dim() == 2 and losses.numel() > 0,
     "losses must hold at least one number, and have the shape (settings, texts)"),
    ("attention_squares", lambda weights: all(
        -1e-3 <= float(weight) <= 1.001 for row in weights for weight in row),
     "weights must lie between 0 and 1"),
    ("bars", lambda shares: len(shares) > 0, "shares must hold at least one"),
    ("sentences", lambda named: len(named) > 0, "named must hold at least one"),
    ("moments", lambda sources, told: len(sources) > 0 < len(told),
     "sources and told must hold at least one"),
    ("table", lambda columns: len(columns) > 0, "columns must hold at least one heading"),
    ("attention_squares", lambda rows, columns: len(rows) > 0 < len(columns),
     "rows and columns must hold at least one label"),
    ("line_chart result_grid", lambda x, y: x != y, "x and y must be different"),
    ("bars", lambda shares: all(0 <= x <= 1 for _, x in shares),
     "each share must lie between 0 and 1"),
    ("curve", lambda points: all(0 <= number < math.inf for point in points for number in point),
     "points must be pairs of finite numbers, 0 or more: both axes begin at 0"),
    ("curve", lambda points, beside=None: len(points) > 0 and all(
        map(any, zip(*points, *(beside or ("", ()))[1], strict=True))),
     "points must hold an x above 0, and a y above 0: the axes end at the largest"),
    ("FeatureAttention", lambda features: features in ("elu", "rfa", "performer"),
     "features must be 'elu', 'rfa' or 'performer'"),
    ("from_dict", lambda cls: isinstance(cls, type) and dataclasses.is_dataclass(cls),
     "cls must be the class of a configuration, such as TrainConfig"),
    ("noun_phrase", lambda noun: noun.gender in (0, 1, 2) or f"noun.gender is {noun.gender!r}",
     "it must be 0 (masculine), 1 (feminine) or 2 (neuter)"),
    ("noun_phrase", lambda case: case in ("nominative", "accusative", "dative"),
     "case must be 'nominative', 'accusative' or 'dative'"),
    ("load answers", lambda name: name.strip() != "",
     "name must be that of a data set of the hub, or of a folder"),
    ("moments", lambda sources, told: all(len(texts) == len(sources) for _, texts in told),
     "told must hold, for each moment, a text for each of sources"),
    ("unpack", _entry,
     "entry must be from the table of a file of export_live, and data the bytes after it"),
    ("build_tokenizer", lambda data: len(data["kind"]) > 0 and isinstance(data["tokens"], list)
     and all(isinstance(token, str) for token in data["tokens"])
     and len({*data["tokens"]}) == len(data["tokens"]) or f"data is {describe(data)}",
     "its 'tokens' must be a list of strings, each there once"),
    ("differences with_current_defaults", lambda config=None, run=None: all(
        isinstance((run if config is None else config).get(part, {}), dict)
        for part in ("model", "train", "data")),
     "its 'model', 'train' and 'data' must be dictionaries, as in the config.json of a run"),
    ("SinusoidalEncoding LearnedEncoding SinusoidalEncoding.add LearnedEncoding.add Embed",
     lambda x: x.dim() == 3, "x must have the shape (batch, tokens, d_model)"),
    ("StateMixer.step", lambda self, x, state: state is None or state.shape == (
        len(x), self.n_heads, *(w.out_features // self.n_heads for w in (self.w_k, self.w_v))),
     "state must be what step of the same mixer returned for as many texts, (B, H, M, K)"),
    ("LiveCurve", lambda y: not isinstance(y, (list, tuple)) or len({*y}) == len(y),
     "y must name each metric once"),
    ("LiveCurve", lambda y: y != "", "y must name a metric, such as 'loss'"),
    ("result_grid", lambda number: _formats(number),
     "number must be a format of numbers, such as '.0%' or '.2f'"),
    ("result_grid", lambda domain: domain[0] < domain[1],
     "domain must be (lowest, highest), the first below the second"),
    ("DamagedBatches", lambda texts, tags: len(texts) == len(tags), "each text needs a tag"),
    ("two_tags translation_batches validation_loss stream_batches",
     lambda sources, targets: len(sources) == len(targets),
     "there must be as many targets as sources"),
    ("random_lengths", lambda total, parts: 1 <= parts <= total,
     "parts must be at least 1 and at most total: each part has a length of 1 or more"),
    ("shuffle_patches plan_blocks",
     lambda order: order.sort().values.tolist() == list(range(len(order))),
     "order must hold each number from 0 to len(order) - 1 once"),
    ("Counting", lambda texts: texts.dim() == 2 and texts.numel() > 0,
     "texts must have the shape (texts, tokens)"),
    ("Counting", lambda self, ids: ids.shape[1:] == self.texts.shape[1:],
     "ids must have the length of the texts"),
    ("compare_runs", lambda spread: spread is None or (
        0 <= spread[0] < math.inf and 0 <= spread[1] < math.inf and len(spread) == 2),
     "spread must be (standard deviation, degrees of freedom), as pooled_spread gives it"),
    ("sign_flip_p", lambda differences: all(
        isinstance(x, Real) and math.isfinite(x) for x in differences),
     "differences must be finite numbers"),
    ("MultiHeadAttention.split_heads", lambda self, x: x.dim() == 3 and x.size(-1) in (
        self.w_q.out_features, self.w_k.out_features) or (
        f"x is {describe(x)}, where a token has {self.w_q.out_features} numbers"),
     "x must have the shape (batch, tokens, d_model), or n_kv_heads * d_head numbers a token"),
    ("MultiHeadAttention.share_heads", lambda self, x: (
        x.dim() == 4 and x.size(1) * self.d_head == self.w_k.out_features),
     "x must have the shape (batch, n_kv_heads, tokens, d_head)"),
    ("MultiHeadAttention.join_heads", lambda self, x: (
        x.dim() == 4 and x.size(1) * x.size(3) == self.w_o.in_features),
     "x must have the shape (batch, heads, tokens, d_head), as split_heads gives it"),
    ("edit_distance", lambda a, b: isinstance(a, str) == isinstance(b, str),
     "a and b must be of one kind: two strings, or two lists of words"),
    ("SideBySideLanguageModel DeepLanguageModel", lambda config: config.positional == "none" or (
        f"config.positional is {config.positional!r}"),
     'it must be "none": each layer brings positions of its own'),
    ("all_logits", lambda ids: len(ids) == 1, "ids must be of one text, (1, T)"),
    ("layers_to_hear_all", lambda mask: mask.dtype == torch.bool,
     "mask must be bool, True = may attend"),
    ("layers_to_hear_all", lambda mask: mask.dim() > 2 and mask.shape[-1] == mask.shape[-2],
     "mask must have the shape (..., T, T), with an axis before these two, as as_mask gives it"),
    ("BatchNorm", lambda x: x.dim() > 1, "x must have the shape (batch, tokens, d_model)"),
    ("keep_likeliest KeepByChance", lambda logits, guesses, q: (
        len(logits) == len(guesses) + 1 and (q is None or len(q) == len(guesses))),
     "logits must have one row more than there are guesses, and q, unless None, one for each"),
    ("make_positions", lambda hooks: set(hooks) <= {"add", "turn", "bias"},
     "hooks must be among 'add', 'turn' and 'bias'"),
    ("Datastore.nearest", lambda self, n: 1 <= n <= len(self.keys),
     "n must be at least 1 and at most the number of keys"),
    ("run_by_hand", lambda texts: len(texts) > 0 and len({len(text) for text in texts}) == 1,
     "there must be at least one text, and all must have the same length"),
    ("run_by_hand", lambda texts, letters: set("".join(texts)) <= set(letters)
     and len(set(letters)) == len(letters),
     "texts must be written in letters, each of which is given once"),
    ("Exits.logits",
     lambda self, model, depth: depth <= len(self.maps) + 1 == len(model.decoder.layers),
     "model must have as many decoder layers as the exits are made for, and depth at most that"),
    ("RewardModel Classifier", lambda ids: bool((ids != 0).any(-1).all()),
     "each row of ids must hold a token besides padding"),
    ("start_from", lambda pretrained: hasattr(pretrained, "embedding"),
     "pretrained must be an encoder, such as a MaskedLanguageModel"),
    ("restore", lambda source, target, first_gap: not target or target[0] >= first_gap and {
        token for token in source if token >= first_gap} <= set(target),
     "target must begin with a gap, and hold each gap of source, as span_corruption gives them"),
    ("balance_loss", lambda probabilities, chosen: len(probabilities) == len(chosen) and bool(
        (chosen.sort(-1).values.diff(dim=-1) > 0).all()),
     "chosen must hold for each token the numbers of k different experts, from 0, not one-hot"),
    ("exchange", lambda stack: all(hasattr(layer, "self_attention") for layer in stack.layers)
     if hasattr(stack, "layers") else False,
     "stack must have layers with a self_attention, such as model.encoder or model.decoder"),
    ("MixedMemory reads_layers", lambda mixture: mixture is None or bool(
        (mixture >= 0).all() & ((mixture.sum(-1) - 1).abs() < 1e-3).all()),
     "each row of mixture must hold shares that sum to 1"),
    ("bleu_from_counts", lambda counts: np.shape(counts)[-1] == 10 and all(
        0 <= row[i] <= row[i + 4] for row in np.reshape(counts, (-1, 10)) for i in range(4)
    ) or f"counts is {[*counts]}"[:120],
     "counts must be 10: 4 matches, 4 totals at least as large, and the two lengths"),
    ("learn", lambda model, faster: set(faster or ()) <= {
        name.split(".")[-1] for name, _ in model.named_parameters()}
     and all(0 <= times < math.inf for times in (faster or {}).values()),
     "faster must name parameters by their last part, with factors of 0 or more: {'weight': 2.0}"),
    ("train", lambda model, tokenizer, loss=None: hasattr(model, "config") and (
        loss is not None or takes(model, 2)),
     "model must have a config and take (src_ids, tgt_ids), as a Transformer does; of a "
     "DataParallel, give .module"),
    ("train fit", lambda model, config: (first := next(iter(model.parameters()))).dtype in (
        torch.float32, torch.float64) and not first.is_meta or f"model holds {describe(first)}",
     "model must hold float32 numbers: use .float(), and build it on a device other than meta"),
    ("make_optimizer Muon", lambda model: any(p.requires_grad for p in model.parameters()),
     "model must have a parameter that is trained (requires_grad)"),
    ("train", lambda loss: loss is None or takes(loss, 2, smoothing=0.0),
     "loss must take (model, batch, smoothing=...), as translation_loss does"),
    ("train_policies", lambda n_updates, keep: all(0 <= n <= n_updates for n in keep),
     "keep must hold numbers of updates, from 0 to n_updates"),
    ("SharpMixer", lambda gate: gate in SHARP, f"gate must be {' or '.join(map(repr, SHARP))}"),
    ("Recaller", lambda gate: gate in SHARP or not gate.startswith("softmax"),
     f"gate must be a name of GATES, or {' or '.join(map(repr, SHARP))}"),
    ("StateMixer SharpMixer", lambda d_model, n_heads: d_model % n_heads == 0,
     "d_model must be a multiple of n_heads"),
    ("shift", lambda images: images.shape[1:] == (1, 8, 8), "images must be (N, 1, 8, 8)"),
    ("shift_batch", lambda images: images.shape[-2:] == (8, 8), "images must be (N, C, 8, 8)"),
    ("to_texts", lambda ids: ids.dim() == 2, "ids must have the shape (texts, tokens)"),
    ("AdaptiveSteps", lambda layer: takes(layer.forward, 2),
     "layer must take (x, mask), as an EncoderLayer does"),
    ("LatentAttention bytes_per_token", lambda turned: turned >= 0 and turned % 2 == 0,
     "turned must be even, or 0: rotary positions turn pairs of numbers"),
    ("draw", lambda n_facts, size=math.inf, names=64: n_facts <= min(size / 2, names),
     "n_facts must be at most the number of names (64 by default), and size / 2 where there is a "
     "size: each fact has a name and a place of its own, and each question a place"),
    ("Transformer", lambda src_ids, tgt_ids: not src_ids.dim() == tgt_ids.dim() == 1,
     "src_ids and tgt_ids must have the shape (batch, tokens): .unsqueeze(0) makes a batch of one"),
    ("Transformer", lambda self, src_ids, src_mask: self.config.n_encoder_layers == 0 or _mask(
        "src_mask", src_mask, src_ids, self),
     "masks.padding_mask(src_ids) makes one"),
    ("Transformer", lambda self, tgt_ids, tgt_mask: _mask("tgt_mask", tgt_mask, tgt_ids, self),
     "masks.decoder_mask(tgt_ids) makes one"),
    ("label_smoothed_cross_entropy", lambda logits, targets: logits.shape[:-1] == targets.shape or (
        f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} do not fit: logits need "
        "the shape of targets plus one axis for the vocabulary"), "it must be the last"),
    ("label_smoothed_cross_entropy", lambda targets: not (
        targets.is_floating_point() or targets.dtype == torch.bool),
     "targets must be whole numbers: use .long() if they are"),
    ("label_smoothed_cross_entropy sequence_loss", lambda smoothing: 0 <= smoothing <= 1 or (
        f"smoothing is {smoothing!r}"), "it must be in [0, 1]"),
    ("label_smoothed_cross_entropy", _targets,
     "targets must be ids below the last size of logits, or ignore_index (where padding is -100, "
     "give ignore_index=-100)"),
    ("padding_share", lambda lengths, batches: all(
        0 <= sentence < len(lengths) for batch in batches for sentence in batch),
     "batches must hold numbers of sentences, 0 to len(lengths) - 1"),
    ("breakdown", lambda keys: not isinstance(keys, str) and len({*map(type, keys)}) <= 1,
     "keys must be a list, all of one type such as str: the groups are sorted by them"),
    ("translation_loss r_drop_loss", lambda batch: len(batch) == 2 and batch[1][:, 1:].any(),
     "batch must be (src_ids, tgt_ids), and tgt_ids hold a token after <bos>"),
    ("joined", lambda maps: len({one.in_features for one in maps}) == 1,
     "maps must have the same in_features"),
    ("read_segment", lambda self, memories: len(memories) in (0, len(self.decoder.layers)),
     "memories must hold one for each layer, as the segment before gave them"),
    ("greedy_decode sample beam_search n_best",
     lambda src_ids: bool((src_ids != 0).any(-1).all()) or not src_ids.numel(),
     "each row of src_ids must hold a token besides padding"),
    ("speculative_decode", lambda draft: takes(getattr(draft, "propose", None), 2),
     "draft must have propose(ids, n), as a ModelDraft and a TableDraft have"),
    ("speculative_decode", lambda target: hasattr(target, "start"),
     "target must decode, as a Transformer or a LanguageModel does"),
    ("add_gates Agent", lambda gate: not isinstance(gate, nn.Module),
     "gate must be a class, such as GruGate, not a gate that is built"),
    ("greedy_decode sample beam_search n_best ModelDraft",
     lambda model, src_ids: hasattr(model, "step") or f"model is {describe(model)}",
     "model must decode, with start and step, as a Transformer or a LanguageModel does"),
    ("accuracy train", lambda data: len(data.images) == len(data.labels) > 0,
     "data must hold a picture, and a label for each"),
    ("routing_attention", lambda q, k, members: members <= min(q.size(-2), k.size(-2)),
     "members must be at most the number of tokens"),
    ("RelativeBias distance_bucket", lambda both_ways=True, n_buckets=32: (
        n_buckets >= (4 if both_ways else 2)),
     "n_buckets must be at least 2 for each direction"),
    ("RelativeBias distance_bucket", lambda both_ways=True, n_buckets=32, max_distance=128: (
        max_distance > n_buckets // (4 if both_ways else 2)),
     "max_distance must be above half the buckets of one direction: those take one distance "
     "each, and the other half the longer ones"),
    ("ReplacedTokens", lambda config, small: config.vocab_size == small.vocab_size or (
        f"the vocabularies are {config.vocab_size} and {small.vocab_size}"),
     "config and small must have the same vocab_size"),
    ("as_mixture", lambda feed_forward: hasattr(feed_forward, "expand"),
     "feed_forward must be a FeedForward"),
    ("fourier_features positive_features", lambda directions: directions.dim() == 2,
     "directions must be a matrix, with a direction in each row"),
    ("scan", lambda k, v, state: state is None or (
        state.shape == (*k.shape[:2], k.shape[-1], v.shape[-1])),
     "state must have the shape (B, H, M, K), as scan returned it"),
    ("ReversibleStack", lambda layers: len(layers) > 0 and all(
        hasattr(layer, "inverse") for layer in layers) or f"layers holds {describe(layers)}",
     "there must be at least one, and each must take two streams and have an inverse, as a "
     "ReversibleLayer does"),
    ("span_corruption text_infilling", lambda ids, first_gap=math.inf: all(
        i < first_gap for i in ids) or f"ids holds {max(ids)}, and first_gap is {first_gap}",
     "first_gap must be above every id: from there on, ids stand for gaps"),
    ("compression_loss", lambda kind: kind in ("attention", "auto"),
     'kind must be "attention" or "auto"'),
    ("compression_loss", lambda self: None not in self.passed or "nothing has been read yet",
     "read a segment first: the loss is that of its compression"),
    ("run_by_hand", lambda layers: all(
        isinstance(head, (list, tuple)) and len(head) == 2 for layer in layers for head in layer)
     or f"layers is {describe(layers)}",
     "each layer must be a list of heads, and each head a pair of dictionaries, scores and values"),
    ("run_by_hand", lambda layers, readout: not (wrong := [
        weight for entries in [*(part for layer in layers for head in layer for part in head),
                               readout]
        for weight in entries.values() if not isinstance(weight, Real)]) or (
        f"a weight is {describe(wrong[0])}"), "every weight must be a number"),
    # The program on one page.
    ("Transformer Layer Stack", lambda d_model, n_heads=4: d_model % 2 == d_model % n_heads == 0,
     "d_model must be even, and a multiple of n_heads"),
    ("make_pairs", lambda shortest=2, longest=5: 0 < shortest <= longest,
     "shortest must be at least 1 and at most longest"),
    ("split", lambda pairs, held_out: 0 <= held_out < len(pairs) or (
        f"held_out is {held_out}, and there are {len(pairs)} pairs"),
     "held_out must leave a pair to train on"),
    ("Training score", lambda pairs: len(pairs) > 0, "pairs must hold at least one"),
    ("train", lambda training, steps: steps > training.step or (
        f"steps is {steps}, and {training.step} updates have been made"),
     "steps must be above the updates made so far"),
    ("translate", lambda sources: not isinstance(sources, str),
     "sources must be a list of lists of letters"),
    ("beam_search", lambda log_probs, beam_size=4, max_len=12: min(beam_size, max_len) >= 1 or (
        f"beam_size is {beam_size}, max_len {max_len}"), "both must be at least 1"),
    ("beam_translate", lambda source: len(source) > 0, "source must hold a letter"),
    ("main", lambda updates: updates >= 100, "updates must be at least 100"),
    ("milliseconds compare_on", lambda translators: len(translators) > 0,
     "translators must hold at least one"),
    ("compare_on", lambda pairs: len(pairs) > 0, "pairs must hold at least one pair"),
    ("milliseconds", lambda texts: len(texts) > 0, "texts must hold at least one text"),
    ("ProgressBar", lambda total, done: done <= total, "done must be at most total"),
    ("Watch", lambda curve: hasattr(curve, "_add"), "curve must be a visualize.LiveCurve"),
    ("Watch.tokens_per_second", lambda self: len(self.speeds) > 0 or "no speed is known yet",
     "hand it an entry of the log first"),
    ("Watch.utilisation", lambda self: len(self.speeds) > 0 or not self.peak or (
        "no speed is known yet"), "hand it an entry of the log first"),
    ("speculative_decode", lambda src_ids: len(src_ids) == 1,
     "src_ids must hold one source, (1, S)"),
    ("TableDraft", lambda texts: any(texts), "texts must hold a token"),
    ("largest", lambda logits, k: k <= logits.shape[-1],
     "k must be at most the number of logits in a row"),
    ("run_card", lambda pairs, split="test": split in pairs,
     "pairs must hold the split that is asked for: name one that it has, as in split='test'"),
    ("decode Decoder", _layers,
     "cache must have as many layers as the decoder: make one with new_cache()"),
    (OF_SEGMENTS, lambda self, segments: segments is None or self.segments is not None,
     "segments are given to a model that knows none: build it with n_segments=2"),
    (OF_SEGMENTS, lambda ids, segments: segments is None or segments.shape == ids.shape,
     "segments must have the shape of ids"),
)
# The same, asked once the function has failed: a cause, which may take a call to find.
CAUSES = (
    ("greedy_decode sample beam_search n_best ModelDraft",
     lambda model, src_ids: takes(model.step, 2)
     and isinstance(model.start(src_ids, 1), tuple) and describe(model.step(*model.start(
         src_ids, 1))).startswith(f"a tensor ({len(src_ids)}, {model.config.vocab_size})"),
     "model.start must return (ids, state), and model.step(ids, state) logits (B, V), those of the "
     "token that comes next"),
    ("sample sampled", lambda temperature: 1e-30 <= temperature <= 1e30,
     "temperature must be a number that logits can be divided by, such as 0.7: to take the "
     "likeliest token, use greedy_decode"),
    ("in_batches", lambda decode, sources: all(
        len([*decode(torch.ones(n, 3).long())]) == n for n in (1, 2)),
     "decode must return B results for src_ids (B, S), one for each source"),
    ("play", lambda choose, n_episodes: describe(choose(SimpleNamespace(
        states=torch.zeros(n_episodes, 1, 4), actions=torch.zeros(n_episodes, 1).long(),
    ))) == f"a tensor ({n_episodes},) of int64", "choose must return actions, (n_episodes,) int64"),
    ("play", lambda choose, n_episodes: bool((choose(SimpleNamespace(
        states=torch.zeros(n_episodes, 1, 4), actions=torch.zeros(n_episodes, 1).long(),
    )) < 2).all()), "choose must return actions that are 0 or 1"),
    ("CompiledModel.start DecodingModel.start", lambda src_ids: src_ids.dim() == 2,
     "src_ids must have the shape (batch, tokens)"),
    ("sentence_pairs", lambda texts: len(texts) > 1, "texts must hold at least two"),
    ("start_from", lambda model, pretrained: (
        [p.shape for p in model.encoder.parameters()]
        == [p.shape for p in pretrained.encoder.parameters()]),
     "the two must have the same sizes: build both from one ModelConfig"),
    ("shuffle_patches", lambda images, order, patch=2: (
        len(order) == images.size(-1) * images.size(-2) // patch ** 2),
     "order must have a number for each patch"),
    ("ModelDraft.propose", lambda self, ids: not self.pieces or max(ids) < len(self.pieces),
     "pieces must have an entry for each token that the target may write"),
    ("to_texts", lambda ids: not ids.numel(), "ids must be those of words in vocabulary()"),
    ("LiveCurve", lambda ghost: all(hasattr(entry, "get") for entry in ghost),
     "ghost must hold dictionaries, as runs.files.read_json_lines reads them from metrics.jsonl"),
    ("AdaptiveSteps", lambda self, x, mask=None: isinstance(
        found := self.layer(x, mask), Tensor) and found.shape == x.shape or (
        f"layer returned {describe(found)} for {describe(x)}"),
     "layer must return a tensor of the shape of what it is given"),
    ("answer_loss right_by_distance share_right arrival_loss", lambda batch: len(batch) in (3, 4),
     "batch must be what draw of the same module returns"),
    ("translation_loss r_drop_loss", lambda model: takes(model, 2),
     "model must take (src_ids, tgt_ids), as a Transformer does"),
    ("pad", lambda sequences: len(sequences) > 0, "sequences must hold at least one"),
    ("padding_share", lambda batches: any(batches), "batches must hold at least one sentence"),
    ("to_dict", lambda config: dataclasses.is_dataclass(config) and not isinstance(config, type),
     "config must be a BlockConfig, a ModelConfig or a TrainConfig, such as TrainConfig()"),
    ("latent", lambda old, size: size <= old.w_k.in_features, "size must be at most d_model"),
    ("accuracy train", lambda data: data.images.dim() == 4, "images must be (N, C, height, width)"),
    ("Muon", lambda adam: {*adam} <= {*inspect.signature(torch.optim.Adam).parameters}
     and isinstance(adam.get("lr", 0), Real),
     "adam must hold settings of torch.optim.Adam, such as lr=0.001 (a number), betas and eps"),
    ("validation_loss", lambda sources, targets: len(sources) > 0 and all(
        len(ids) > 1 for ids in targets),
     "sources must hold at least one, and each of targets a token after <bos>"),
)


def _miscounted(x: Tensor, n: int) -> str:
    wrong = x[(x < 0) | (x >= n)].tolist()
    return wrong and f"holds {wrong[0]}; each number must be at least 0 and below {n}"


def _too_wide(x: Tensor, n: int) -> str:
    return x.shape[-1] != n and f"is {describe(x)}; its last size must be {n}"


def require_relation(function: str, given: dict, relations=RELATIONS) -> None:
    """Raise ValueError if these arguments break a rule of COUNTED, WIDTHS or relations."""
    for problem, table in ((_miscounted, COUNTED), (_too_wide, WIDTHS)):
        for names, argument, path, what in table:
            if function not in names.split():
                continue
            try:
                said = problem(torch.as_tensor(given[argument]), int(f"{{{path}}}".format(**given)))
            except Exception:
                continue  # there is no bound yet, or nothing to compare with it
            if said:
                raise ValueError(f"{function}: {argument} {said}, {what}.")
    for names, holds, sentence in relations:
        if not {function, function.rpartition(".")[2]} & {*names.split()}:
            continue
        known = inspect.signature(holds).parameters
        needed = {key for key, found in known.items() if found.default is found.empty}
        told = {key: given[key] for key in known if key in given}
        try:
            held = not needed <= told.keys() or holds(**told)
        except Exception:
            continue  # of another kind altogether: the function fails on it, and says so
        if isinstance(held, str):
            raise ValueError(f"{function}: {held}; {sentence}.")
        if not held:
            told.pop("self", None)
            shown = [f"{key} is {describe(value)}" for key, value in told.items()]
            raise ValueError(f"{function}: {'; '.join([', '.join(shown), sentence][not shown:])}.")


def within(
    default=dataclasses.MISSING,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    one_of: Iterable[str] = (),
):
    """A field of a dataclass with its limits, which `require_limits` checks and `--help` reads."""
    limits = {"at_least": at_least, "above": above, "at_most": at_most, "below": below}
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    return dataclasses.field(default=default, metadata=limits | {"one_of": one_of})


def choices(field: dataclasses.Field) -> tuple[str, ...]:
    """The values that a field may have, where they can be listed."""
    return tuple(field.metadata.get("one_of", ()))  # as they are now: a scheme may be added


def require_limits(config) -> None:
    """Raise ValueError, naming the field, for a value outside the limits that its field declares.

    A field that is None has no limits; in a tuple, each number has them.
    """
    for field in dataclasses.fields(config):
        given, known = getattr(config, field.name), choices(field)
        if known and given not in known:
            raise ValueError(f"{field.name} is {given!r}; it must be one of {known}.")
        numbers = given if isinstance(given, tuple) else (given,)
        if given is not None and not all(_inside(x, field.metadata) for x in numbers):
            each = f"{len(numbers)} numbers, each " if isinstance(given, tuple) else ""
            limits = _in_words(field.metadata)
            raise ValueError(f"{field.name} is {given!r}; it must be {each}{limits}.")


def _inside(x, limits) -> bool:
    return (
        x >= limits.get("at_least", x)
        and x <= limits.get("at_most", x)
        and ("above" not in limits or x > limits["above"])
        and ("below" not in limits or x < limits["below"])
    )


def _in_words(limits) -> str:
    """ "at least 1 and at most 1,000", for example."""
    words = {"at_least": "at least", "above": "above", "at_most": "at most", "below": "below"}
    return " and ".join(
        f"{words[name]} {limits[name]:,}" for name in words if name in limits
    ).replace("above -inf and below inf", "finite").replace("below inf", "finite")
