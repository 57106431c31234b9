"""The Transformer in one file: the library's numbers, from the layers to training and decoding."""

import itertools
import math
import random
import runpy
import sys

import pytest
import torch
from conftest import assert_equal
from torch import nn

from transformer_lib import ModelConfig, Transformer, decoding, loss, masks, positional, schedule
from transformer_lib import one_file as program
from transformer_lib.one_file import BOS, EOS, PAD, SOURCE, TARGET, UNK


@pytest.fixture(scope="module")
def both():
    """(the library's model, the program's) with the same weights."""
    torch.manual_seed(0)
    sizes = dict(vocab_size=12, d_model=32, n_heads=4, d_ff=64, dropout=0.1, max_len=64)
    config = ModelConfig(**sizes, n_encoder_layers=2, n_decoder_layers=2, tie_embeddings=False)
    library, ours = Transformer(config).eval(), program.Transformer().eval()
    with torch.no_grad():
        library.output.weight.mul_(3)
        library.decoder.norm.bias.fill_(0.5)
        library.output.weight[0] = -1.0  # padding is no word, which the library sees to itself
    ours.load_state_dict(library.state_dict())
    return library, ours


def a_batch(count=9):
    return program.make_batch(program.make_pairs(count, seed=3))


# ---- the model -----------------------------------------------------------------------------------


def test_the_numbers_are_the_librarys(both):
    src, tgt = a_batch()
    assert_equal(both[1](src, tgt), both[0](src, tgt), 1e-5)
    assert torch.equal(program.padding_mask(src), masks.padding_mask(src))
    assert torch.equal(program.causal_mask(7), masks.causal_mask(7))
    for smoothing in (0.0, 0.1):
        given = (both[0](src, tgt), tgt, smoothing)
        theirs = loss.label_smoothed_cross_entropy(*given)
        assert_equal(program.label_smoothed_cross_entropy(*given), theirs, 1e-6)
    for step in (1, 7, 100):
        assert program.noam(step, 32, 10) == schedule.noam(step, 32, 10)


def test_positions_are_the_librarys_far_out_too():
    theirs = positional.sinusoidal_table(5000, 32)
    assert_equal(program.sinusoidal_table(5000, 32), theirs, 1e-7)


def test_the_gradients_are_the_librarys(both):
    src, tgt = a_batch()
    for model in both:
        model.zero_grad()
        loss.label_smoothed_cross_entropy(model(src, tgt[:, :-1]), tgt[:, 1:]).backward()
    theirs = dict(both[0].named_parameters())
    assert theirs.keys() == dict(both[1].named_parameters()).keys()
    for name, parameter in both[1].named_parameters():
        assert_equal(parameter.grad, theirs[name].grad, 1e-6)


def test_weights_start_as_the_librarys_do(both):
    """Random numbers of the same size: in a matrix, about the same mean square."""
    torch.manual_seed(1)
    started = dict(Transformer(both[0].config).named_parameters())
    for name, weight in program.Transformer().named_parameters():
        theirs = started[name].detach()
        if weight.dim() > 1:
            mean_square = weight.detach().square().mean().item()
            assert mean_square == pytest.approx(theirs.square().mean().item(), rel=0.3)
        elif "norm" in name:
            assert torch.equal(weight, theirs)


@pytest.mark.parametrize("part", ["attention", "residual", "embedding"])
def test_dropout_while_it_trains_and_only_then(part):
    torch.manual_seed(0)
    model = program.Transformer(dropout=0.5)
    x = torch.ones(1, 5, 32)
    run = {
        "attention": lambda: model.encoder.layers[0].self_attention(x, x),
        "residual": lambda: model.encoder.layers[0].residuals[0](x, lambda y: y + 1),
        "embedding": lambda: model.embed(x),
    }[part]
    model.eval()
    assert torch.equal(run(), run())
    model.train()
    assert not torch.equal(run(), run())


