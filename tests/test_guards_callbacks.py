"""What the functions that `fit` calls return: nonsense is named, and the run's folder goes on."""

import math
import types
from pathlib import Path

import pytest
import torch
from tiny_run import MODEL, TRAIN, data

from transformer_lib import ModelConfig, TrainConfig, Transformer, decoding, schedule, training
from transformer_lib.beyond import (
    caches,
    caption_grammar,
    corridor,
    denoising,
    diffusion,
    digits,
    far_links,
    gates,
    learning,
    one_stream,
    preferences,
    sparse,
    speculative,
)
from transformer_lib.encoder import Encoder
from transformer_lib.loss import label_smoothed_cross_entropy
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.runs.card import run_card
from transformer_lib.tokenization import encode_pairs

SETTINGS = TrainConfig(**(TRAIN | {"max_steps": 4, "validate_every": 2, "checkpoint_every": 2,
                                   "log_every": 2, "average": 1}))


def network():
    torch.manual_seed(0)
    return Transformer(ModelConfig(data()[1].get_vocab_size(), **MODEL))


def fit(folder, model=None, loss=training.translation_loss, **given):
    pairs, tokenizer = data()
    columns = encode_pairs(tokenizer, pairs["train"][:8])
    batches = training.translation_batches(*columns, SETTINGS.max_tokens, 0)
    return training.fit(model or network(), batches, loss, SETTINGS, folder, **given)


def of_the_loss(change):
    return {"loss": lambda model, batch: change(training.translation_loss(model, batch))}


