"""What a reader gets who says nothing: one name has one default, and a changed one is noticed."""

import collections
import dataclasses
import importlib
import inspect
import pkgutil

import torch

import transformer_lib
from transformer_lib import normalization, optimizers, positional

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(transformer_lib.__path__, "transformer_lib.")
    if not module.name.endswith("__main__")
]
PRINTED = [
    module for module in MODULES
    if module.__name__.count(".") == 1 or module.__name__.split(".")[1] in ("models", "fast")
]
# Arguments that stand in one place only, or differ there from the same name elsewhere: (what, why).
ALONE = {
    "attention.MultiHeadAttention": dict(dropout=0.0),  # of the weights: none in the paper
    "batching.Batches": dict(extra=0, extra_epochs=0),
    "batching.TokenBatchSampler": dict(shuffle=True),
    "blocks.make_attention": dict(to_itself=True),
    "config.from_dict": dict(where="the configuration"),
    "data.load_parallel": dict(source="auto", src="de", tgt="en"),
    "decoding.in_batches": dict(each=map, device="cpu"),
    "decoding.sample": dict(temperature=1.0),  # the model's own probabilities
    "embeddings.Embed": dict(norm=False),  # whether there is one; the configuration says which
    "embeddings.TokenEmbedding": dict(scale=True),  # sec. 3.4
    "evaluation.bleu": dict(tokenize="none"),
    "evaluation.length_bucket": dict(width=5),
    "evaluation.rare_word_counts": dict(at_most=5),
    "evaluation.sentence_scores": dict(metric="chrf"),  # BLEU means little for one sentence
    "example.queries_keys_values": dict(head=0),
    "fast.decoding.DecodingModel.train": dict(mode=True),
    "fast.decoding.for_decoding": dict(sentences=1, worth_compiling=200),
    "fast.decoding.largest": dict(width=100),
    "fast.training.OneDnnProducts.__torch_dispatch__": dict(args=()),
    "fast.training.products": dict(bf16=False, n_tokens=0),
    "models.vision_transformer.VisionTransformer": dict(channels=1),
    "normalization.BatchNorm": dict(momentum=0.1),  # of its statistics
    "one_file.Layer": dict(cross_attention=False),  # one class is both kinds of layer
    "one_file.MultiHeadAttention": dict(dropout=0.0),
    "one_file.Stack": dict(cross_attention=False),
    "one_file.Training": dict(batch_size=32, warmup=100),  # a task of a minute
    "one_file.Transformer": dict(
        vocab_size=12, d_model=32, n_heads=4, d_ff=64, n_layers=2, max_len=64
    ),
    "one_file.beam_search": dict(beam_size=4, max_len=12),
    "one_file.greedy_decode": dict(max_len=12),
    "one_file.main": dict(updates=600),
    "one_file.make_pairs": dict(shortest=2, longest=5),
    "one_file.train": dict(validate_every=50),
    "one_file.translate": dict(batch_size=16),
    "optimizers.Muon": dict(momentum=0.95),  # of gradients
    "optimizers.orthogonalize": dict(rounds=5),
    "positional.RotaryEmbedding": dict(base=10000.0),  # the configuration's rotary_base
    "tokenization.train_tokenizer": dict(kind="bpe"),
    "training.r_drop_loss": dict(smoothing=0.0, weight=1.0),
    "training.translation_loss": dict(smoothing=0.0),  # what validation reports
    "translator.Translator.translate": dict(attention=True, max_tokens=2048),
}


def arguments():
    """(where, name, default) of each argument with a default in the modules that pages print."""
    for module in PRINTED:
        for name, thing in vars(module).items():
            if getattr(thing, "__module__", None) != module.__name__:
                continue
            functions = {name: thing} if inspect.isfunction(thing) else {}
            if inspect.isclass(thing) and not dataclasses.is_dataclass(thing):
                functions = {
                    f"{name}.{key}".removesuffix(".__init__"): value
                    for key, value in vars(thing).items() if inspect.isfunction(value)
                }
            for short, function in functions.items():
                where = f"{module.__name__.removeprefix('transformer_lib.')}.{short}"
                for argument in inspect.signature(function).parameters.values():
                    if argument.default not in (argument.empty, None):
                        yield where, argument.name, argument.default


def configured() -> dict:
    """The defaults of the fields. `eps` is a norm's: Adam's is TrainConfig's own."""
    kinds = transformer_lib.TrainConfig, transformer_lib.ModelConfig  # the second's eps holds
    return {field.name: field.default for kind in kinds for field in dataclasses.fields(kind)}


def test_one_name_has_one_default():
    values = collections.defaultdict(dict)
    for where, name, default in arguments():
        if name not in ALONE.get(where, ()):
            values[name][where] = default
    for name in values.keys() & configured().keys():
        values[name]["the configuration"] = configured()[name]
    assert len(values["start"]) > 10, "the arguments are found"
    for name, found in values.items():
        assert len(found) > 1, f"{name} stands in one place only: {found}; write it into ALONE"
        assert len(set(map(repr, found.values()))) == 1, f"{name} has several defaults: {found}"


def test_what_stands_alone_is_as_promised():
    found = collections.defaultdict(dict)
    for where, name, default in arguments():
        if name in ALONE.get(where, ()):
            found[where][name] = default
    assert found == ALONE


def test_published_defaults():
    """Where torch has the same thing, a reader may expect the same."""
    def default(function, name):
        return inspect.signature(function).parameters[name].default

    base = default(positional.RotaryEmbedding, "base")
    assert base == transformer_lib.ModelConfig(vocab_size=9).rotary_base
    assert default(normalization.LayerNorm, "eps") == default(torch.nn.LayerNorm, "eps")
    for name in ("eps", "momentum"):
        assert default(normalization.BatchNorm, name) == default(torch.nn.BatchNorm1d, name)
    assert default(optimizers.Muon, "momentum") == default(torch.optim.Muon, "momentum")
    assert default(optimizers.orthogonalize, "rounds") == default(torch.optim.Muon, "ns_steps")


def test_results_and_configurations_cannot_be_changed():
    """All dataclasses are frozen, but for those that change while something runs."""
    changing = {"DecodingState", "RunCard", "TrainingState", "Written"}
    found = {
        thing
        for module in MODULES for thing in vars(module).values()
        if dataclasses.is_dataclass(thing) and isinstance(thing, type)
        and thing.__module__ == module.__name__
    }
    assert len(found) > 15, "the dataclasses are found"
    assert {kind.__name__ for kind in found if not kind.__dataclass_params__.frozen} == changing