def test_a_query_that_may_read_nothing_gets_zeros():
    q, nothing = torch.randn(1, 2, 4), torch.tensor([[[False, False], [True, False]]])
    output, weights = program.scaled_dot_product_attention(q, q, q, nothing)
    assert torch.equal(output[0, 0], torch.zeros(4)) and torch.equal(output[0, 1], q[0, 0])
    assert torch.equal(weights[0], torch.tensor([[0.0, 0.0], [1.0, 0.0]]))


# ---- the data ------------------------------------------------------------------------------------


def test_the_task_is_to_write_backwards_in_capitals():
    pairs = program.make_pairs(300, shortest=2, longest=5)
    assert all("".join(tgt) == "".join(src)[::-1].upper() for src, tgt in pairs)
    assert {len(src) for src, _ in pairs} == {2, 3, 4, 5}
    assert {letter for src, _ in pairs for letter in src} == set("abcdefgh")
    assert program.make_pairs(5) == program.make_pairs(5, seed=0) != program.make_pairs(5, seed=1)


def test_no_row_is_on_both_sides_of_the_split():
    pairs = program.make_pairs(500, longest=3)
    train, test = program.split(pairs, 50)
    assert test == pairs[:50]
    assert train == [pair for pair in pairs[50:] if pair not in test]
    assert 0 < len(train) < 450, "short rows come up twice"


def test_ids_and_back():
    ids = program.encode_words([*"bad", "z"], SOURCE)
    assert ids == [SOURCE["b"], SOURCE["a"], SOURCE["d"], UNK, EOS]
    assert program.decode_ids([*ids, 5, 6], SOURCE) == [*"bad", "<unk>"]
    assert program.decode_ids([PAD, TARGET["C"], PAD], TARGET) == ["C"]
    assert list(SOURCE)[:4] == list(TARGET)[:4] == ["<pad>", "<bos>", "<eos>", "<unk>"]


def test_a_batch_is_padded_behind_its_ends():
    src, tgt = program.make_batch([([*"ab"], [*"BA"]), ([*"abcd"], [*"DCBA"])])
    a, b = SOURCE["a"], SOURCE["b"]
    assert src[0].tolist() == [a, b, EOS, PAD, PAD]
    assert tgt[0].tolist() == [BOS, TARGET["B"], TARGET["A"], EOS, PAD, PAD]
    assert src.shape == (2, 5) and tgt.shape == (2, 6)


# ---- training ------------------------------------------------------------------------------------


def a_training(**options):
    torch.manual_seed(0)
    return program.Training(program.Transformer(dropout=0.0), program.make_pairs(70), **options)


def test_an_epoch_has_every_pair_once_and_the_next_another_order():
    training = a_training(batch_size=32)
    epochs = []
    for _ in range(2):
        batches = [training.next_batch()[0] for _ in range(3)]
        assert [len(batch) for batch in batches] == [32, 32, 6]
        epochs.append([tuple(id for id in row if id != PAD) for b in batches for row in b.tolist()])
    expected = sorted(tuple(program.encode_words(src, SOURCE)) for src, _ in training.pairs)
    assert sorted(epochs[0]) == sorted(epochs[1]) == expected
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize("accumulate", [1, 3])
def test_an_update_is_adam_on_the_librarys_loss(accumulate):
    """noam's rate, Adam's numbers of section 5.3, the mean over all tokens, gradients clipped."""
    training, twin = (a_training(batch_size=8, accumulate=accumulate, warmup=4) for _ in range(2))
    model = twin.model
    adam = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    for step in range(1, 7):
        training.update()
        batches = [twin.next_batch() for _ in range(accumulate)]
        logits = [model(src, tgt[:, :-1]).flatten(0, 1) for src, tgt in batches]
        targets = torch.cat([tgt[:, 1:].flatten() for _, tgt in batches])
        total = loss.label_smoothed_cross_entropy(torch.cat(logits), targets, 0.1)
        adam.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.param_groups[0]["lr"] = schedule.noam(step, 32, 4)
        adam.step()
        assert training.curve[-1] == pytest.approx(total.item(), abs=1e-5)
    assert len(training.curve) == training.step == 6
    pairs = zip(training.model.named_parameters(), model.parameters(), strict=True)
    for (name, ours), theirs in pairs:
        if not name.endswith("w_k.bias"):  # moves no output: its gradient is rounding
            assert_equal(ours, theirs, 1e-3)
    assert training.seen == twin.seen == 6 * accumulate


