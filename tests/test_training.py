"""Training: it learns, it adds up, it says what went wrong. (Interruptions: test_resume.py.)"""

import dataclasses
import json
import math
import sys
from functools import partial

import pytest
import torch
from tiny_run import MODEL, TRAIN, contents, data, run, without_timings
from torch import nn

from transformer_lib import ModelConfig, TrainConfig, Transformer, schedule, training
from transformer_lib.batching import Batches
from transformer_lib.decoding import greedy_decode
from transformer_lib.evaluation import score
from transformer_lib.loss import label_smoothed_cross_entropy
from transformer_lib.runs import checkpoint
from transformer_lib.runs.device import pick_device, uses_bf16
from transformer_lib.runs.files import read_json_lines
from transformer_lib.runs.processes import Processes
from transformer_lib.runs.progress import Meter
from transformer_lib.runs.translation import translate_ids
from transformer_lib.tokenization import (
    encode_pairs,
    encode_source,
    encode_target,
    load_tokenizer,
    train_tokenizer,
)
from transformer_lib.training import TrainingDiverged, TrainingState

# Adam divides by the gradient's size: where the true gradient is 0 (a bias of the keys), an eps
# of 1e-9 turns rounding errors into full steps. Where sums are compared, eps is larger.
EPS = 1e-4


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    model, metrics = run(folder, max_steps=12, validation_bleu=True, average=3)
    return folder, model, metrics


# -------------------------------------------------------------------------------------- learning


def test_it_can_learn_a_handful_of_pairs_by_heart(tmp_path):
    pairs = data()[0]["train"][:6]
    few = {"train": pairs, "validation": pairs}
    words = train_tokenizer([text for pair in pairs for text in pair], 200, "word")
    model, metrics = run(
        tmp_path, pairs=few, tokenizer=words, d_model=32, d_ff=64, dropout=0.0, label_smoothing=0.0,
        max_steps=200, warmup=20, log_every=20, checkpoint_every=200, average=1,
        validate_every=200, validation_bleu=True,
    )
    assert metrics[-1]["validation_bleu"] == pytest.approx(100)
    losses = [entry["loss"] for entry in metrics if "loss" in entry]
    assert losses[0] > 1 and losses[-1] < 0.02
    sources = encode_source(words, [source for source, _ in few["train"]])
    written = translate_ids(model, words, sources)
    assert written == [target for _, target in few["train"]]


@pytest.mark.paper("3.1")
def test_the_loss_is_that_of_the_logits_whose_targets_are_one_place_ahead():
    tokenizer = data()[1]
    torch.manual_seed(0)
    sizes = dict(d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1)
    model = Transformer(ModelConfig(tokenizer.get_vocab_size(), **sizes)).double().eval()
    batches = training.translation_batches(
        encode_source(tokenizer, ["Hund", "Ein Mann schläft."]),
        encode_target(tokenizer, ["dog", "A man sleeps."]),
        max_tokens=50,
        seed=0,
    )
    src, tgt = batches.tensors([0, 1], "cpu")
    loss = training.translation_loss(model, (src, tgt), smoothing=0.1)
    expected = label_smoothed_cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:], 0.1)
    torch.testing.assert_close(loss, expected)
    assert batches.n_tokens([0, 1]) == (tgt[:, 1:] != 0).sum()


