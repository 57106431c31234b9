"""What a user might type by mistake, written without a look at the guards: each call is refused in
a sentence of this library's own, or gives something sensible. Nothing ends the process."""

import gzip
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import tiny_config, tiny_model
from torch import nn

import transformer_lib
from transformer_lib import (
    ModelConfig,
    TrainConfig,
    Transformer,
    Translator,
    attention,
    batching,
    cache,
    data,
    decoding,
    evaluation,
    example,
    fast,
    load_pretrained,
    masks,
    normalization,
    optimizers,
    positional,
    run_size,
    schedule,
    tokenization,
    training,
    visualize,
)
from transformer_lib.beyond import (
    caches,
    caption_grammar,
    corridor,
    diffusion,
    encoders,
    experts,
    families,
    far_links,
    flash,
    memory,
    neighbours,
    preferences,
    sparse,
    speculative,
    states,
)
from transformer_lib.config import BlockConfig
from transformer_lib.corpora import labelled
from transformer_lib.embeddings import TokenEmbedding
from transformer_lib.fast import decoding as fast_decoding
from transformer_lib.feed_forward import FeedForward
from transformer_lib.loss import label_smoothed_cross_entropy
from transformer_lib.models.classifier import Classifier
from transformer_lib.models.vision_transformer import VisionTransformer
from transformer_lib.optimizers import Muon
from transformer_lib.runs import (
    card,
    checkpoint,
    checksums,
    device,
    download,
    export,
    files,
    lock,
    processes,
    recipes,
    speed,
)
from transformer_lib.scoring import verdict

NAN, INF = math.nan, math.inf
IDS, X = torch.tensor([[4, 5, 2]]), torch.randn(2, 3, 8)
LOGITS, TARGETS = torch.randn(2, 3, 9), torch.tensor([[4, 5, 2], [4, 2, 0]])


@pytest.fixture(scope="module")
def model():
    return tiny_model().float()


@pytest.fixture(scope="module")
def tokenizer():
    return tokenization.train_tokenizer(["ein Hund", "a dog"], 40)


@pytest.fixture(scope="module")
def translator():
    return load_pretrained("multi30k-de-en-short")


def config(**changes):
    return lambda **_: ModelConfig(20, **({"d_model": 8, "n_heads": 2, "d_ff": 8} | changes))


def run(**changes):
    return lambda **_: TrainConfig(**changes)


def vision(patch):
    return VisionTransformer(BlockConfig(8, 2, 8, 1, 1), 3, patch)


def pipe(folder, name="pipe"):
    os.mkfifo(folder / name)  # nobody writes to it: reading would wait without end
    return folder / name


def text(folder):
    (folder / "text").write_text("x")
    return folder / "text"


def dead_link(folder):
    (folder / "train.jsonl").symlink_to("/nowhere")
    return folder


def packed(folder):
    (folder / "train.jsonl").write_bytes(gzip.compress(b'{"de": "ein Hund", "en": "a dog"}\n'))
    return folder


def written(folder, name, content):
    (folder / name).write_bytes(content)
    return str(folder)


def comma(folder):
    """A sentence with a comma: pandas takes the first column for names, and another for German."""
    (folder / "train.csv").write_text("de,en\nein Hund,a dog,b\n")
    return folder