def test_going_on_from_a_state_is_never_having_stopped():
    torch.manual_seed(0)
    whole = program.Training(program.Transformer(), program.make_pairs(70), batch_size=16)
    for _ in range(3):
        whole.update()
    again = program.Training(program.Transformer(), program.make_pairs(70), batch_size=16)
    state = whole.state()
    for _ in range(3):
        whole.update()
    again.restore(state)
    assert (again.step, again.seen) == (3, 3)
    for _ in range(3):
        again.update()
    assert again.curve == whole.curve[3:]
    assert all(map(torch.equal, again.model.parameters(), whole.model.parameters()))
    again.restore(state)  # what went on since has not changed it
    again.model.eval()  # an update has dropout all the same
    for _ in range(3):
        again.update()
    assert again.curve[3:] == whole.curve[3:]


def test_validation_has_no_dropout_no_smoothing_and_no_gradient(both):
    pairs, model = program.make_pairs(9, seed=3), both[1]
    src, tgt = program.make_batch(pairs)
    expected = loss.label_smoothed_cross_entropy(both[0](src, tgt[:, :-1]), tgt[:, 1:], 0.0)
    for mode in (True, False):
        model.train(mode)
        model.zero_grad()
        assert program.validation_loss(model, pairs) == pytest.approx(expected.item(), abs=1e-5)
        assert model.training is mode
        assert all(parameter.grad is None for parameter in model.parameters())
    model.eval()


def test_training_ends_with_its_best_weights(monkeypatch):
    training, measured = a_training(batch_size=16), []
    losses = iter([3.0, 1.0, 2.0, 1.0])

    def validation_loss(model, pairs):
        measured.append((training.step, next(model.parameters()).clone()))
        return next(losses)

    monkeypatch.setattr(program, "validation_loss", validation_loss)
    assert program.train(training, 7, training.pairs, validate_every=2) == 1.0
    assert [step for step, _ in measured] == [2, 4, 6, 7], "and at the end"
    assert torch.equal(next(training.model.parameters()), measured[1][1]), "the first of the best"


# ---- decoding ------------------------------------------------------------------------------------


def test_it_decodes_as_the_library(both):
    src = a_batch()[0]
    ours = program.greedy_decode(both[1], src, 12)
    assert torch.equal(ours, decoding.greedy_decode(both[0], src, 12))
    for source, _ in program.make_pairs(5, seed=3):
        ids = program.pad([program.encode_words(source, SOURCE)])
        theirs = decoding.beam_search(both[0], ids, 4, 12)[0][0].tolist()
        ours = program.beam_translate(both[1].train(), source)  # without dropout all the same
        assert ours == program.decode_ids(theirs, TARGET)
    both[1].eval()


@pytest.mark.parametrize("mode", [True, False])
def test_greedy_decoding_leaves_the_model_as_it_was(both, mode):
    model = both[1].train(mode)
    program.greedy_decode(model, a_batch()[0], 3)
    assert model.training is mode
    model.eval()


def test_no_output_is_longer_than_allowed(both):
    never = program.Transformer().eval()
    never.load_state_dict(both[1].state_dict())
    with torch.no_grad():
        never.output.weight[EOS] = -both[1].decoder.norm.bias * 10
    for most in (1, 4):
        assert program.greedy_decode(never, a_batch()[0], most).shape == (9, most)
        assert len(program.beam_translate(never, "bad", max_len=most)) <= most
    with torch.no_grad():
        never.output.weight[EOS] *= -1  # now at once, and no column more
    assert program.greedy_decode(never, a_batch()[0], 4).tolist() == [[EOS]] * 9