@pytest.mark.paper("5.3")
def test_one_update_is_adam_on_the_mean_over_the_global_batch(tmp_path):
    """The whole update by hand: logits, mean over all tokens of both batches, clip, Adam, rate."""
    pairs, tokenizer = data()
    settings = dict(dropout=0.0, max_steps=1, accumulate=2, clip_norm=0.5, average=1, eps=EPS)
    trained, metrics = run(tmp_path, **settings, validate_every=5)
    training.set_seed(0)
    by_hand = Transformer(trained.config)
    optimizer = torch.optim.Adam(by_hand.parameters(), lr=0, betas=(0.9, 0.98), eps=EPS)
    batches = training.translation_batches(
        encode_source(tokenizer, [s for s, _ in pairs["train"]]),
        encode_target(tokenizer, [t for _, t in pairs["train"]]),
        TRAIN["max_tokens"],
        seed=0,
    )
    loss, n = 0, 0
    for _, batch in zip(range(2), batches, strict=False):
        src, tgt = batches.tensors(batch, "cpu")
        logits, right = by_hand(src, tgt[:, :-1]), tgt[:, 1:]
        count = int((right != 0).sum())
        loss, n = loss + label_smoothed_cross_entropy(logits, right, 0.1) * count, n + count
    (loss / n).backward()
    norm = nn.utils.clip_grad_norm_(by_hand.parameters(), 0.5)
    optimizer.param_groups[0]["lr"] = schedule.inverse_sqrt(1, 5e-3, TRAIN["warmup"])
    optimizer.step()
    assert metrics[0]["loss"] == pytest.approx((loss / n).item(), rel=1e-5)
    assert metrics[0]["grad_norm"] == pytest.approx(float(norm), rel=1e-4)
    assert metrics[0]["tokens"] == n
    last = checkpoint.load_checkpoint(checkpoint.checkpoints(tmp_path)[-1])["model"]
    for name, value in by_hand.state_dict().items():
        if name in last:
            torch.testing.assert_close(last[name], value, atol=1e-5, rtol=1e-4)


def test_an_update_stands_alone():
    """One weight w and the loss (w - x)^2: its mean over all tokens, and a step of plain SGD."""
    model = nn.Linear(1, 1, bias=False).eval()
    nn.init.constant_(model.weight, 2.0)
    device, processes = torch.device("cpu"), Processes("cpu")
    state = TrainingState(
        model, torch.optim.SGD(model.parameters(), lr=9.0),
        Batches([[[1], [5], [7]]], [(1, 1)] * 3, [1] * 3, max_tokens=2, seed=0),
        Meter(processes, device),
    )
    norm = training.update(
        state, [[0, 1], [2]], lambda batch: ((model.weight - batch[0]) ** 2).mean(),
        lr=0.1, max_norm=3.0, processes=processes,
    )
    # The gradient is 2 (w - the mean of 1, 5 and 7), clipped from 4.67 to 3.
    assert float(norm) == pytest.approx(2 * (13 / 3 - 2))
    assert model.weight.item() == pytest.approx(2 + 0.1 * 3, rel=1e-5) and model.training
    assert state.meter.mean_loss() == pytest.approx((1 + 9 + 25) / 3) and state.meter.n_tokens == 3


def test_accumulated_batches_equal_one_big_batch(tmp_path):
    """Nine equal pairs in one batch, or one a batch and nine batches an update."""
    text = ("Ein Mann schläft.", "A man sleeps.")
    tokenizer = data()[1]
    length = max(
        len(encode_source(tokenizer, [text[0]])[0]), len(encode_target(tokenizer, [text[1]])[0])
    )
    same = {"train": [text] * 9}
    both = dict(pairs=same, dropout=0.0, max_steps=4, clip_norm=0.0, eps=EPS)
    _, big = run(tmp_path / "big", max_tokens=9 * length, **both)
    _, small = run(tmp_path / "small", max_tokens=length, accumulate=9, **both)
    assert [e["tokens"] for e in big if "loss" in e] == [e["tokens"] for e in small if "loss" in e]
    a = checkpoint.load_weights(tmp_path / "big/checkpoints/step-0000004/model.safetensors")
    b = checkpoint.load_weights(tmp_path / "small/checkpoints/step-0000004/model.safetensors")
    for name in a:
        torch.testing.assert_close(a[name], b[name], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["inverse_sqrt", "noam", "constant"])
def test_the_rate_follows_the_schedule(name):
    config = TrainConfig(schedule=name, peak_lr=0.01, warmup=10)
    rates = [schedule.learning_rate(config, step, 64) for step in range(1, 41)]
    assert rates[:10] == sorted(rates[:10]) and rates[0] < rates[9]
    assert rates[9:] == sorted(rates[9:], reverse=True)
    expected = {
        "inverse_sqrt": schedule.inverse_sqrt(40, 0.01, 10),
        "noam": schedule.noam(40, 64, 10),
        "constant": 0.01,
    }[name]
    assert rates[-1] == pytest.approx(expected)
    ending = dataclasses.replace(config, max_steps=40, cooldown=10)
    cooled = [schedule.learning_rate(ending, step, 64) for step in range(1, 41)]
    assert cooled[:31] == rates[:31]
    assert cooled[35] == pytest.approx(rates[35] / 2)
    assert cooled[39] == pytest.approx(rates[39] / 10)