mha = attention.MultiHeadAttention(8, 2)
sdpa = attention.scaled_dot_product_attention
REFUSED = {
    # sizes
    "vocabulary of 0": lambda **_: ModelConfig(0),
    "vocabulary as text": lambda **_: ModelConfig("5000"),
    "vocabulary of 10^12": lambda **_: ModelConfig(10**12),
    "heads that do not divide": config(d_model=10, n_heads=3),
    "no heads": config(n_heads=0),
    "half a head": config(n_heads=2.5),
    "negative width": config(d_ff=-8),
    "layers by the billion": config(n_encoder_layers=10**9),
    "dropout of 1": config(dropout=1.0),
    "dropout in percent": config(dropout=30),
    "dropout nan": config(dropout=NAN),
    "unknown norm": config(norm="group"),
    "norm in capitals": config(norm="Layer"),
    "unknown positions": config(positional="relative"),
    "positions None": config(positional=None),
    "unknown activation": config(activation="silu"),
    "base inf": config(positional="rotary", rotary_base=INF),
    "base 0": config(positional="rotary", rotary_base=0),
    "odd rotary head": config(d_model=6, n_heads=2, positional="rotary"),
    "odd sinusoids": config(d_model=7, n_heads=1),
    "eps inf": config(eps=INF),
    "eps 0": config(eps=0.0),
    "kv heads 3 of 2": config(n_kv_heads=3),
    "padding id 1": config(pad_id=1),
    "length 0": config(max_len=0),
    "unknown field": lambda **_: ModelConfig(20, heads=2),
    "rms as bool": config(norm=True),
    # training settings
    "no steps": run(max_steps=0),
    "steps as 1e4": run(max_steps=1e4),
    "rate 0": run(peak_lr=0),
    "rate negative": run(peak_lr=-1e-3),
    "rate nan": run(peak_lr=NAN),
    "rate as text": run(peak_lr="1e-3"),
    "one beta": run(betas=(0.9,)),
    "three betas": run(betas=(0.9, 0.98, 0.99)),
    "beta of 1": run(betas=(0.9, 1.0)),
    "smoothing 1": run(label_smoothing=1),
    "clip negative": run(clip_norm=-1),
    "unknown schedule": run(schedule="cosine"),
    "unknown optimizer": run(optimizer="adamw"),
    "half precision": run(precision="fp16"),
    "seed -1": run(seed=-1),
    "seed huge": run(seed=2**64),
    "average more than kept": run(average=11, keep_checkpoints=10),
    "decay with muon": run(optimizer="muon", weight_decay=0.1),
    "batches of 0 tokens": run(max_tokens=0),
    # the model
    "ids as floats": lambda model, **_: model(IDS.float(), IDS),
    "ids without a batch": lambda model, **_: model(IDS[0], IDS[0]),
    "id outside": lambda model, **_: model(torch.tensor([[99]]), IDS),
    "negative id": lambda model, **_: model(torch.tensor([[-1]]), IDS),
    "batches that differ": lambda model, **_: model(IDS.repeat(2, 1), IDS),
    "a list of ids": lambda model, **_: model([[4, 5]], IDS),
    "NumPy ids": lambda model, **_: model(np.array([[4, 5]]), IDS),
    "None": lambda model, **_: model(None, IDS),
    "a text": lambda model, **_: model("Hund", "dog"),
    "too long": lambda model, **_: model(torch.full((1, 99), 4), IDS),
    "mask of floats": lambda model, **_: model(IDS, IDS, torch.ones(1, 1, 1, 3)),
    "mask of another length": lambda model, **_: model(IDS, IDS, torch.ones(1, 1, 1, 7).bool()),
    "memory of another width": lambda model, **_: model.decode(IDS, torch.randn(1, 3, 5)),
    "config as dict": lambda **_: Transformer({"vocab_size": 20}),
    "config None": lambda **_: Transformer(None),
    "ids of bools": lambda model, **_: model(IDS.bool(), IDS),
    # attention, masks
    "q and k of other widths": lambda **_: sdpa(X, torch.randn(2, 3, 5), X),
    "k and v of other lengths": lambda **_: sdpa(X, X, torch.randn(2, 7, 8)),
    "values None": lambda **_: sdpa(X, X, None),
    "float mask": lambda **_: sdpa(X, X, X, torch.ones(3, 3)),
    "mask as list": lambda **_: sdpa(X, X, X, [[True]]),
    "dropout 2": lambda **_: sdpa(X, X, X, dropout_p=2.0),
    "width of 9, 2 heads": lambda **_: attention.MultiHeadAttention(9, 2),
    "0 heads": lambda **_: attention.MultiHeadAttention(8, 0),
    "input of another width": lambda **_: mha(torch.randn(2, 3, 9), torch.randn(2, 3, 9)),
    "input without a batch": lambda **_: mha(torch.randn(3, 8), torch.randn(3, 8)),
    "padding of floats": lambda **_: masks.padding_mask(IDS.float() + 0.5, pad_id="0"),
    "padding of a list": lambda **_: masks.padding_mask([[4, 0]], 0),
    "causal of -3": lambda **_: masks.causal_mask(-3),
    "causal of a tensor": lambda **_: masks.causal_mask(IDS),
    "decoder mask from -2": lambda **_: masks.decoder_mask(IDS, start=-2),
    "sparse ids": lambda **_: masks.padding_mask(IDS.to_sparse(), 0),
    # layers
    "norm of 0": lambda **_: normalization.LayerNorm(0),
    "norm of 8, input of 6": lambda **_: normalization.LayerNorm(8)(torch.randn(2, 6)),
    "norm with eps -1": lambda **_: normalization.LayerNorm(8, eps=-1),
    "norm with eps nan": lambda **_: normalization.RMSNorm(8, eps=NAN),
    "layer_norm with eps -1": lambda **_: normalization.layer_norm(
        X, torch.ones(8), torch.zeros(8), eps=-1
    ),
    "feed-forward of 0": lambda **_: FeedForward(16, 0),
    "feed-forward of -4": lambda **_: FeedForward(-4, 8),
    "classes -3": lambda **_: Classifier(tiny_config(), n_classes=-3),
    "classes 0": lambda **_: Classifier(tiny_config(), n_classes=0),
    "embedding of 0": lambda **_: TokenEmbedding(20, 0),
    "rotary of nan": lambda **_: positional.RotaryEmbedding(8, NAN),
    "rotary of an odd head": lambda **_: positional.RotaryEmbedding(7),
    "alibi of 0 heads": lambda **_: positional.AlibiBias(0),
    "sinusoids of 7": lambda **_: positional.SinusoidalEncoding(7),
    # loss, schedule, optimizers
    "targets of another length": lambda **_: label_smoothed_cross_entropy(LOGITS, IDS, 0.1, 0),
    "targets outside": lambda **_: label_smoothed_cross_entropy(LOGITS, TARGETS + 90, 0.1, 0),
    "smoothing 2": lambda **_: label_smoothed_cross_entropy(LOGITS, TARGETS, 2.0, 0),
    "smoothing nan": lambda **_: label_smoothed_cross_entropy(LOGITS, TARGETS, NAN, 0),
    "targets as floats": lambda **_: label_smoothed_cross_entropy(LOGITS, TARGETS / 2, 0.1, 0),
    "step -3": lambda **_: schedule.learning_rate(TrainConfig(), -3, 128),
    "step as text": lambda **_: schedule.noam("1", 128, 100),
    "warm-up -1": lambda **_: schedule.inverse_sqrt(1, 1e-3, -1),
    "cooldown at nan": lambda **_: schedule.cooldown(NAN, 100, 10),
    "width 0": lambda **_: schedule.noam(1, 0, 100),
    "momentum 2": lambda model, **_: Muon(model, momentum=2),
    "Muon of nothing": lambda **_: Muon(None),
    # tokens, batches
    "vocabulary of 4": lambda **_: tokenization.train_tokenizer(["a"], 4),
    "vocabulary of 2^31": lambda **_: tokenization.train_tokenizer(["a"], 2**31),
    "vocabulary of a million and one": lambda **_: tokenization.train_tokenizer(["a"], 10**6 + 1),
    "kind unigram": lambda **_: tokenization.train_tokenizer(["a"], 50, "unigram"),
    "no text": lambda **_: tokenization.train_tokenizer([], 50),
    "blank text": lambda **_: tokenization.train_tokenizer([" ", ""], 50),
    "text as one string": lambda **_: tokenization.train_tokenizer("a dog", 50),
    "texts as numbers": lambda **_: tokenization.train_tokenizer([1, 2], 50),
    "tokenizer nowhere": lambda **_: tokenization.load_tokenizer("/nowhere/tokenizer.json"),
    "tokenizer from a folder": lambda **_: tokenization.load_tokenizer("/tmp"),
    "encode a string": lambda tokenizer, **_: tokenization.encode_source(tokenizer, 5),
    "pad numbers": lambda **_: batching.pad([1, 2]),
    "pad text": lambda **_: batching.pad("ab"),
    "batches of -1": lambda **_: batching.TokenBatchSampler([(3, 3)], max_tokens=-1),
    "sentence over the budget": lambda **_: list(
        batching.TokenBatchSampler([(30, 30)], max_tokens=8)
    ),
    # data
    "folder nowhere": lambda **_: data.load_parallel("/nowhere"),
    "folder of a home": lambda **_: data.load_parallel("~/nowhere-at-all"),
    "language fr of mini": lambda **_: data.load_parallel("mini", "fr", "en"),
    "source None": lambda **_: data.load_parallel(None, "de", "en"),
    # decoding
    "beam of 0": lambda model, **_: decoding.beam_search(model, IDS, beam_size=0, max_len=5),
    "beam of 2.5": lambda model, **_: decoding.beam_search(model, IDS, beam_size=2.5, max_len=5),
    "length -1": lambda model, **_: decoding.greedy_decode(model, IDS, max_len=-1),
    "length as text": lambda model, **_: decoding.greedy_decode(model, IDS, max_len="5"),
    "penalty nan": lambda model, **_: decoding.beam_search(
        model, IDS, max_len=5, length_penalty=NAN
    ),
    "temperature 0": lambda model, **_: decoding.sample(model, IDS, max_len=5, temperature=0),
    "temperature nan": lambda model, **_: decoding.sample(model, IDS, max_len=5, temperature=NAN),
    "top_k 0": lambda model, **_: decoding.sample(model, IDS, max_len=5, top_k=0),
    "top_p 2": lambda model, **_: decoding.sample(model, IDS, max_len=5, top_p=2.0),
    "top_p 0": lambda model, **_: decoding.sample(model, IDS, max_len=5, top_p=0.0),
    "decode a text": lambda model, **_: decoding.greedy_decode(model, "Hund", max_len=5),
    "decode with no model": lambda **_: decoding.greedy_decode(None, IDS, max_len=5),
    # the translator
    "one string": lambda translator, **_: translator.translate("Ein Hund."),
    "a number": lambda translator, **_: translator.translate([5]),
    "None in the list": lambda translator, **_: translator.translate([None]),
    "beam 0 for a text": lambda translator, **_: translator.translate(["Hund"], beam_size=0),
    "a novel": lambda translator, **_: translator.translate(["Hund " * 999]),
    "run nowhere": lambda **_: load_pretrained("multi30k-fr-en"),
    "run of 5,000 letters": lambda **_: load_pretrained("a" * 5000),
    "run on device gpu": lambda **_: load_pretrained("multi30k-de-en-short", device="gpu"),
    # scores
    "score a string": lambda **_: evaluation.score("a dog", "a dog"),
    "score unequal": lambda **_: evaluation.score(["a"], ["a", "b"]),
    "score nothing": lambda **_: evaluation.score([], []),
    "score numbers": lambda **_: evaluation.score([1], [2]),
    "resample 0 times": lambda **_: evaluation.bootstrap(["a b"], ["a b"], n=0),
    "resample 1.5 times": lambda **_: evaluation.bootstrap(["a b"], ["a b"], n=1.5),
    "metric accuracy": lambda **_: evaluation.bootstrap(["a"], ["a"], metric="accuracy"),
    "words of letters": lambda **_: evaluation.rare_word_counts("abc", "abc"),
    "buckets of -5": lambda **_: evaluation.length_bucket("a dog", -5),
    # runs, files
    "seed as text": lambda **_: device.set_seed("x"),
    "seed 2^80": lambda **_: device.set_seed(2**80),
    "device None": lambda **_: device.pick_device(None),
    "device gpu": lambda **_: device.pick_device("gpu"),
    "device meta": lambda **_: device.pick_device("meta"),
    "save None": lambda tmp_path, **_: checkpoint.save_weights(tmp_path / "w", {"a": None}),
    "weights nowhere": lambda **_: checkpoint.load_weights("/nowhere/model.safetensors"),
    "exported from a folder": lambda **_: export.load_exported("/tmp"),
    "model into a file": lambda model, **_: checkpoint.save_model("/etc/hostname", model),
    "train on nothing": lambda model, tokenizer, tmp_path, **_: training.train(
        model, tokenizer, {"train": []}, TrainConfig(max_steps=1), run_dir=tmp_path
    ),
    "train on strings": lambda model, tokenizer, tmp_path, **_: training.train(
        model, tokenizer, {"train": ["a", "b"]}, TrainConfig(max_steps=1), run_dir=tmp_path
    ),
    "train with half a character": lambda model, tokenizer, tmp_path, **_: training.train(
        model, tokenizer, {"train": [("\ud800", "a")]}, TrainConfig(max_steps=1), run_dir=tmp_path
    ),
    # a second round, by somebody who had not read the guards
    "patches of 0": lambda **_: vision(0),
    "patches of 10^9": lambda **_: vision(10**9),
    "positions by the billion": lambda **_: positional.LearnedEncoding(8, 2**50),
    "sinusoids to -3": lambda **_: positional.SinusoidalEncoding(8, -3),
    "a table of 2^45": lambda **_: positional.sinusoidal_table(2**45, 8),
    "alibi of 2^40 heads": lambda **_: positional.AlibiBias(2**40),
    "embedding of 2^45": lambda **_: TokenEmbedding(2**45, 8),
    "cache of 2^60 layers": lambda **_: cache.DecoderCache(2**60),
    "cache of -1 layers": lambda **_: cache.DecoderCache(-1),
    "causal of 10^7": lambda **_: masks.causal_mask(10**7),
    "causal on a gpu": lambda **_: masks.causal_mask(3, device="gpu"),
    "decoder mask from 2^60": lambda **_: masks.decoder_mask(IDS, start=2**60),
    "momentum nan": lambda **_: normalization.BatchNorm(8, momentum=NAN),
    "an unknown norm": lambda **_: normalization.make_norm("group", 8),
    "norm of whole numbers": lambda **_: normalization.layer_norm(
        TARGETS, torch.ones(3), torch.zeros(3)
    ),
    "attention of ids": lambda **_: sdpa(IDS, IDS, IDS),
    "attention of scalars": lambda **_: sdpa(*[torch.tensor(1.0)] * 3),
    "attention in two precisions": lambda **_: sdpa(X, X.double(), X),
    "complex ids": lambda model, **_: model.encode(IDS.to(torch.complex64)),
    "a training configuration as model": lambda **_: Transformer(TrainConfig()),
    "temperature inf": lambda model, **_: decoding.sample(model, IDS, temperature=INF),
    "6 of 5": lambda **_: fast.decoding.largest(torch.zeros(1, 5), 6),
    "batches of -1 tokens": lambda **_: decoding.in_batches(list, [[4, 2]], -1),
    "decode with a linear map": lambda **_: decoding.greedy_decode(nn.Linear(2, 2), IDS),
    "rounds by the billion": lambda **_: optimizers.orthogonalize(torch.eye(3), 10**12),
    "a vector made orthogonal": lambda **_: optimizers.orthogonalize(torch.zeros(3)),
    "Muon of no weights": lambda **_: Muon(nn.Identity()),
    "rate nan in a schedule": lambda **_: schedule.inverse_sqrt(1, NAN, 10),
    "a million million batches added": run(accumulate=10**14),
    "resample 10^12 times": lambda **_: evaluation.bootstrap(["a"], ["a"], n=10**12),
    "resample from seed -1": lambda **_: evaluation.bootstrap(["a"], ["a"], seed=-1),
    "two counts": lambda **_: evaluation.bleu_from_counts([1, 2]),
    "keys that are lists": lambda **_: evaluation.breakdown(["a"], ["a"], [[1]]),
    "a run that diverged": lambda **_: verdict.compare_runs([1, NAN], [1, 2]),
    "a set of sentences": lambda translator, **_: translator.translate({"Hund"}),
    "half a character": lambda translator, **_: translator.translate(["\udcff Hund"]),
    "half a character to learn": lambda **_: tokenization.train_tokenizer(["a \ud800"], 50),
    "tokenizer and model swapped": lambda translator, **_: Translator(
        translator.tokenizer, translator.model
    ),
    "tokenizer in a pipe": lambda tmp_path, **_: tokenization.load_tokenizer(pipe(tmp_path)),
    "weights in a pipe": lambda tmp_path, **_: checkpoint.load_weights(pipe(tmp_path)),
    "pad nothing": lambda **_: batching.pad([]),
    "an id of 2^70": lambda **_: batching.pad([[2**70]]),
    "a sentence of -1 tokens": lambda **_: batching.TokenBatchSampler([-1], 10),
    "batches from seed 2^99": lambda **_: batching.TokenBatchSampler([5], 10, seed=2**99),
    "batch 5 of 1": lambda **_: batching.padding_share([(1, 2)], [[5]]),
    "validate on nothing": lambda model, **_: training.validation_loss(model, [], []),
    "validate unequal": lambda model, **_: training.validation_loss(
        model, [[4, 2]], [[1, 2], [1, 2]]
    ),
    "German to German": lambda **_: data.load_parallel("mini", "de", "de"),
    "a source of 5,000 letters": lambda **_: data.load_parallel("a" * 5000),
    "a source with NUL": lambda **_: data.load_parallel("a\0"),
    "data in a pipe": lambda tmp_path, **_: data.load_parallel(
        pipe(tmp_path, "train.jsonl").parent
    ),
    "data behind a dead link": lambda tmp_path, **_: data.load_parallel(dead_link(tmp_path)),
    "packed data": lambda tmp_path, **_: data.load_parallel(packed(tmp_path)),
    "labels of None": lambda **_: labelled.load_labelled(None, "text"),
    "device xla": lambda **_: device.pick_device("xla"),
    "precision None": lambda **_: device.uses_bf16(None, torch.device("cpu")),
    "processes on gpu": lambda **_: processes.Processes("gpu"),
    "save a list": lambda tmp_path, **_: checkpoint.save_weights(tmp_path / "w", [IDS]),
    "save as float99": lambda tmp_path, **_: checkpoint.save_weights(
        tmp_path / "w", {"a": X}, dtype="float99"
    ),
    "save over a folder": lambda tmp_path, **_: checkpoint.save_weights(tmp_path, {"a": X}),
    "load texts as weights": lambda model, **_: checkpoint.load_state(
        model, dict.fromkeys(model.state_dict(), "x"), "here"
    ),
    "checkpoints nowhere": lambda **_: checkpoint.average(["nowhere"]),
    "fetch ../x": lambda **_: download.fetch("../x"),
    "card of no run": lambda **_: card.run_card("nowhere", {"test": [("a", "b")]}, list),
    "lock below a file": lambda tmp_path, **_: lock.RunLock(text(tmp_path)).acquire(),
    "lock that is a pipe": lambda tmp_path, **_: lock.RunLock(
        pipe(tmp_path, "lock").parent
    ).acquire(),
    "products of 10^9": lambda **_: speed.product_speed(
        10**9, 10**9, 10**9, torch.device("cpu")
    ),
    # figures
    "matrix of letters": lambda **_: visualize.matrix([["a"]]),
    "matrix of unequal rows": lambda **_: visualize.matrix([[1], [1, 2]]),
    "heat map with too few tokens": lambda **_: visualize.attention_heatmap(
        torch.rand(2, 3), ["a"], ["b", "c", "d"]
    ),
    "image that is not there": lambda **_: visualize.show_image("nothing", alt="Nothing."),
    # a third round, over Parts V and VI and what lies around a run
    "window of 0": lambda **_: caches.WindowCache(0),
    "sinks -1": lambda **_: caches.WindowCache(4, -1),
    "0 bits": lambda **_: caches.QuantisedCache(0),
    "99 bits in a byte": lambda **_: caches.QuantisedCache(99),
    "half a bit": lambda **_: caches.QuantisedCache(2.5),
    "quantise nan": lambda **_: caches.quantise(torch.full((2, 3), NAN), 4),
    "quantise along a seventh axis": lambda **_: caches.quantise(X, 4, dim=7),
    "a latent of 0": lambda **_: caches.LatentAttention(16, 4, latent=0),
    "3 turned numbers": lambda **_: caches.LatentAttention(16, 4, latent=8, turned=3),
    "groups of 0": lambda **_: caches.quantised_bits(4, 0),
    "bytes of a dict": lambda **_: caches.bytes_per_token({"d_model": 4}),
    "bits below 0": lambda **_: caches.bytes_per_token(tiny_config(), bits=-4),
    "convert to a name": lambda model, **_: caches.convert(model, "window"),
    "convert with a slip": lambda model, **_: caches.convert(
        model, caches.WindowAttention, widow=3
    ),
    "keys without values": lambda **_: cache.KeyValueCache().append(
        torch.rand(1, 2, 5, 4), torch.rand(1, 2, 3, 4)
    ),
    "a cache of another depth": lambda model, **_: model.decode(
        IDS, model.encode(IDS), cache=cache.DecoderCache(5)
    ),
    "segments for a model without": lambda **_: Classifier(tiny_config(), 2)(IDS, IDS * 0),
    "more facts than names": lambda **_: states.draw(2, 100, None),
    "facts told 0 times": lambda **_: states.draw(2, 5, torch.Generator(), n_told=0),
    "more facts than places": lambda **_: far_links.draw(2, 10, 20, torch.Generator()),
    "chunks of 0": lambda **_: states.by_chunks(*torch.rand(5, 1, 2, 4, 3), size=0),
    "0 experts": lambda **_: experts.MixtureOfExperts(tiny_config(), 0),
    "experts with a slip": lambda **_: experts.ExpertLanguageModel(tiny_config(), 4, hashd=True),
    "a router of 0": lambda **_: experts.FixedRouter(0),
    "a mixture of None": lambda **_: experts.as_mixture(None, tiny_config()),
    "price 0 of a preference": lambda **_: preferences.dpo_loss(*torch.zeros(4, 3), price=0),
    "price nan of a preference": lambda **_: preferences.dpo_loss(*torch.zeros(4, 3), price=NAN),
    "preferences of other lengths": lambda **_: preferences.reward_loss(
        torch.zeros(3), torch.zeros(2)
    ),
    "10^12 texts": lambda **_: preferences.write_texts(None, 10**12),
    "masks beyond certain": lambda **_: diffusion.mask_at(IDS, torch.tensor([1.5]), 3),
    "sure beyond certain": lambda model, **_: diffusion.fill_in(model, IDS, 2, "sure", 3.0),
    "a blank of 0": lambda **_: diffusion.blank(0, 5, 3),
    "captions below 0": lambda **_: caption_grammar.captions(-1),
    "a caption of other words": lambda **_: caption_grammar.to_ids(["Zebra quux"]),
    "a table of order 0": lambda **_: speculative.TableDraft([[4, 5]], 0),
    "agreement over 1": lambda **_: speculative.tokens_a_pass(1.5, 4),
    "a draft that pays": lambda **_: speculative.speed_up(3.0, 4, -1, 1),
    "no draft": lambda model, **_: speculative.speculative_decode(model, None, IDS, 2),
    "chance by a number": lambda **_: speculative.KeepByChance(5),
    "rolled back by a number": lambda **_: speculative.roll_back(5, 2),
    "a residual sandwich": lambda **_: corridor.small_agent("sandwich"),
    "more neighbours than keys": lambda **_: neighbours.Datastore(
        torch.rand(3, 4), torch.tensor([1, 2, 3])
    ).nearest(torch.rand(1, 4), 9),
    "keys without tokens": lambda **_: neighbours.Datastore(torch.rand(3, 4), torch.tensor([1])),
    "tiles of 0": lambda **_: flash.flash_attention(*torch.rand(3, 1, 1, 4, 4), 0),
    "a stride of 0": lambda **_: sparse.strided(0),
    "a mask of 10^7": lambda **_: sparse.as_mask(sparse.local(2), 10**7),
    "temperature 0 of a teacher": lambda **_: encoders.distillation_loss(X, X, 0.0),
    "weights of another family": lambda **_: families.from_llama({}, tiny_config()),
    "no differences": lambda **_: verdict.sign_flip_p([]),
    "arms by name": lambda **_: verdict.pooled_spread({"a": {0: 1.0}}),
    "epoch -1": lambda **_: batching.TokenBatchSampler([3], 10).set_epoch(-1),
    "a lock nowhere": lambda tmp_path, **_: lock.RunLock(tmp_path / "nowhere").acquire(),
    "a lock of None": lambda **_: lock.RunLock(None),
    "an object as JSON": lambda tmp_path, **_: files.write_json(tmp_path / "x", object()),
    "half a character as text": lambda tmp_path, **_: files.write_text(tmp_path / "x", "\ud800"),
    "weights in a list": lambda model, **_: checkpoint.load_state(model, [1], "here"),
    "a model of None": lambda tmp_path, **_: checkpoint.save_model(tmp_path / "x", None),
    "weights named 1": lambda tmp_path, **_: checkpoint.save_weights(
        tmp_path / "x", {1: torch.ones(1)}
    ),
    "weights from a folder": lambda tmp_path, **_: checkpoint.load_weights(tmp_path),
    "export to None": lambda **_: export.export_live("multi30k-de-en-short", None),
    "train with model and tokenizer swapped": lambda model, tokenizer, **_: training.train(
        tokenizer, model, {"train": [("a", "b")]}, TrainConfig(max_steps=1)
    ),
    "score half a character": lambda **_: evaluation.score(["a\ud83d"], ["a"]),
    "a folder named like a file": lambda tmp_path, **_: (
        (tmp_path / "train.jsonl").mkdir(), data.load_parallel(str(tmp_path))
    ),
    "a norm of a list": lambda **_: normalization.make_norm(["layer"], 8),
    # a fourth and a fifth round
    "decode a number fast": lambda **_: fast.for_decoding(5),
    "train a text fast": lambda **_: fast.accelerate("m"),
    "a tokenizer laid out": lambda tokenizer, **_: fast.DecodingModel(tokenizer),
    "map with a number": lambda **_: fast_decoding.parallel_map(3, [1]),
    "nan in JSON": lambda tmp_path, **_: files.write_json(tmp_path / "x", {"loss": NAN}),
    "a smaller recipe with a slip": lambda **_: recipes.smaller(
        recipes.find("short"), {"d_modle": 16}, {}, 100
    ),
    "smaller training with a slip": lambda **_: recipes.smaller(
        recipes.find("short"), {}, {"max_step": 5}, 100
    ),
    "a language by its name": lambda **_: evaluation.lowercased_tokenised_bleu(
        ["a"], ["a"], "english"
    ),
    "tokens cut up by moses": lambda **_: evaluation.bleu([["a"]], [["a"]], tokenize="moses"),
    "written text": lambda **_: speculative.Written("abc"),
    "no arms": lambda **_: verdict.pooled_spread([]),
    "arms without a run": lambda **_: verdict.pooled_spread([{}, {}]),
    "a caption of a zebra": lambda **_: caption_grammar.to_ids(["a zebra is flying"]),
    "a caption of 17 words": lambda **_: caption_grammar.to_ids(["a " * 17]),
    "a list nowhere": lambda tmp_path, **_: checksums.write(tmp_path / "nowhere", ["a"]),
    "lines from nowhere": lambda tmp_path, **_: files.read_json_lines(tmp_path / "nowhere"),
    "a line into nowhere": lambda tmp_path, **_: files.append_json_line(
        tmp_path / "nowhere" / "x", {}
    ),
    "segments of 0": lambda **_: memory.by_segments(0, 3),
    "speed in -1 seconds": lambda **_: speed.product_speed(
        8, 8, 8, torch.device("cpu"), seconds=-1
    ),
    "a curve drawn often": lambda **_: visualize.LiveCurve(seconds="often"),
    "a word that the example lacks": lambda **_: example.ids(["elephant"]),
    "head 9 of the example": lambda **_: example.queries_keys_values(
        example.tiny_model(), head=9
    ),
    "a column too many": lambda tmp_path, **_: data.load_parallel(comma(tmp_path)),
    # of 354 more, those that were taken, or answered in the words of torch or Python
    "0 heads of keys": lambda **_: attention.MultiHeadAttention(8, 2, n_kv_heads=0),
    "a mask of no ids": lambda **_: masks.padding_mask(torch.rand(2, 3)),
    "a name of nothing": lambda **_: data.load_parallel(""),
    "more than there are": lambda **_: fast.decoding.largest(torch.rand(2, 5), 6),
    "a third segment of two": lambda **_: Classifier(tiny_config(), 3, n_segments=2)(
        IDS, torch.full_like(IDS, 2)
    ),
    "a card of -1 sentences": lambda tmp_path, **_: card.run_card(
        tmp_path, {"test": [("a", "b")]}, list, limit=-1
    ),
    "a card of no split": lambda tmp_path, **_: card.run_card(
        tmp_path, {"test": [("a", "b")]}, list, split="dev"
    ),
    "a file as rows": lambda **_: visualize.line_chart("metrics.jsonl", "step", "loss"),
    "layer 9 of 1": lambda **_: visualize.head_view(
        torch.full((1, 2, 2, 2), 0.5), ["a", "b"], layer=9
    ),
    "an infinite penalty for later": lambda model, tokenizer, **_: Translator(
        model, tokenizer, INF
    ),
    "two texts without a batch": lambda model, **_: model(IDS[0], IDS[0][:2]),
    "a target outside": lambda **_: label_smoothed_cross_entropy(
        LOGITS, torch.full_like(TARGETS, 9)
    ),
    "a sentence that is not there": lambda **_: batching.padding_share([(1, 1)], [[5]]),
    "keys of two kinds": lambda **_: evaluation.breakdown(["a", "b"], ["a", "b"], [1, "x"]),
    "nothing to choose from": lambda **_: run_size.choose(),
    "one choice too many": lambda **_: run_size.choose(1, 2, 3, 4),
    "a field of no name": lambda **_: ModelConfig(vocab=20),
    "a model of nothing": lambda **_: Transformer(),
    "labels and a column too many": lambda tmp_path, **_: labelled.load_labelled(
        written(tmp_path, "train.csv", b"text,label\na,b,1\n"), "text"
    ),
    "labels and a column too few": lambda tmp_path, **_: labelled.load_labelled(
        written(tmp_path, "train.csv", b"text,label\na,1\nb\n"), "text"
    ),
    "labels in Latin-1": lambda tmp_path, **_: labelled.load_labelled(
        written(tmp_path, "train.csv", b"text,label\n\xe4,1\n"), "text"
    ),
    "half a line of labels": lambda tmp_path, **_: labelled.load_labelled(
        written(tmp_path, "train.jsonl", b'{"text": "a", "label": 1}\n{"text": '), "text"
    ),
    "a label of no text": lambda tmp_path, **_: labelled.load_labelled(
        written(tmp_path, "train.jsonl", b'{"text": "a", "label": 1}\n{"label": 0}\n'), "text"
    ),
    "data of no name with labels": lambda **_: labelled.load_labelled("", "text"),
    "a folder as a model for the page": lambda tmp_path, **_: export.load_exported(tmp_path),
    "a pair that nobody sees": lambda tokenizer, tmp_path, **_: training.train(
        tiny_model(vocab_size=tokenizer.get_vocab_size()), tokenizer,
        {"train": [("\0", "\u200b")]}, TrainConfig(), tmp_path / "run",
    ),
    "weights of torch.save": lambda model, tmp_path, **_: (
        torch.save(model.state_dict(), tmp_path / "w"), checkpoint.load_weights(tmp_path / "w")
    ),
    "a run with another tokenizer": lambda model, tokenizer, tmp_path, **_: (
        checkpoint.save_model(tmp_path, model), tokenizer.save(str(tmp_path / "tokenizer.json")),
        load_pretrained(tmp_path),
    ),
    "a run's folder as a checkpoint": lambda tmp_path, **_: checkpoint.load_checkpoint(tmp_path),
    "a checkpoint that is not there": lambda tmp_path, **_: checkpoint.average(
        [tmp_path / "step-0000001"]
    ),
    "a checkpoint without its state": lambda tmp_path, **_: (
        (tmp_path / "step-0000001").mkdir(), checkpoint.read_state(tmp_path / "step-0000001"),
    ),
    "checkpoints of a file": lambda tmp_path, **_: checkpoint.checkpoints(text(tmp_path)),
    "a file as a run": lambda tmp_path, **_: checkpoint.load_model(text(tmp_path)),
    "a config that was edited": lambda model, tmp_path, **_: (
        checkpoint.save_model(tmp_path, model),
        written(tmp_path, "config.json", (tmp_path / "config.json").read_bytes().replace(
            b'"d_model": 16', b'"d_model": 32')),
        load_pretrained(tmp_path),
    ),
    "a run below a file": lambda tokenizer, tmp_path, **_: training.train(
        tiny_model(vocab_size=tokenizer.get_vocab_size()), tokenizer,
        {"train": [("a", "b")]}, TrainConfig(), text(tmp_path) / "run",
    ),
}
# More calls, one a line, as somebody would type them who has read the documentation and no guard.
SRC, TGT, Q = torch.tensor([[4, 5, 6, 7, 2]] * 2), torch.tensor([[1, 4, 5, 2]] * 2), X
CALLS = (Path(__file__).parent / "bad_inputs.txt").read_text("utf8").splitlines()
NAMES = vars(transformer_lib) | globals()
# And those whose answer once left out what is expected, with what it must say.
SAID = {
    "mha.join_heads(torch.rand(2, 5, 2, 4))": r"\(2, 5, 2, 4\).*must have .*heads, tokens, d_head",
    "mha.split_heads(torch.rand(2, 3, 4))": r"\(2, 3, 4\).*\(batch, tokens, d_model\)",
    "normalization.BatchNorm(8)(torch.rand(8))": r"must have the shape \(batch, tokens, d_model\)",
    "model.step(IDS, model.new_cache())": "state is a DecoderCache; expected a DecodingState",
    "model.project(IDS)": "hidden is .* of int64; expected numbers of a float type",
    "transformer_lib.config.to_dict(ModelConfig)": "is the class ModelConfig; .* such as TrainC",
    "checksums.require('nowhere', 'model.safetensors')": "there is no folder nowhere",
    "visualize.stills.moments(['ein Hund'], [('1', 'a dog')])": r"\(a string, a list of strings\)",
    "visualize.stills.moments(['a', 'b'], [('1', ['a'])])": "a text for each of sources",
    "visualize.sentences(['ab'])": r"each entry \(a string, a string\)",
    "visualize.bars([0.3, 0.7], 'halves')": r"each entry \(a string, a number\)",
    "scoring.sacre.statistics('meteor', ['a'], ['a'])": "one of bleu, chrf, ter",
    "corpora.mini.noun_phrase(None, 'genitive')": "'nominative', 'accusative' or 'dative'",
    "far_links.FeatureAttention(8, 2, features='exp')": "'elu', 'rfa' or 'performer'",
    "families.llama_config({'vocab_size': 9})": "'hidden_size', 'num_attention_heads', .*config.js",
    "families.gpt2_config({})": "'vocab_size', 'n_embd', 'n_head', 'n_layer', 'n_positions'",
    "training.train(model, tokenizer, [('a', 'b')])": r"dictionary: Split -> list of \(source, ",
    "card.run_card('nowhere', [('a', 'b')], list)": r"\{split: \[\(source, target\), ...\]\}",
    "verdict.pooled_spread({0: 1.0})": "expected a list .arms: a sequence of {seed: value}",
    "transformer_lib.config.from_dict(ModelConfig(5), {})": "is a ModelConfig; cls must be the",
    "transformer_lib.config.from_dict('ModelConfig', {})": "must be the class of a configuration",
    "transformer_lib.config.from_dict(nn.Linear, {})": "is the class Linear; cls must be the",
    "decoding.beam_search(model, IDS, beam_size=-5)": "must be at least 1",
    "ModelConfig(20, max_len=-4)": "max_len is -4; it must be at least 1 and",
    "ModelConfig(20, eps=-4)": "eps is -4; it must be above 0",
    "transformer_lib.blocks.init_weights([mha, mha])":
        "stacks holds a list of 2.*expected each as a Module, one by one, without",
    "sparse.any_of([len, len])": "rules holds .* without",
    "vision(4)(torch.zeros(2, 1, 8, 8).to(torch.uint8))": r"use .float\(\)",
    "decoding.greedy_decode(model, IDS.to(torch.int8))": r"ids must be int64: use .long\(\)",
    "training.r_drop_loss(model, (IDS, 3))": "batch is a tuple of 2, .* a list of tensors",
    "checkpoint.step_of(Path('run'))": "'run' is not a number.; expected step_of",
    "files.write_json('x', value=nn)": "expected write_json.*value: an object",
    "masks.causal_mask(3, 'hip')": "device is 'hip', which this machine does not have; it must",
    "masks.causal_mask(3, torch.device('hip'))": "device is 'hip', which this machine does not",
    "masks.causal_mask(3, 'auto')": "device is 'auto'; it must be 'cpu'",
    "batching.Batches([[[4, 2]]], [2], [1], 9, 0).tensors([0], 'hip')": "'hip', which this machine",
    "speed.product_speed(8, 8, 8, 'hip')": "device is 'hip', which this machine does not",
    "decoding.in_batches(list, [[4, 2]], 9, 'gpu')": "device is 'gpu'; it must be 'cpu'",
    "visualize.table(['', 'x'], ['ab', 'cd'])": r"rows is .*; expected a list of lists",
    "visualize.table('ab', [['a', 'b']])": "expected a list or a dictionary .columns: the headings",
    "visualize.result_grid(['ab'], 'x', 'y', 'z')": "rows is .*; expected a list of dictionaries",
    "visualize.guess('a', 'Which?', 'AB', 0, 'b')": "expected a list of strings",
    "verdict.compare_runs('12', '23')": "a is '12' .*expected a dictionary .* or a list of numbers",
    "batching.Batches(['ab'], [1], [1], 9, 0)": "columns is .*expected a list of lists.$",
    "corpora.hub.load('', 'de', 'en')": "name is ''.* data set of the hub, or of a folder",
}
REFUSED |= {call: eval(f"lambda model, tokenizer, **_: {call}", NAMES) for call in [*CALLS, *SAID]}
TOLD = {
    "labels and a column too many": "train.csv, line 2: 3 columns, but the first line names 2",
    "labels and a column too few": "train.csv, line 3: 1 columns, but the first line names 2",
    "labels in Latin-1": "train.csv, line 2: not valid UTF-8 text .* Convert the file",
    "half a line of labels": "train.jsonl, line 2: .* is not a JSON object",
    "a folder as a model for the page": "it is a folder; make one",
    "a run below a file": "is a file, not a folder.; choose another run folder",
    "a pair that nobody sees": "one side holds no visible text",
    "a run's folder as a checkpoint": "there is no checkpoint at .* give a folder such as RUN/ch",
    "a checkpoint that is not there": "there is no checkpoint at",
    "a checkpoint without its state": "step-0000001 is damaged",
    "checkpoints of a file": "text is a file; give the run's folder",
    "a file as a run": "text is a file; give the run's folder",
    "a config that was edited": "config.json that was written with them, and copy that again",
    "a label of no text": "row 2: no 'text'; every row needs both",
    "weights of torch.save": "another format.* read it with torch.load",
    "a run with another tokenizer": "tokenizer.json has .* config.json beside it reads .* copy",
} | SAID
# Python's and torch's own words for a failure inside.
RAW = re.compile(
    r"\w+(?:Error|Exception): |"
    r"^(?:mat1 and mat2|The size of tensor|index out of range|unsupported operand|Expected |"
    r"shape '|"
    r"'\w+' object |object of type|expected scalar|can't multiply|list index|invalid literal|"
    r"Dimension out of range|einsum|\[Errno|not enough values|too many values|could not convert|"
    r"cannot unpack|argument of type|integer division)"
)