def test_batches_of_any_size_give_the_same_translations_in_the_given_order(both):
    sources = [source for source, _ in program.make_pairs(20, seed=5, longest=6)]
    alone = [program.translate(both[1], [source])[0] for source in sources]
    for batch_size in (1, 3, 16, 50):
        assert program.translate(both[1], sources, batch_size) == alone
    pairs = [(source, alone[i] if i % 4 else [*"ZZ"]) for i, source in enumerate(sources)]
    assert program.score(both[1], pairs) == 0.75


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_of_all_sequences(length_penalty, seed):
    def log_probs(prefix):
        numbers = random.Random(f"{seed} {prefix}")
        return torch.tensor([numbers.gauss(0, 1.5) for _ in range(4)]).log_softmax(0)

    def total(ids):
        return sum(log_probs(list(ids[:i]))[token].item() for i, token in enumerate(ids))

    every = [
        (*start, last)
        for length in range(3)
        for start in itertools.product([0, 1, 3], repeat=length)
        for last in ([EOS] if length < 2 else range(4))
    ]
    best = max(every, key=lambda ids: total(ids) / len(ids) ** length_penalty)
    ids, score = program.beam_search(log_probs, 50, 3, length_penalty)
    assert tuple(ids) == best
    assert score == pytest.approx(total(best) / len(best) ** length_penalty, abs=1e-6)


def test_the_search_ends_when_a_beam_of_hypotheses_is_finished():
    asked = []

    def log_probs(prefix):
        asked.append(len(prefix))
        return torch.tensor([0.1, 0.1, 0.7, 0.1]).log()  # token 2 ends

    assert program.beam_search(log_probs, 1, 9) == ([EOS], pytest.approx(math.log(0.7)))
    assert asked == [0]
    asked.clear()
    program.beam_search(log_probs, 2, 9)
    assert asked == [0, 1, 1]


def test_the_program_trains_and_writes(capsys, monkeypatch):
    steps = []

    def train(training, step, held_out, validate_every):
        steps.append((step, len(training.pairs), len(held_out), validate_every))
        return 0.125

    monkeypatch.setattr(program, "train", train)
    torch.manual_seed(5)  # whatever came before
    program.main(["bad"], updates=300)
    rows, held_out = program.split(program.make_pairs(2000), 200)
    assert steps == [(step, len(rows), 200, 100) for step in (100, 200, 300)]
    lines = capsys.readouterr().out.splitlines()
    torch.manual_seed(0)
    model = program.Transformer()  # untrained, as train was left out
    assert lines[2] == "update  300: loss 0.125 on rows held out of training"
    assert lines[3] == f"{program.score(model, held_out):.0%} of 200 new rows are right"
    greedy, best = program.translate(model, [[*"bad"]])[0], program.beam_translate(model, "bad")
    assert lines[4] == f"bad -> {''.join(greedy)} (greedy), {''.join(best)} (beam search)"


def test_words_that_it_cannot_write_are_named_on_the_command_line(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["one_file", "bad", "tag"])
    with pytest.raises(SystemExit, match="'tag' must be made of the letters a to h"):
        runpy.run_path(program.__file__, run_name="__main__")
    monkeypatch.setattr(sys, "argv", ["one_file", "tag"])
    with pytest.raises(SystemExit, match="'tag' must be"):
        runpy.run_path(program.__file__, run_name="__main__")


def test_it_learns():
    torch.manual_seed(0)
    pairs, held_out = program.split(program.make_pairs(600, longest=3), 60)
    training = program.Training(program.Transformer(), pairs, warmup=40)
    before = program.validation_loss(training.model, held_out)
    assert program.train(training, 150, held_out) < before / 3
    assert program.score(training.model, held_out) > 0.6