def test_every_sentence_is_seen_once_an_epoch():
    sequences = [[4] * n for n in range(1, 30)]
    targets = [[1] + s for s in sequences]
    batches = training.translation_batches(sequences, targets, max_tokens=60, seed=3)
    stream, seen = iter(batches), []
    while batches.epoch == 0:
        seen += next(stream)
    first = seen[: len(sequences)]
    assert sorted(first) == list(range(len(sequences))) and first != sorted(first)


def test_another_seed_is_another_run_and_the_same_seed_the_same(tmp_path):
    _, first = run(tmp_path / "a", max_steps=4)
    _, again = run(tmp_path / "b", max_steps=4)
    _, other = run(tmp_path / "c", max_steps=4, seed=1)
    assert without_timings(first) == without_timings(again)
    assert first[0]["loss"] != other[0]["loss"]
    # Nor does it matter what random numbers were drawn before.
    training.set_seed(0)
    sizes = ModelConfig(data()[1].get_vocab_size(), **MODEL)
    model = Transformer(sizes)
    torch.rand(5)
    metrics = training.train(
        model, data()[1], data()[0], TrainConfig(**(TRAIN | {"max_steps": 4})), tmp_path / "d"
    )
    assert without_timings(metrics) == without_timings(first)


def test_a_model_that_was_last_evaluated_trains_with_dropout(tmp_path):
    found = []
    for trained_before in (True, False):
        training.set_seed(0)
        model = Transformer(ModelConfig(data()[1].get_vocab_size(), **MODEL | {"dropout": 0.5}))
        _, metrics = run(tmp_path / str(trained_before), model=model.train(trained_before))
        found.append(without_timings(metrics))
    assert found[0] == found[1]


# --------------------------------------------------------------------------------- what it leaves


def test_the_folder_holds_what_the_documentation_says(finished):
    folder, model, metrics = finished
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "tokenizer.json", "metrics.jsonl", "environment.json", "model.safetensors",
        "checkpoints", "checksums.json",
    }
    assert set(json.loads((folder / "environment.json").read_text())) == {
        "device", "python", "torch", "commit", "date", "processes", "precision", "training_seconds",
    }
    config = json.loads((folder / "config.json").read_text())
    assert ModelConfig(**config["model"]) == model.config
    assert TrainConfig(**config["train"]).max_steps == 12
    assert config["data"]["source"] == "mini"
    assert load_tokenizer(folder / "tokenizer.json").to_str() == data()[1].to_str()


def test_the_metrics_have_the_documented_keys(finished):
    folder, _, metrics = finished
    assert metrics == read_json_lines(folder / "metrics.jsonl")
    logged = [e for e in metrics if "loss" in e]
    assert [e["step"] for e in logged] == [3, 6, 9, 12]
    for entry in logged:
        assert set(entry) == {"step", "epoch", "loss", "lr", "grad_norm", "tokens", "seconds",
                              "tokens_per_second"}
        assert entry["tokens_per_second"] == pytest.approx(entry["tokens"] / entry["seconds"])
    epochs = [e["epoch"] for e in logged]
    assert epochs == sorted(epochs) and 0 < epochs[0] < 1 < epochs[-1]
    validated = [e for e in metrics if "validation_loss" in e]
    assert [e["step"] for e in validated] == [6, 12, 12]
    for entry in validated:
        assert entry["validation_perplexity"] == pytest.approx(math.exp(entry["validation_loss"]))
        assert 0 <= entry["validation_bleu"] <= 100
    assert metrics[-1]["averaged"] == 3 and "averaged" not in metrics[-2]


def test_on_log_gets_each_entry(tmp_path):
    seen = []
    _, metrics = run(tmp_path, max_steps=6, on_log=seen.append)
    assert seen == metrics and len(seen) == 4