@pytest.mark.timeout(60)  # a pipe may be waited for without end
@pytest.mark.parametrize("call", REFUSED)
def test_a_mistake_is_refused_in_a_sentence(call, model, tokenizer, request, tmp_path):
    given = {"model": model, "tokenizer": tokenizer, "tmp_path": tmp_path}
    if "translator" in REFUSED[call].__code__.co_varnames:
        given["translator"] = request.getfixturevalue("translator")
    with pytest.raises((ValueError, TypeError, OSError, RuntimeError)) as caught:
        REFUSED[call](**given)
    said = str(caught.value)
    assert "transformer_lib" in str(caught.traceback[-1].path), caught.traceback[-1].path
    assert len(said) > 25 and not RAW.search(said), said
    assert re.search(TOLD.get(call, ""), said), said


def test_there_are_enough_of_them():
    assert len(REFUSED) >= 200


@pytest.mark.parametrize("texts", [["", "   ", "\u200b"], ["", "Ein Hund.", ""]])
def test_an_empty_sentence_stays_empty(translator, texts):
    found = translator.translate(texts)
    for text, it in zip(texts, found, strict=True):
        assert bool(it.text) == ("Hund" in text)
    assert [it.text for it in found if it.text] == [
        it.text for it in translator.translate([text for text in texts if "Hund" in text])
    ]


def test_what_is_unusual_but_right_is_taken(translator, model):
    assert translator.translate([]) == []
    assert translator.translate(("Ein Hund.",))[0].text
    assert ModelConfig(np.int64(20), d_model=8, n_heads=2, d_ff=8).vocab_size == 20
    assert model(IDS.int(), IDS.int()).shape == (1, 3, 20)
    assert isinstance(device.pick_device("cpu"), torch.device)
    assert isinstance(Transformer(tiny_config(n_encoder_layers=0)), nn.Module)