NONSENSE = {
    "a loss without a gradient": (of_the_loss(lambda loss: loss.detach()),
                                  r"loss returned a tensor \(\) of float32 without a gradient; ex"),
    "a number": (of_the_loss(lambda loss: loss.item()), r"loss returned .*\(float\); expected a t"),
    "a loss for each sentence": (of_the_loss(lambda loss: torch.stack([loss] * 2)),
                                 r"loss returned a tensor \(2,\) .*with \.mean\(\)"),
    "a loss and more": (of_the_loss(lambda loss: (loss, {})), "loss returned a tuple of 2"),
    "a loss of the model alone": ({"loss": lambda model: 0}, r"loss is the function <lambda>\(mod"),
    "no rate": ({"rate": lambda *given: None}, "rate returned None .* for step 1; expected the le"),
    "a rate that climbs": ({"rate": lambda *given: -0.1}, "rate returned -0.1 .*0 or more"),
    "a rate that is no number": ({"rate": lambda *given: math.nan}, "rate returned nan"),
    "a rate of the step alone": ({"rate": lambda step: 0.1}, r"rate is the function <lambda>\(ste"),
    "a number of validation": ({"validate": lambda: 3.0}, "validate returned 3.0 .*a dictionary"),
    "words of validation": ({"validate": lambda: {"bleu": "12"}}, "'12' .str. as 'bleu'; expected"),
    "many numbers of validation": ({"validate": lambda: {"bleu": torch.ones(2)}},
                                   r"a tensor \(2,\) of float32 as 'bleu'; expected a number"),
    "a name that the log has": ({"validate": lambda: {"step": 1}}, "under the name 'step'; expect"),
    "a log of nothing": ({"on_log": lambda: None}, r"on_log is the function <lambda>\(\); expecte"),
    "data that is no JSON": ({"data_info": {"seen": {1}}}, "data_info is .* cannot be kept as JSO"),
    "a loss of logits": ({"loss": torch.nn.CrossEntropyLoss()},
                         r"loss is a CrossEntropyLoss, .*a Transformer where a tensor is"),
    "torch's loss": ({"loss": torch.nn.functional.cross_entropy}, "loss is the function cross_"),
    "a class of losses": ({"loss": torch.nn.CrossEntropyLoss}, "loss is the class CrossEn"),
    "the book's own loss of logits": ({"loss": label_smoothed_cross_entropy},
                                      r"does not work with .a Transformer, .* has no shape"),
    "a loss of two languages": ({"model": LanguageModel(ModelConfig(150, **MODEL))},
                                r"LanguageModel.forward takes different .* expected loss\(model"),
    "a rate of other numbers": ({"rate": schedule.noam}, "rate is the function noam.*expected"),
    "a model without settings": ({"model": torch.nn.Linear(2, 2)}, "model is a Linear without a c"),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_what_a_callback_returns_is_named_and_the_same_folder_goes_on(case, tmp_path):
    given, message = NONSENSE[case]
    with pytest.raises((ValueError, TypeError), match=message):
        fit(tmp_path / "run", **given)
    again = fit(tmp_path / "run")
    assert again[-1]["step"] == 4
    expected = fit(tmp_path / "other")
    for mine, other in zip(again, expected, strict=True):
        assert mine.get("loss") == other.get("loss")


def test_a_frozen_model_has_nothing_to_train(tmp_path):
    with pytest.raises(ValueError, match="model has no parameter to train"):
        fit(tmp_path, network().requires_grad_(False))
    assert not any(tmp_path.iterdir())


def test_a_loss_of_train_takes_smoothing(tmp_path):
    pairs, tokenizer = data()
    with pytest.raises(ValueError, match=r"loss must take \(model, batch, smoothing=..."):
        training.train(network(), tokenizer, pairs, SETTINGS, tmp_path, loss=lambda model, batch: 0)
    with pytest.raises(ValueError, match="loss is a CrossEntropyLoss; loss must take"):
        training.train(
            network(), tokenizer, pairs, SETTINGS, tmp_path, loss=torch.nn.CrossEntropyLoss()
        )


def test_an_error_from_within_a_loss_stays(tmp_path):
    def loss(model, batch):
        return torch.nn.functional.cross_entropy(model, batch)

    with pytest.raises(TypeError, match="must be Tensor, not Transformer"):
        fit(tmp_path, loss=loss)


def test_an_error_of_a_callbacks_own_stays_and_the_run_goes_on(tmp_path):
    def on_log(entry):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fit(tmp_path, on_log=on_log)
    assert fit(tmp_path)[-1]["step"] == 4


def test_numbers_of_any_kind_are_kept(tmp_path):
    import numpy as np

    found = {"a": np.float32(0.5), "b": torch.tensor(0.25), "c": 3, "d": torch.ones(1)}
    rates = [0.0, 1e-3, np.float64(1e-3), torch.tensor(1e-3)]
    metrics = fit(
        tmp_path, validate=lambda: found, rate=lambda config, step, d_model: rates[step - 1],
        loss=lambda model, batch, *more: training.translation_loss(model, batch)[None],
    )
    assert metrics[-1] == {"step": 4, "averaged": 1, "a": 0.5, "b": 0.25, "c": 3, "d": 1.0}


RUN = Path(__file__).parents[1] / "results" / "multi30k-de-en-short"
IDS = torch.tensor([[5, 6, 2]])
RULE = "rule(s)? returned .*; expected a bool tensor, True = may attend"


def ahead(propose, keep=speculative.keep_likeliest):
    class Draft:
        pass

    draft = Draft()
    draft.propose = propose
    return speculative.speculative_decode(network(), draft, IDS, 2, keep, max_len=4)


def shown(change):
    pictures = digits.Digits(torch.rand(9, 1, 8, 8), torch.arange(9))
    return digits.train(digits.conv_net(), pictures, 1, change=change)


def rewarded(reward):
    sizes = ModelConfig(len(caption_grammar.vocabulary()), **MODEL)
    return preferences.policy_gradient_loss(
        LanguageModel(sizes), LanguageModel(sizes), reward, 0.1, 4
    )


def damaged(damage):
    return denoising.DamagedBatches([[5, 6, 2]], [4], damage, 99, 0).tensors([0], "cpu")


def bare():
    return Transformer(ModelConfig(150, **(MODEL | {"positional": "none"})))


def after(update):
    return learning.learn(network(), lambda: network()(IDS, IDS).mean(), 1, 0.1, after=update)


def stream(decode):
    return one_stream.translate_streams(
        LanguageModel(ModelConfig(150, **MODEL)), [[5, 2]], decode=decode
    )


class Steps(torch.nn.Module):
    """A model that decodes, and says what it is told to."""

    def __init__(self, said):
        super().__init__()
        self.said, self.config = said, ModelConfig(20, **MODEL)

    def start(self, src_ids, bos_id, use_cache=True):
        return torch.full((len(src_ids), 1), bos_id), types.SimpleNamespace(length=0)

    def step(self, ids, state):
        return self.said


class WithTop(Steps):
    def top_tokens(self, ids, state, k, log_p):
        return None


RETURNED = [
    *[(lambda decode=decode, said=said: decode(Steps(said), IDS),
       r"model.step returned .*; expected logits \(B, V\)")
      for decode in (decoding.greedy_decode, decoding.sample, decoding.beam_search)
      for said in (None, torch.ones(1, 1, 20), torch.ones(1, 13), torch.ones(1, 20).long(),
                   torch.full((1, 20), math.nan))],
    (lambda: decoding.greedy_decode(WithTop(None), IDS), "model.top_tokens returned None"),
    *[(lambda rule=rule, call=call: call(rule), RULE)
      for rule in (lambda i, j: 5, lambda i, j: None, lambda i, j: [True], lambda i, j: i - j,
                   lambda i, j: torch.ones(3, 3).bool(), lambda i, j: True)
      for call in (lambda rule: sparse.as_mask(rule, 4),
                   lambda rule: sparse.plan_blocks(rule, 4, 2),
                   lambda rule: far_links.Links(4, rule),
                   lambda rule: sparse.as_mask(sparse.causal(rule), 4),
                   lambda rule: sparse.as_mask(sparse.any_of(sparse.local(1), rule), 4))],
    *[(lambda propose=propose: ahead(propose), r"draft.propose returned .*expected \(guesses, q\)")
      for propose in (lambda ids, n: None, lambda ids, n: [4] * n, lambda ids, n: ([4] * n,),
                      lambda ids, n: ([4] * (n + 1), None), lambda ids, n: ([], None),
                      lambda ids, n: (torch.ones(n).long(), None), lambda ids, n: (["a"] * n, None),
                      lambda ids, n: ([4] * n, [[0.1]]), lambda ids, n: ([4] * n, torch.ones(9)))],
    *[(lambda keep=keep: ahead(lambda ids, n: ([4] * n, None), keep),
       r"keep returned .*expected \(how many guesses stay, the token")
      for keep in (lambda *given: None, lambda *given: 2, lambda *given: (9, 5),
                   lambda *given: (-1, 5), lambda *given: (0.5, 5),
                   lambda *given: (torch.tensor(0), torch.tensor(5)))],
    (lambda: ahead(lambda ids, n: ([4] * n, None), "greedy"), "keep is 'greedy' .str.; expected a"),
    (lambda: ahead(lambda ids: ([4], None)), r"draft must have propose\(ids, n\)"),
    *[(lambda change=change: shown(change), "change returned .*expected as many pictures")
      for change in (lambda images: None, lambda images: images.numpy(), lambda images: images[:3],
                     lambda images: (images, images), lambda images: images.byte())],
    (lambda: shown("shift"), "change is 'shift' .str.; expected a function of .a tensor."),
    *[(lambda reward=reward: rewarded(reward), r"reward returned .*expected a tensor \(n,\) of fin")
      for reward in (lambda ids: None, lambda ids: 1.0, lambda ids: torch.tensor(1.0),
                     lambda ids: [1.0] * len(ids), lambda ids: torch.full((len(ids),), math.nan),
                     lambda ids: torch.ones(len(ids)).bool())],
    *[(lambda translate=translate: run_card(
        RUN, data()[0], translate, "validation"),
       "translate returned .*expected a list of strings, one for")
      for translate in (lambda texts: None, lambda texts: "ab", lambda texts: texts[1:],
                        lambda texts: (text for text in texts), lambda texts: [1] * len(texts))],
    *[(lambda damage=damage: damaged(damage), "damage returned .*expected two lists of ids")
      for damage in (lambda ids, rng: None, lambda ids, rng: ids, lambda ids, rng: "ab",
                     lambda ids, rng: (ids, ids, ids), lambda ids, rng: ([1.5], [2.5]))],
    *[(lambda made=made, name=name: caches.decoder_cache(network(), **{name: made}),
       f"{name} (returned|is) .*; expected a (cache, as|function without arguments)")
      for made in (lambda: None, list, lambda layer: None, torch.nn.Linear)
      for name in ("own", "memory")],
    (lambda: caches.convert(bare(), lambda old: None), "kind returned None .*an attention"),
    (lambda: caches.convert(bare(), "grouped"), "kind is 'grouped' .str.; expected a function"),
    (lambda: gates.add_gates(Encoder(bare().config), bare().config, lambda *given: None),
     "gate returned None .*expected a gate, such as a GruGate"),
    (lambda: after(lambda update: "stop"), "after returned 'stop' .*expected True to stop, or"),
    *[(lambda decode=decode: stream(decode), r"decode returned .*expected ids \(B, L\), a tensor")
      for decode in (lambda *given: None, lambda *given: [[1]], lambda *given: torch.ones(3))],
    (lambda: stream("greedy"), "decode is 'greedy' .str.; expected a function"),
    (lambda: corridor.walk(corridor.small_agent(), 1, 0.1, lambda agent: 1), "loss is the functio"),
    (lambda: diffusion.fill_in(network(), IDS, 2, watch=None), "watch is None .*a function of"),
]


@pytest.mark.parametrize(("call", "message"), RETURNED)
def test_what_a_function_that_is_handed_in_returns_is_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_a_function_that_is_handed_in_returns_what_it_should():
    assert ahead(lambda ids, n: ([4] * n, torch.ones(n, 150) / 150), speculative.KeepByChance())
    assert len(shown(lambda images: images.flip(-1))) == 1
    assert rewarded(lambda ids: torch.arange(len(ids))).requires_grad
    assert sparse.as_mask(lambda i, j: torch.tensor(True), 4).all()
    assert len(damaged(lambda ids, rng: (ids, ids))) == 2
    assert len(after(lambda update: torch.tensor(True))) == 1