def test_the_result_is_the_mean_of_the_last_checkpoints(finished):
    folder, model, _ = finished
    states = [
        checkpoint.load_weights(path / "model.safetensors")
        for path in checkpoint.checkpoints(folder)
    ]
    assert len(states) == 3
    shipped = checkpoint.load_weights(folder / "model.safetensors")
    for name, value in shipped.items():
        assert value.dtype == torch.float16
        mean = torch.stack([state[name] for state in states]).double().mean(0)
        torch.testing.assert_close(value, mean.half(), atol=1e-6, rtol=1e-3)
        assert not torch.equal(value, states[-1][name].half())


def test_the_score_recorded_is_that_of_the_shipped_weights(finished):
    folder, model, metrics = finished
    pairs, tokenizer = data()
    assert not model.training
    stored = checkpoint.load_model(folder)
    sources = encode_source(tokenizer, [source for source, _ in pairs["validation"]])
    references = [target for _, target in pairs["validation"]]
    targets = encode_target(tokenizer, references)
    assert training.validation_loss(stored, sources, targets) == metrics[-1]["validation_loss"]
    texts = translate_ids(stored, tokenizer, sources)
    assert score(texts, references).bleu == metrics[-1]["validation_bleu"]
    for name, value in model.state_dict().items():
        assert torch.equal(value, stored.state_dict()[name])


def test_the_validation_loss_is_the_mean_over_all_target_tokens():
    torch.manual_seed(0)
    model = Transformer(ModelConfig(vocab_size=9, **MODEL)).eval()
    sources, targets = [[4, 5, 3], [6, 3]], [[1, 7, 8, 5, 3], [1, 4, 3]]
    losses = []
    for source, target in zip(sources, targets, strict=True):
        log_p = model(torch.tensor([source]), torch.tensor([target[:-1]])).log_softmax(-1)[0]
        losses += [-log_p[i, token].item() for i, token in enumerate(target[1:])]
    found = training.validation_loss(model, sources, targets)
    assert found == pytest.approx(sum(losses) / len(losses))


def test_the_validation_loss_does_not_depend_on_the_batches(finished):
    _, model, _ = finished
    pairs, tokenizer = data()
    sources = encode_source(tokenizer, [source for source, _ in pairs["validation"]])
    targets = encode_target(tokenizer, [target for _, target in pairs["validation"]])
    whole = training.validation_loss(model, sources, targets)
    assert training.validation_loss(model, sources, targets, max_tokens=1) == pytest.approx(whole)
    model.train()
    assert training.validation_loss(model, sources, targets) == pytest.approx(whole)
    assert model.training
    model.eval()


def test_translations_come_in_the_order_of_their_sources(finished):
    _, model, _ = finished
    tokenizer = data()[1]
    sources = encode_source(tokenizer, [source for source, _ in data()[0]["train"][:12]])
    together = translate_ids(model, tokenizer, sources, max_tokens=40)
    alone = [
        tokenizer.decode(greedy_decode(model, torch.tensor([ids]))[0].tolist()) for ids in sources
    ]
    assert [t[:20] for t in together] == [t[:20] for t in alone]


