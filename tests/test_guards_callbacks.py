"""What the functions that `fit` calls return: nonsense is named, and the run's folder goes on."""

import math

import pytest
import torch
from tiny_run import MODEL, TRAIN, data

from transformer_lib import ModelConfig, TrainConfig, Transformer, schedule, training
from transformer_lib.loss import label_smoothed_cross_entropy
from transformer_lib.models.language_model import LanguageModel
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
    "a name that the log has": ({"validate": lambda: {"step": 1}}, "by the name 'step'; expected"),
    "a log of nothing": ({"on_log": lambda: None}, r"on_log is the function <lambda>\(\); expecte"),
    "data that is no JSON": ({"data_info": {"seen": {1}}}, "data_info is .* cannot be kept as JSO"),
    "a loss of logits": ({"loss": torch.nn.CrossEntropyLoss()},
                         r"loss is a CrossEntropyLoss, .*a Transformer stands where a tensor is"),
    "torch's loss": ({"loss": torch.nn.functional.cross_entropy}, "loss is the function cross_"),
    "a class of losses": ({"loss": torch.nn.CrossEntropyLoss}, "loss is the class CrossEn"),
    "the book's own loss of logits": ({"loss": label_smoothed_cross_entropy},
                                      r"does not work with .a Transformer, .* has no shape"),
    "a loss of two languages": ({"model": LanguageModel(ModelConfig(150, **MODEL))},
                                r"LanguageModel.forward takes other .* expected loss\(model"),
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