def test_tensorboard_files_appear_when_asked(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run(tmp_path / "without", max_steps=3)
    assert not (tmp_path / "without" / "tensorboard").exists()
    _, metrics = run(tmp_path / "with", max_steps=6, tensorboard=True)
    events = EventAccumulator(str(tmp_path / "with" / "tensorboard")).Reload()
    shown = [(event.step, event.value) for event in events.Scalars("loss")]
    logged = [(e["step"], pytest.approx(e["loss"])) for e in metrics if "loss" in e]
    assert shown == logged and len(shown) == 2
    assert "validation_loss" in events.Tags()["scalars"]


def test_tensorboard_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        run(tmp_path, tensorboard=True)


def test_a_progress_bar_is_plain_text(tmp_path, capsys):
    run(tmp_path, max_steps=3, progress=True)
    assert "3/3" in capsys.readouterr().err
    assert "ipywidgets" not in sys.modules


def test_a_log_stops_at_a_line_cut_short(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"step":')
    assert read_json_lines(path) == [{"step": 1}, {"step": 2}]


# ---------------------------------------------------------------------------------- precision


@pytest.mark.parametrize("precision", ["fp32", "bf16", "auto"])
def test_what_bf16_switches_is_given_back(tmp_path, monkeypatch, precision):
    inside, rate = [], training.learning_rate

    def spy(config, step, d_model):
        inside.append((torch.get_float32_matmul_precision(), fused()))
        if step == 2:
            raise RuntimeError("stop here")
        return rate(config, step, d_model)

    monkeypatch.setattr(training, "learning_rate", spy)
    fused = torch.backends.cuda.flash_sdp_enabled  # the switch of the CPU's fused attention too
    before = torch.get_float32_matmul_precision(), fused()
    with pytest.raises(RuntimeError, match="stop here"):
        run(tmp_path, precision=precision)
    assert inside[0] == (("medium", False) if precision == "bf16" else before)
    assert (torch.get_float32_matmul_precision(), fused()) == before


def test_bf16_on_a_cpu_trains_as_well(tmp_path):
    _, exact = run(tmp_path / "fp32", precision="fp32")
    model, rounded = run(tmp_path / "bf16", precision="bf16")
    assert rounded[-1]["validation_loss"] == pytest.approx(exact[-1]["validation_loss"], rel=0.05)
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())


def test_devices_that_are_not_there_are_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device("auto") == torch.device("cpu")
    with pytest.raises(
        ValueError, match="device is 'cuda:1', but there is no GPU here; choose 'auto'"
    ):
        pick_device("cuda:1")
    with pytest.raises(ValueError, match="device is 'gpu'; it must be 'auto', 'cpu'"):
        pick_device("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert pick_device("auto") == pick_device("cuda") == torch.device("cuda:3")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ValueError, match="'cuda:2', but the last GPU here is cuda:1"):
        pick_device("cuda:2")


def test_bf16_is_chosen_only_where_the_gpu_multiplies_it(monkeypatch):
    """Older GPUs emulate it, slowly; torch counts them in unless it is told not to."""
    cuda, has = torch.device("cuda"), [True]

    def supported(including_emulation=True):
        return including_emulation or has[0]

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    assert uses_bf16("auto", cuda) and not uses_bf16("auto", torch.device("cpu"))
    has[0] = False
    assert not uses_bf16("auto", cuda) and uses_bf16("bf16", cuda)
    assert not uses_bf16("fp32", cuda)


# ----------------------------------------------------------------------------------- divergence


def poison(monkeypatch, step, value, where="loss"):
    """From `step` on, the loss or its gradient is `value`."""
    original, calls = training.translation_loss, [0]

    def patched(model, *arguments, **settings):
        calls[0] += model.training  # validation is not an update
        loss = original(model, *arguments, **settings)
        if calls[0] < step or not model.training:
            return loss
        if where == "loss":
            return loss + value  # its gradient is as before
        loss.register_hook(lambda gradient: gradient * value)
        return loss

    monkeypatch.setattr(training, "translation_loss", patched)


@pytest.mark.parametrize("value, where", [(math.nan, "loss"), (math.inf, "gradient")])
@pytest.mark.parametrize(
    "step, newest, good", [(1, None, None), (3, 2, None), (5, 4, 2), (8, 6, 4)]
)
def test_divergence_names_the_last_good_checkpoint(
    tmp_path, monkeypatch, value, where, step, newest, good
):
    """A checkpoint is good if an update after it still went well."""
    with monkeypatch.context() as patch:
        poison(patch, step, value, where)
        with pytest.raises(TrainingDiverged) as raised:
            run(tmp_path)
    text = str(raised.value)
    assert text.startswith("training diverged: the ") and ("nan" in text or "inf" in text)
    kept = checkpoint.checkpoints(tmp_path)
    assert max(map(checkpoint.step_of, kept), default=None) == newest
    if good is None:
        assert "there is no good checkpoint" in text
    else:
        assert f"the last good checkpoint is step-{good:07d}" in text
    for path in kept:
        state = checkpoint.load_checkpoint(path)
        tensors = [*state["model"].values(), *state["optimizer"].values()]
        assert all(tensor.isfinite().all() for tensor in tensors)
    # Nothing that is not a number was written, not even to the log.
    lines = (tmp_path / "metrics.jsonl").read_text()
    assert "NaN" not in lines and "Infinity" not in lines
    run(tmp_path)  # without the poison it goes on
    assert contents(tmp_path)["metrics.jsonl"][-1]["step"] == TRAIN["max_steps"]


def test_a_checkpoint_of_ruined_weights_is_not_called_good(tmp_path):
    """The first update throws the weights away; its own loss and gradient were numbers."""
    with pytest.raises(TrainingDiverged, match="at step 2; there is no good checkpoint"):
        run(tmp_path, peak_lr=1e30, warmup=0, checkpoint_every=1)
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["step-0000001"]


@pytest.mark.parametrize("validated", [True, False])
def test_weights_that_the_last_update_ruined_are_no_result(tmp_path, validated):
    pairs = data()[0] if validated else {"train": data()[0]["train"]}
    what = "the validation loss is" if validated else "not all averaged weights are finite"
    with pytest.raises(TrainingDiverged, match=what):
        run(tmp_path, pairs=pairs, peak_lr=1e30, warmup=0, max_steps=1, average=1)
    assert not (tmp_path / "model.safetensors").exists()
    assert "NaN" not in (tmp_path / "metrics.jsonl").read_text()
    assert bool(checkpoint.checkpoints(tmp_path)) != validated  # ruined weights are not kept


# ---------------------------------------------------------------------------------- wrong input


def test_pairs_too_long_are_left_out_and_counted(tmp_path, capsys):
    pairs = dict(data()[0])
    long = " ".join(["Hund"] * 100)
    pairs["train"] = pairs["train"] + [(long, "dogs"), ("Hunde", long), (long, long)]
    _, metrics = run(tmp_path / "a", pairs=pairs, max_steps=3)
    assert "Left out 3 training pairs longer than 64 tokens." in capsys.readouterr().out
    _, expected = run(tmp_path / "b", max_steps=3)
    assert without_timings(metrics) == without_timings(expected)
    pairs["train"] = [(long, long)]
    with pytest.raises(ValueError, match="longer than 64 tokens, the smaller of max_len 64"):
        run(tmp_path / "c", pairs=pairs)


def test_a_pair_longer_than_the_batch_is_left_out(tmp_path, capsys):
    run(tmp_path, max_steps=1, max_tokens=30)
    assert "training pairs longer than 30 tokens." in capsys.readouterr().out


@pytest.mark.parametrize("side", [0, 1])
def test_a_validation_sentence_too_long_is_an_error(tmp_path, side):
    """Leaving it out, or cutting it, would score another set."""
    pairs = dict(data()[0])
    pair = ["Hund", "dog"]
    pair[side] = " ".join(["Hund"] * 100)
    pairs["validation"] = [tuple(pair)]
    with pytest.raises(ValueError, match=r"validation sentence has \d+ tokens, the model reads 64"):
        run(tmp_path / "run", pairs=pairs)
    assert not (tmp_path / "run").exists()


def test_a_validation_sentence_may_be_as_long_as_the_model_reads(tmp_path):
    pairs, tokenizer = data()
    text = pairs["validation"][0][0]
    longest = len(encode_source(tokenizer, [text])[0])
    pairs = dict(pairs, validation=[(text, text)], train=[("Hund", "dog")] * 8)
    run(tmp_path / "fits", pairs=pairs, max_len=longest, max_steps=1)
    with pytest.raises(ValueError, match=f"has {longest} tokens, the model reads {longest - 1}"):
        run(tmp_path / "does-not", pairs=pairs, max_len=longest - 1, max_steps=1)


def test_validation_may_be_missing(tmp_path):
    _, metrics = run(tmp_path, pairs={"train": data()[0]["train"]}, max_steps=2)
    assert [set(e) for e in metrics[1:]] == [{"step", "averaged"}]


@pytest.mark.parametrize(
    ("pairs", "held"), [({"train": []}, "0 train"), ({"validation": [("a", "b")]}, "1 validation")]
)
def test_empty_data_is_named(tmp_path, pairs, held):
    with pytest.raises(ValueError, match=f"no train pairs to train on: the data holds {held} pair"):
        run(tmp_path, pairs=pairs)


def test_a_tokenizer_of_another_model_is_named(tmp_path):
    model = Transformer(ModelConfig(77, d_model=8, n_heads=2, d_ff=8))
    with pytest.raises(
        ValueError, match="the tokenizer has 150 tokens, the model 77: .*; build the mo"
    ):
        run(tmp_path / "run", model=model)
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------------------------------- R-Drop


def some_batch(seed=0):
    """Padded ids of three pairs of different lengths."""
    torch.manual_seed(seed)
    model = Transformer(ModelConfig(**{**MODEL, "vocab_size": 40, "dropout": 0.3}))
    ids = torch.randint(4, 40, (2, 3, 7))
    ids[0, 1, 4:], ids[1, 2, 3:] = 0, 0
    return model, tuple(ids)


def test_r_drop_compares_two_passes_with_other_dropout():
    """With weight 0 it's the mean of two losses; the rest is the mean of both divergences, which
    torch's own kl_div computes here, over the real tokens alone."""
    model, batch = some_batch()
    losses = {}
    for weight in (0.0, 1.0, 4.0):
        torch.manual_seed(1)
        losses[weight] = training.r_drop_loss(model, batch, 0.1, weight)
    torch.manual_seed(1)
    src_ids, tgt_ids = (torch.cat([ids, ids]) for ids in batch)
    logits = model(src_ids, tgt_ids[:, :-1])
    real = batch[1][:, 1:] != 0
    p, q = (half[real].log_softmax(-1) for half in logits.chunk(2))
    kl = nn.functional.kl_div
    apart = sum(kl(a, b, log_target=True, reduction="batchmean") for a, b in ((p, q), (q, p))) / 2
    assert apart > 0.001
    for weight in (1.0, 4.0):
        torch.testing.assert_close(losses[weight] - losses[0.0], weight / 2 * apart)


def test_without_dropout_r_drop_changes_nothing():
    model, batch = some_batch()
    plain = training.translation_loss(model.eval(), batch, 0.1)
    torch.testing.assert_close(training.r_drop_loss(model, batch, 0.1, 5.0), plain)


def test_train_takes_r_drop_from_its_settings(tmp_path):
    """The same updates as with that loss given by hand, and others than with another weight."""

    def trained(name, **how):
        training.set_seed(0)
        pairs, tokenizer = data()
        model = Transformer(ModelConfig(tokenizer.get_vocab_size(), **MODEL))
        loss, weight = how.get("loss"), how.get("r_drop", 0.0)
        config = TrainConfig(**(TRAIN | {"max_steps": 2, "average": 1, "r_drop": weight}))
        training.train(model, tokenizer, pairs, config, tmp_path / name, loss=loss)
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    set_to_3 = trained("settings", r_drop=3.0)
    assert torch.equal(set_to_3, trained("by hand", loss=partial(training.r_drop_loss, weight=3.0)))
    assert not torch.equal(set_to_3, trained("another", r_drop=1.0))


@pytest.mark.parametrize(
    "name",
    ["../notes.txt", "deep/er.txt", "/notes.txt", "", "..", ".", "config.json", "checksums.json",
     "metrics.jsonl", "model.safetensors", "lock", "checkpoints", "tensorboard"],
)
def test_further_files_lie_in_the_run_s_folder_and_replace_none_of_its_own(tmp_path, name):
    pairs, tokenizer = data()
    model = Transformer(ModelConfig(tokenizer.get_vocab_size(), **MODEL))
    batches = training.translation_batches(*encode_pairs(tokenizer, pairs["train"]), 200, 0)
    with pytest.raises(ValueError, match="plain name of a file in the run's folder"):
        training.fit(model, batches, training.translation_loss, TrainConfig(**TRAIN),
                     tmp_path / "run", files={name: "hello"})
    assert not (tmp_path / "notes.txt").exists() and not list(tmp_path.rglob("config.json"))
