"""Build your own Transformer: what is right is accepted, what is subtly wrong is refused by name.

The perfect learner are the two pages of solutions, whose parts take nothing from the library.
"""

import ast
import copy
import json
import linecache
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import assert_equal, tiny_config
from torch import nn

from exercises import own
from exercises.checks import framework
from exercises.checks import own as laws
from exercises.checks.framework import Judged
from exercises.own import source
from exercises.own.adopted import Cart, OwnRule
from tools import mutants as engine
from transformer_lib import (
    ModelConfig,
    TrainConfig,
    Transformer,
    data,
    decoding,
    load_pretrained,
    training,
)
from transformer_lib.beyond import acting, digits, preferences, relative_bias, states
from transformer_lib.beyond.encoders import mask_tokens
from transformer_lib.beyond.learning import learn
from transformer_lib.beyond.one_stream import PrefixLanguageModel
from transformer_lib.beyond.speculative import KeepByChance
from transformer_lib.beyond.stacks import SideBySideLanguageModel
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.runs.export import export_live, load_exported
from transformer_lib.tokenization import train_tokenizer

ROOT = Path(__file__).resolve().parents[2]

SOLUTIONS = [
    json.loads((ROOT / "book/solutions" / page).read_text(encoding="utf8"))
    for page in ("your-transformer.ipynb", "descendants.ipynb")
]
HANDED_IN = re.compile(r'\n\nassert own\.hand_in\("(\w+)", (\w+)\)$')
IMPORTS = "import math\n\nimport torch\nfrom torch import nn\n\nEPSILON = 1e-5\n"


def cells():
    """{part: (its cell without the hand-in, the name of its function or class)}"""
    found = {}
    for cell in (cell for page in SOLUTIONS for cell in page["cells"]):
        text = "".join(cell["source"])
        if cell["cell_type"] == "code" and (match := HANDED_IN.search(text)):
            found[match[1]] = text[: match.start()].rstrip() + "\n", match[2]
    return found


CELLS = cells()


def written(name, text=None):
    """A part as a notebook's cell makes it: its source is known to linecache alone."""
    text, var = text or CELLS[name][0], CELLS[name][1]
    file = f"ipykernel_7/{name}-{abs(hash(text))}.py"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    space = {"__name__": "__main__"}
    exec(IMPORTS, space)
    exec(compile(text, file, "exec"), space)
    return space[var]


@pytest.fixture(scope="module")
def perfect(tmp_path_factory):
    """A folder with all parts of the perfect learner."""
    folder = tmp_path_factory.mktemp("perfect") / "my-transformer"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own, "_chosen", folder)
        for name in own.EVERY:
            assert own.hand_in(name, written(name)) is True, name
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(own, "_chosen", None)
    monkeypatch.delenv("MY_TRANSFORMER", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "my-transformer"


def random_model(**changes):
    """A library's model with random gains and biases too, and ids with padding."""
    model = Transformer(tiny_config(**changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    src, tgt = torch.randint(4, 20, (3, 7)), torch.randint(4, 20, (3, 6))
    src[0, 4:], tgt[1, 3:] = 0, 0
    return model, src, tgt


# ------------------------------------------------------------------------------ a perfect learner


def test_the_solution_hands_in_every_part_and_takes_none_from_the_library():
    assert [*CELLS] == [*own.EVERY]
    for name, (text, _) in CELLS.items():
        assert "transformer_lib" not in text and "own." not in text, name


def test_a_model_of_ones_own_is_the_librarys_with_the_same_weights(perfect):
    model, src, tgt = random_model()
    mine = own.model(model.config, perfect)
    assert [*mine.state_dict()] == [*model.state_dict()]
    mine.load_state_dict(model.state_dict())
    mine.eval()
    real = tgt != 0
    assert_equal(mine(src, tgt)[real], model(src, tgt)[real], 1e-5)
    logits = mine.project(mine.decode(tgt, mine.encode(src), mine.padding_mask(src)))
    assert_equal(logits[real], model(src, tgt)[real], 1e-5)
    for decode in (decoding.greedy_decode, lambda m, s: decoding.beam_search(m, s, 3)[0]):
        assert torch.equal(decode(mine, src), decode(model, src))


def test_it_starts_with_the_librarys_first_weights(perfect):
    config = tiny_config()
    torch.manual_seed(5)
    theirs = Transformer(config).state_dict()
    torch.manual_seed(5)
    mine = own.model(config, perfect).state_dict()
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def test_the_shipped_weights_translate_the_same(perfect):
    recorded = load_pretrained("multi30k-de-en")
    model, tokenizer = own.load("multi30k-de-en", perfect)
    german = ["Zwei Hunde spielen im Schnee.", "Ein Mann schläft.", "Kinder vor einem roten Haus."]
    for beam_size in (1, 4):
        theirs = recorded.translate(german, beam_size, 1.0, attention=False)
        mine = own.translate(model, tokenizer, german, beam_size)
        assert mine == [found.text for found in theirs]


SIZES = dict(d_model=16, n_heads=2, d_ff=24, n_encoder_layers=1, n_decoder_layers=1, max_len=128)


def little():
    """The beginning of the smallest corpus, its tokenizer, and four updates."""
    pairs = data.load_parallel("mini")
    pairs.update({split: rows[:40] for split, rows in pairs.items()})
    tokenizer = train_tokenizer([text for pair in pairs["train"] for text in pair], 120)
    config = TrainConfig(
        max_steps=4, max_tokens=400, schedule="noam", warmup=2, cooldown=2, log_every=1, average=1,
        validate_every=4, checkpoint_every=4, validation_bleu=False, device="cpu", progress=False,
    )
    return pairs, tokenizer, config


def test_training_is_the_librarys_update_for_update_and_the_run_can_be_used(perfect, tmp_path):
    pairs, tokenizer, config = little()
    sizes = tiny_config(vocab_size=tokenizer.get_vocab_size(), **SIZES)
    torch.manual_seed(1)
    theirs = training.train(Transformer(sizes), tokenizer, pairs, config, tmp_path / "theirs")
    torch.manual_seed(1)
    model = own.model(sizes, perfect)
    mine = own.train(model, tokenizer, pairs, config, tmp_path / "mine")
    for one, other in zip(theirs, mine, strict=True):
        for key in ("loss", "lr", "validation_loss"):
            assert one.get(key) == pytest.approx(other.get(key), abs=1e-4), key

    card = own.run_card(tmp_path / "mine", pairs, limit=12, beam_size=2, where=perfect)
    assert card.parts == [*own.PARTS] and card.n_scored == 12 and len(card.sentences) == 10
    assert card.low <= card.bleu + 5 and card.updates == 4 and card.recorded == []
    assert "yours     13 of 13 parts: padding_mask" in str(card)
    assert card.sentences[0]["reference"][:40] in str(card)
    assert max(map(len, str(card).splitlines())) <= 76

    export_live(tmp_path / "mine", tmp_path / "mine.bin")
    texts = [source for source, _ in pairs["test"][:3]]
    shown = load_exported(tmp_path / "mine.bin").translate(texts, 1, attention=False)
    assert len(shown) == 3
    with pytest.raises(ValueError, match='schedule="noam"'):
        own.train(model, tokenizer, pairs, TrainConfig(max_steps=1), tmp_path / "other")


# ---------------------------------------------------------------------------------- other learners


def test_a_learner_with_only_attention(folder, capsys):
    for name in own.PARTS:
        answer = written(name) if name == "attention" else ...
        assert own.hand_in(name, answer) is (True if name == "attention" else None)
    assert "○ loss: not written yet; the model uses the library's." in capsys.readouterr().out
    assert [*own.parts()] == ["attention"]
    assert "1 of 13 parts in my-transformer are yours." in repr(own.parts())
    model, src, tgt = random_model()
    mine = own.model(model.config)
    mine.load_state_dict(model.state_dict())
    assert_equal(mine.eval()(src, tgt)[tgt != 0], model(src, tgt)[tgt != 0], 1e-5)


def test_with_rotary_a_model_of_ones_own_has_rotary_positions(perfect):
    model, src, tgt = random_model(positional="rotary")
    mine = own.model(model.config, perfect).eval()
    assert [*mine.own] == [*own.PARTS, "rotary"]
    mine.load_state_dict(model.state_dict())
    assert_equal(mine(src, tgt)[tgt != 0], model(src, tgt)[tgt != 0], 1e-5)
    model, src, tgt = random_model()
    assert "rotary" not in own.model(model.config, perfect).own


# ------------------------------------------------------------------------ what later models changed


def llama(**changes):
    """A library's Llama with random gains, and ids without padding."""
    torch.manual_seed(0)
    sizes = dict(d_model=24, n_heads=6, n_kv_heads=2, d_ff=16, n_decoder_layers=2, dropout=0.0,
                 norm="rms", positional="rotary", activation="swiglu", bias=False)
    model = LanguageModel(ModelConfig(20, **sizes | changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model, torch.randint(4, 20, (3, 7))


LLAMA = ["rotary", "rms_norm", "swiglu", "grouped_heads", "block"]


@pytest.mark.parametrize("names", [LLAMA, *([name] for name in LLAMA), LLAMA[::2]], ids=str)
def test_a_llama_of_ones_own_parts_computes_and_writes_as_the_librarys(perfect, tmp_path, names):
    for name in names:
        shutil.copy(perfect / f"{name}.py", tmp_path)
    model, ids = llama()
    mine = own.adopt(model, tmp_path)
    assert mine.own == names
    assert {*mine.state_dict()} == {*model.state_dict()}
    assert_equal(mine(ids), model(ids), 1e-5)
    for use_cache in (True, False):
        written = decoding.greedy_decode(mine, ids, 6, use_cache=use_cache)
        assert torch.equal(written, decoding.greedy_decode(model, ids, 6))
    again = copy.deepcopy(mine).eval()  # weights of a copy are the copy's own
    with torch.no_grad():
        again.decoder.layers[0].self_attention.w_v.weight.zero_()
    assert not torch.equal(again(ids), mine(ids))
    mine.load_state_dict(again.state_dict())
    assert_equal(mine(ids), again(ids), 1e-6)


def test_it_learns_as_the_librarys_update_for_update(perfect):
    model, ids = llama()

    def learned(model):
        torch.manual_seed(1)
        return learn(model, lambda: model(ids)[:, :-1].flatten(0, 1).log_softmax(-1).gather(
            1, ids[:, 1:].reshape(-1, 1)).neg().mean() * torch.rand(()), 5, 1e-2)

    torch.manual_seed(7)
    mine = own.adopt(model, perfect)
    drawn = torch.rand(())
    torch.manual_seed(7)
    assert drawn == torch.rand(())  # adopting draws no chance
    assert learned(mine.train()) == pytest.approx(learned(model.train()), abs=1e-4)


def test_what_does_not_fit_stays_the_librarys(perfect):
    model, ids = llama(bias=True, norm="layer", positional="learned", n_kv_heads=None)
    mine = own.adopt(model, perfect)
    assert mine.own == ["block"]
    assert_equal(mine(ids), model(ids), 1e-5)
    assert own.adopt(llama(rotary_base=500.0, eps=1e-6)[0], perfect).own == [
        "swiglu", "grouped_heads", "block"
    ]
    with pytest.raises(ValueError, match="reads from left to right"):
        own.adopt(PrefixLanguageModel(model.config), perfect)(torch.tensor([[5, 2, 1, 6]]))
    parallel = SideBySideLanguageModel(llama(positional="none", n_kv_heads=None)[0].config, 2)
    mine = own.adopt(parallel.eval(), perfect)  # its heads turn by a scheme of their own
    assert mine.own == ["rms_norm", "swiglu", "grouped_heads"]
    assert_equal(mine(ids), parallel(ids), 1e-5)


def test_a_t5_with_ones_own_positions_computes_and_writes_as_the_librarys(perfect):
    torch.manual_seed(0)
    config = tiny_config(positional="none", max_len=200)
    model = relative_bias.add_relative_bias(Transformer(config)).eval()
    with torch.no_grad():
        for stack in (model.encoder, model.decoder):
            stack.layers[0].self_attention.positions.table.weight.normal_()
    mine = own.adopt(model, perfect)
    assert mine.own == ["relative_bias"] and {*mine.state_dict()} == {*model.state_dict()}
    src, tgt = torch.randint(4, 20, (2, 150)), torch.randint(4, 20, (2, 9))
    assert_equal(mine(src, tgt), model(src, tgt), 1e-5)
    assert torch.equal(decoding.greedy_decode(mine, src), decoding.greedy_decode(model, src))
    for mine_, theirs in ((mine.encoder, model.encoder), (mine.decoder, model.decoder)):
        made = {layer.self_attention.positions for layer in mine_.layers}
        assert len(made) == len({layer.self_attention.positions for layer in theirs.layers}) == 1
    assert mine.count_parameters() == model.count_parameters()


def test_the_other_parts_do_what_the_librarys_do(perfect):
    mine = own.descendants(perfect)
    ids = torch.randint(0, 30, (5, 40))
    draw = torch.Generator().manual_seed(3)
    chance, fate = (torch.rand(ids.shape, generator=draw) for _ in range(2))
    other = torch.randint(4, 30, ids.shape, generator=draw)
    library = mask_tokens(ids, 30, generator=torch.Generator().manual_seed(3))
    for one, theirs in zip(mine["hide_tokens"](ids, 30, chance, fate, other), library, strict=True):
        assert torch.equal(one, theirs)
    images, vit = torch.rand(3, 1, 8, 8), digits.vision_transformer().eval()
    adopted = own.adopt(vit, perfect)
    assert adopted.own == ["patches"] and torch.equal(adopted(images), vit(images))


def test_ones_own_loop_plays_as_the_librarys(perfect):
    pytest.importorskip("gymnasium")
    torch.manual_seed(0)
    model = acting.decision_transformer(16, 1).eval()
    adopted = own.adopt(model, perfect)
    assert adopted.own == ["block"]

    @torch.no_grad()
    def likelier(returns, states, actions, steps, model=adopted):
        return int(model(returns[None], states[None], actions[None], steps[None])[0, -1].argmax())

    def choose(past):
        togo = 30.0 - (past.rewards.cumsum(-1) - past.rewards)
        steps = torch.arange(past.actions.size(1))
        seen = togo[0], past.states[0], past.actions[0], steps
        return torch.tensor([likelier(*(x[-4:] for x in seen), model=model)])

    for seed in range(3):
        theirs = acting.play(choose, 1, seed).rewards.sum().item()
        assert own.descendants(perfect)["play_for"](Cart(seed), likelier, 30.0, 4) == theirs


@pytest.mark.parametrize("gate", ["RetNet", "GLA", "Gated DeltaNet"])
def test_states_of_ones_own_loop_answer_as_the_librarys(perfect, gate):
    torch.manual_seed(0)
    model = states.Recaller(gate, 8, n_layers=2, n_heads=2, d_model=16)
    mine = own.adopt(model, perfect)
    assert mine.own == ["rms_norm", "scan"]  # states take no mask, as a block of one's own has it
    assert {*mine.state_dict()} == {*model.state_dict()}
    names, values, _ = states.draw(3, 5, torch.Generator().manual_seed(0))
    assert_equal(mine(names, values), model(names, values), 1e-5)
    x, mixer = torch.randn(2, 6, 16), mine.decoder.layers[0].self_attention
    whole, after = mixer.step(x)
    half, state = mixer.step(x[:, :4])
    rest, last = mixer.step(x[:, 4:], state)
    assert_equal(torch.cat([half, rest], 1), whole, 1e-5)
    assert_equal(last, after, 1e-5)
    with torch.no_grad():  # the weights of the copy are its own
        mixer.w_v.weight.zero_()
    assert not torch.equal(mine(names, values), model(names, values))


@pytest.mark.parametrize("narrow", [0, 3, None])
def test_ones_own_rule_keeps_what_the_librarys_keeps(perfect, narrow):
    """narrow: how many tokens the draft lacks; None: its guesses were certain."""
    torch.manual_seed(0)
    for seed in range(60):
        n, V = seed % 5, 9
        logits = 2 * torch.randn(n + 1, V)
        q = (2 * torch.randn(n, V - (narrow or 0)) + logits[:n, : V - (narrow or 0)]).softmax(-1)
        guesses = torch.randint(V - (narrow or 0), (n,)).tolist()
        draws = [torch.Generator().manual_seed(seed) for _ in range(2)]
        rule = OwnRule(own.descendants(perfect)["keep_guesses"], draws[0])
        given = logits, guesses, None if narrow is None or not n else q
        assert rule(*given) == KeepByChance(draws[1])(*given)
        assert torch.equal(*(torch.rand(3, generator=g) for g in draws))


def test_ones_own_loss_of_choices_is_the_librarys(perfect):
    texts = [(-9 + torch.randn(6)).requires_grad_() for _ in range(4)]
    mine = own.descendants(perfect)["dpo"](*texts, 0.3)
    assert_equal(mine, preferences.dpo_loss(*texts, 0.3), 1e-6)


@pytest.mark.parametrize("name", own.PARTS)
def test_each_part_alone_makes_a_model_that_runs(perfect, tmp_path, name):
    shutil.copy(perfect / f"{name}.py", tmp_path)
    model, src, tgt = random_model()
    mine = own.model(model.config, tmp_path).eval()
    assert [*mine.own] == [name]
    mine.load_state_dict(model.state_dict())
    assert_equal(mine(src, tgt)[tgt != 0], model(src, tgt)[tgt != 0], 1e-5)
    assert torch.equal(decoding.greedy_decode(mine, src), decoding.greedy_decode(model, src))


def test_heads_may_name_the_mask(folder):
    named = CELLS["multi_head_attention"][0].replace("k, v, mask)", "k, v, mask=mask)")
    assert own.hand_in("multi_head_attention", written("multi_head_attention", named))
    model, src, tgt = random_model()
    own.model(model.config)(src, tgt)  # around the library's attention
    other = re.sub(r"\bmask\b", "shown", CELLS["attention"][0])
    assert own.hand_in("attention", written("attention", other))
    own.model(model.config)(src, tgt)


# (part, what stands in the solution, what stands there instead, what must be said)
WRONG = [
    ("padding_mask", "!= pad_id", "== pad_id", "upside down"),
    ("padding_mask", "ids != pad_id", "ids != 0", "use pad_id"),
    ("padding_mask", "1, 1, -1", "-1", "(B, 1, 1, S)"),
    ("decoder_mask", "<=", "<", "keep the diagonal"),
    ("decoder_mask", "<=", ">=", "sees the future"),
    ("attention", "q.size(-1)", "k.size(-2)", "not of the number of keys"),
    ("attention", "weights = weights * mask", "pass", "attend to nothing"),
    ("attention", "scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)", "pass",
     "after the softmax"),
    ("attention", "min)", "eps)", "not that of masked"),
    ("attention", "return weights @ v", "return weights @ v, weights", "without the weights"),
    ("attention", "softmax(-1)", "softmax(-2)", "over the keys"),
    ("multi_head_attention", "x.view(B, T, self.n_heads, D // self.n_heads).transpose(1, 2)",
     "x.view(B, self.n_heads, T, D // self.n_heads)", "cuts through the tokens"),
    ("multi_head_attention", "self.cut(self.w_k(key)), self.cut(self.w_v(value))",
     "self.cut(self.w_k(value)), self.cut(self.w_v(key))", "swapped"),
    ("multi_head_attention", "k, v, mask)", "k, v)", "mask does not reach"),
    ("multi_head_attention", "self.w_o = nn.Linear(d_model, d_model)",
     "self.w_o = nn.Linear(d_model, d_model, bias=False)", "missing w_o.bias (12,)"),
    ("multi_head_attention", "self.attention(q, k, v, mask)",
     "(q @ k.mT / q.size(-1)**0.5).masked_fill(~mask if mask is not None else "
     "torch.tensor(False), -1e9).softmax(-1) @ v", "do not call the attention"),
    ("positional_encoding", "2) / d_model", "2) / (2 * d_model)", "the exponent is 2i / d_model"),
    ("positional_encoding", "torch.arange(max_len)", "torch.arange(1, max_len + 1)", "from 1"),
    ("layer_norm", "(centred**2).mean(-1, keepdim=True)", "x.var(-1, keepdim=True)", "d - 1"),
    ("layer_norm", "torch.rsqrt(variance + EPSILON)", "1 / (variance.sqrt() + EPSILON)", "inside"),
    ("feed_forward", ".clamp(min=0)", "", "non-linearity is missing"),
    ("feed_forward", "(x).clamp(min=0))", "(x)).clamp(min=0)", "after the first map"),
    ("feed_forward", "self.contract(self", "nn.functional.dropout(self", "two calls"),
    ("layer_norm", "def __init__(self, d_model)", "def __init__(self, d_model, eps)",
     "cannot be made with (8)"),
    ("encoder_layer", "norm_2(x)", "norm_1(x)", "a norm of its own"),
    ("encoder_layer", "x = x + attend", "x = norm_1(x) + attend", "x itself must stay untouched"),
    ("decoder_layer", "y, y, y, tgt_mask", "y, y, y, None", "reads the future"),
    ("decoder_layer", "memory, memory, src_mask", "memory, memory, None", "reads the padding"),
    ("loss", "real = targets != ignore_index", "real = targets >= 0", "includes padding"),
    ("loss", "smoothing * log_p.mean()", "smoothing * log_p.sum(-1).mean()", "yours is the sum"),
    ("loss", "real = targets != ignore_index", "real = targets != 0", "use ignore_index"),
    ("schedule", "step < warmup", "step > warmup", "the larger of the two"),
    ("schedule", "step / (", "(step + 1) / (", "count the steps from 0"),
    ("greedy_decode", ".any(1).all()", ".any(1).any()", "the first sentence has ended"),
    ("greedy_decode", "token[(ids == eos_id).any(1)] = 0", "pass", "goes on after its <eos>"),
    ("greedy_decode", "range(max_len)", "range(1000)", "go on after max_len"),
    ("beam_search", "/ length**", "/ (length + 1) **", "<eos> counted"),
    ("beam_search", ".log_softmax(-1)", "", "sum of log p"),
    ("beam_search", "[:beam_size]\n        if", "[:1]\n        if", "two prefixes"),
    ("beam_search", "ids[-1] == eos_id or length", "length", "first word misleads"),
    ("rotary", "torch.arange(start, start + x.size(-2)", "torch.arange(x.size(-2)", "not used"),
    ("rotary", "x[..., 0::2], x[..., 1::2]", "x.chunk(2, -1)", "you pair feature i with"),
    ("rotary", "a * cos - b * sin, a * sin + b * cos", "a * cos + b * sin, b * cos - a * sin",
     "the other way"),
    ("rotary", "pair / x.size(-1)", "pair / 2 / x.size(-1)", "yours is -i / K"),
    ("rms_norm", "x / (", "(x - x.mean(-1, keepdim=True)) / (",
     "does not subtract the mean"),
    ("rms_norm", "(mean_square + EPSILON).sqrt()", "(mean_square.sqrt() + EPSILON)", "inside"),
    ("rms_norm", ".mean(-1", ".sum(-1", "over the root of d"),
    ("rms_norm", "self.weight = nn.Parameter(torch.ones(d_model))",
     "self.weight = nn.Parameter(torch.ones(d_model)); self.bias = nn.Parameter(self.weight * 0)",
     "not expected bias"),
    ("swiglu", "gate * gate.sigmoid() * self.expand(x)",
     "gate * self.expand(x) * self.expand(x).sigmoid()", "swapped"),
    ("swiglu", "gate * gate.sigmoid()", "gate.sigmoid()", "only the sigmoid"),
    ("swiglu", "self.contract(gate", "x + self.contract(gate", "belongs to the block"),
    ("grouped_heads", "k.repeat_interleave(self.group, dim=1)", "k.repeat(1, self.group, 1, 1)",
     "next to itself"),
    ("grouped_heads", "start = 0 if kept is None else kept[0].size(2)", "start = 0", "`start`"),
    ("grouped_heads", "torch.cat([kept[0], k], dim=2), torch.cat([kept[1], v], dim=2)",
     "torch.cat([k, kept[0]], dim=2), torch.cat([v, kept[1]], dim=2)", "comes first"),
    ("grouped_heads", "(k, v)\n", "(every_k, every_v)\n", "before they are repeated"),
    ("grouped_heads", "(1, 2).flatten(2)), (k, v)", "(1, 2).flatten(2))", "two things"),
    ("grouped_heads", "self.turn(self.cut(self.w_q(x)), start)", "self.cut(self.w_q(x))",
     "queries are not turned"),
    ("grouped_heads", "v = self.cut(self.w_v(x))", "v = self.turn(self.cut(self.w_v(x)), start)",
     "values are turned"),
    ("block", ".tril(start)", ".tril()", "wrong corner"),
    ("block", "attended, kept = attend(norm_1(x), mask, kept)",
     "attended, _ = attend(norm_1(x), mask, kept)", "the earlier one"),
    ("block", "norm_2(x)), kept", "x), kept", "without a norm"),
    ("block", "x = x + attended", "x = norm_1(x) + attended", "must stay untouched"),
    ("relative_bias", "start, start + n_queries", "n_queries", "`start` is not used"),
    ("relative_bias", "16 if self.both_ways else 32", "16", "half of yours are empty"),
    ("relative_bias", "128 / half", "128", "at distance 128"),
    ("relative_bias", "distance > 0", "distance >= 0", "distance 0 is bucket 0"),
    ("relative_bias", "permute(2, 0, 1)", "permute(0, 1, 2)", "(n_heads, n_queries, n_keys)"),
    ("hide_tokens", "(ids > 3)", "(ids > 0)", "never hidden"),
    ("hide_tokens", "fate < 0.9", "fate < 1", "one should"),
    ("hide_tokens", "return read, chosen", "return read, read != ids", "whose token stays"),
    ("hide_tokens", "return read, chosen", "return read", "two tensors"),
    ("patches", "0, 2, 4, 1, 3, 5", "0, 4, 2, 1, 3, 5", "rows of patches come first"),
    ("patches", "0, 2, 4, 1, 3, 5", "0, 2, 4, 3, 5, 1", "channels come last"),
    ("play_for", "asked - earned", "asked", "never goes down"),
    ("play_for", "returns.append(asked - earned)", "returns.append(earned)", "earned so far"),
    ("play_for", "max(0, len(states) - context)", "0", "the last 3 steps at most"),
    ("play_for", "[*actions, 0]", "[0, *actions]", "those that were taken"),
    ("play_for", "torch.tensor(steps[seen])", "torch.arange(len(states[seen]))",
     "numbers within the episode"),
    ("scan", ".exp() * state", " * state", "is a logarithm"),
    ("scan", "new - key.mT @ state", "new", "replace is not used"),
    ("scan", "(write[:, :, t, None] * new)", "new", "`write` is not used"),
    ("scan", "if state is None:", "if True:", "only if it is None"),
    ("scan", ", dim=2), state\n", ", dim=2)\n", "two things"),
    ("keep_guesses", "(p[i] - q[i]).clamp(min=0)", "p[i]", "p itself"),
    ("keep_guesses", "missing / missing.sum()", "missing", "sums to 1"),
    ("keep_guesses", "u[i] * q[i, x] >= p[i, x]", "u[i] >= p[i, x]", "with probability p"),
    ("keep_guesses", "p[-1]", "p[-2]", "one more token"),
    ("dpo", "better - better_before) - (worse - worse_before)", "better - worse)",
     "the reference is missing"),
    ("dpo", "price * ((", "((", "the price is missing"),
    ("dpo", ".mean()", ".sum()", "yours is the sum"),
]


@pytest.mark.parametrize("name, right, wrong, said", WRONG)
def test_a_subtly_wrong_part_is_refused_before_training(folder, capsys, name, right, wrong, said):
    text = CELLS[name][0]
    assert text.count(right) >= 1
    assert own.hand_in(name, written(name, text.replace(right, wrong))) is False
    told = capsys.readouterr().out
    assert told.startswith(f"✗ {name}: ") and said in told.splitlines()[0]
    assert "The model uses the library's." in told
    assert not folder.exists() and not own.parts()


def test_every_part_is_refused_in_at_least_two_ways():
    assert {name: sum(one[0] == name for one in WRONG) >= 2 for name in own.EVERY} == {
        name: True for name in own.EVERY
    }


@pytest.mark.parametrize(
    "law, sentence, slip",
    [
        (part.law, sentence, slip)
        for part in own.EVERY.values()
        if part.law.id.startswith("own.")  # those of chapters have their tests
        for sentence, slips in part.law.slips.items()
        for slip in (slips if isinstance(slips, list) else [slips])
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_slip_is_named(law, sentence, slip):
    verdict, mistakes = law.judge((slip,))
    assert verdict is False
    assert sentence in mistakes[0][0] if isinstance(law, Judged) else mistakes[0][0] == sentence


# Changes of a solution that change nothing that counts: (part, of the line, what is done).
EQUIVALENT = {
    ("decoder_mask", "place =", "without device="),  # here all is on the processor
    ("attention", "scores = q @", "arguments exchanged"),  # which two axes, in either order
    ("attention", "scores = q @", "without USub"),  # axis 2 of four is the last but one
    ("multi_head_attention", "self.w_q =", "arguments exchanged"),  # both are d_model
    ("multi_head_attention", "self.w_k =", "arguments exchanged"),
    ("multi_head_attention", "self.w_v =", "arguments exchanged"),
    ("multi_head_attention", "self.w_o =", "arguments exchanged"),
    ("multi_head_attention", "return x.view", "arguments exchanged"),  # of transpose
    ("multi_head_attention", "return self.w_o", "arguments exchanged"),
    ("loss", "log_p =", "without USub"),  # axis 1 of two is the last
    ("schedule", "if step < warmup", "Lt -> LtE"),  # the branches meet there
    ("greedy_decode", "if (ids == eos_id)", "condition always false"),  # more padding
    ("greedy_decode", "token = next_logits", "without USub"),
    ("beam_search", "for length in", "1 -> 2"),  # at max_len all of the beam has ended
    ("beam_search", "log_p =", "without USub"),
    ("beam_search", "top =", "arguments exchanged"),  # of min
    ("beam_search", "top =", "right operand only"),  # fewer candidates, or more
    ("beam_search", "top =", "2 -> 3"),
    ("beam_search", "top =", "without USub"),
    ("rotary", "pair =", "without device="),
    ("rotary", "place =", "without device="),
    ("rotary", "place =", "without USub"),  # axis 2 of four is the last but one
    ("grouped_heads", "self.w_q =", "arguments exchanged"),
    ("grouped_heads", "self.w_o =", "arguments exchanged"),
    ("grouped_heads", "return x.unflatten", "arguments exchanged"),
    ("grouped_heads", "start =", "0 -> 1"),  # as many keys as values are kept
    ("grouped_heads", "return self.w_o", "arguments exchanged"),
    ("block", "T, start =", "0 -> 1"),
    ("block", "mask =", "without device="),
    ("relative_bias", "query =", "without device="),
    ("relative_bias", "distance =", "without device="),
    ("relative_bias", "bucket = torch.where", "Lt -> LtE"),  # the two meet there
    ("hide_tokens", "chosen =", "Lt -> LtE"),  # no draw is exactly that number
    ("hide_tokens", "read = torch.where(chosen & (fate < 0.9)", "Lt -> LtE"),
    ("hide_tokens", "read = torch.where(chosen & (fate < 0.8)", "Lt -> LtE"),
    ("play_for", "seen =", "arguments exchanged"),  # of max
    ("play_for", "torch.tensor([*actions, 0]", "0 -> 1"),  # any number, in place of no action
    ("scan", "state = state + key @", "MatMult -> Mult"),  # a column times a row, either way
    ("keep_guesses", "if u[i] * q[i, x]", "GtE -> Gt"),  # no draw is exactly that number
}


@pytest.mark.parametrize("name", own.EVERY)
def test_every_mutant_of_a_solution_is_refused(name, monkeypatch):
    monkeypatch.setattr(framework, "LIMIT", 0.5)
    text = CELLS[name][0]
    survived = set()
    for index in range(sum(1 for _ in engine.sites(ast.parse(text)))):
        line, what, mutant = engine.mutant(text, index)
        try:
            part = written(name, mutant)
        except Exception:  # not even a definition
            continue
        if own.EVERY[name].law.judge((part,), explain=False)[0] is not False:
            survived.add((name, text.splitlines()[line - 1].strip(), what))
    listed = {one for one in EQUIVALENT if one[0] == name}
    met = {(n, start, what) for n, start, what in listed
           for _, line, done in survived if line.startswith(start) and done == what}
    assert len(survived) <= len(listed) and met == listed, survived


SLOW = {
    "attention": """
def my_attention(q, k, v, mask=None):
    output = torch.zeros(*q.shape[:-1], v.size(-1))
    for b in range(q.size(0)):
        for h in range(q.size(1)):
            for t in range(q.size(2)):
                shown = [s for s in range(k.size(2)) if mask is None
                         or mask.expand(q.size(0), q.size(1), q.size(2), k.size(2))[b, h, t, s]]
                if shown:
                    scores = [q[b, h, t] @ k[b, h, s] / q.size(-1) ** 0.5 for s in shown]
                    weights = torch.stack(scores).exp()
                    output[b, h, t] = sum(
                        w / weights.sum() * v[b, h, s] for w, s in zip(weights, shown)
                    )
    return output
""",
    "loss": """
def my_loss(logits, targets, smoothing, ignore_index):
    total, n = 0.0, 0
    for row, target in zip(logits.flatten(0, 1), targets.flatten().tolist()):
        if target != ignore_index:
            log_p = row - row.logsumexp(0)
            for token in range(len(row)):
                share = smoothing / len(row) + (1 - smoothing) * (token == target)
                total, n = total - share * log_p[token], n
            n += 1
    return total / n
""",
    "beam_search": """
def my_beam(next_logits, beam_size, length_penalty, bos_id, eos_id, max_len):
    going, done = [((bos_id,), 0.0)], []
    while going and len(done) < beam_size:
        new = {}
        for prefix, total in going:
            log_p = torch.log_softmax(next_logits(torch.tensor([prefix])), -1)[0]
            for token, gain in enumerate(log_p.tolist()):
                new[prefix + (token,)] = total + gain
        ranked = sorted(new, key=new.get, reverse=True)
        for prefix in ranked[:beam_size]:
            if prefix[-1] == eos_id or len(prefix) > max_len:
                done.append((new[prefix] / (len(prefix) - 1) ** length_penalty, prefix[1:]))
        going = [(p, new[p]) for p in ranked if p[-1] != eos_id and len(p) <= max_len][:beam_size]
    best = max(done)
    return torch.tensor(best[1]), torch.tensor(best[0])
""",
}
SLOW |= {
    "rotary": """
def my_rotary(x, start):
    B, H, T, K = x.shape
    rows = []
    for t in range(T):
        turn = torch.zeros(K, K)
        for i in range(0, K, 2):
            a = (start + t) * 10000 ** (-i / K)
            turn[i, i], turn[i, i + 1] = math.cos(a), math.sin(a)
            turn[i + 1, i], turn[i + 1, i + 1] = -math.sin(a), math.cos(a)
        rows.append(x[:, :, t] @ turn)
    return torch.stack(rows, 2)
""",
    "grouped_heads": """
class MyGroupedHeads(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads, turn):
        super().__init__()
        self.H, self.G, self.K, self.turn = n_heads, n_kv_heads, d_model // n_heads, turn
        for letter, n in zip("qkvo", (n_heads, n_kv_heads, n_kv_heads, n_heads)):
            setattr(self, f"w_{letter}", nn.Linear(d_model, n * self.K, bias=False))

    def forward(self, x, mask=None, kept=None):
        B, T, _ = x.shape
        old = [torch.zeros(B, self.G, 0, self.K)] * 2 if kept is None else kept
        start, new = old[0].shape[2], []
        for w in (self.w_k, self.w_v):
            new.append(w(x).view(B, T, self.G, self.K).transpose(1, 2))
        k = torch.cat((old[0], self.turn(new[0], start)), 2)
        v = torch.cat((old[1], new[1]), 2)
        q = self.turn(self.w_q(x).view(B, T, self.H, self.K).transpose(1, 2), start)
        heads = []
        for h in range(self.H):
            scores = q[:, h] @ k[:, h * self.G // self.H].mT * self.K**-0.5
            if mask is not None:
                scores = scores.masked_fill(~mask.expand(B, self.H, *scores.shape[1:])[:, h], -1e9)
            heads.append(scores.softmax(-1) @ v[:, h * self.G // self.H])
        return self.w_o(torch.cat(heads, -1)), [k, v]
""",
    "relative_bias": """
class MyRelativeBias(nn.Module):
    def __init__(self, n_heads, both_ways):
        super().__init__()
        self.table = nn.Embedding(32, n_heads)
        self.side = 16 if both_ways else 32
        self.both_ways = both_ways

    def bucket(self, d):
        after, d = d > 0, abs(d) if self.both_ways else max(-d, 0)
        if d >= self.side // 2:
            grown = math.log2(2 * d / self.side) / math.log2(256 / self.side)
            d = min(self.side // 2 + int(grown * (self.side // 2)), self.side - 1)
        return d + 16 * (after and self.both_ways)

    def forward(self, n_queries, n_keys, start):
        rows = [self.bucket(key - start - i) for i in range(n_queries) for key in range(n_keys)]
        return self.table.weight[rows].T.reshape(-1, n_queries, n_keys)
""",
    "hide_tokens": """
def my_hiding(ids, mask_id, chance, fate, other):
    read, chosen = ids.clone(), torch.zeros_like(ids, dtype=torch.bool)
    for b, row in enumerate(ids.tolist()):
        for t, token in enumerate(row):
            if token > 3 and chance[b, t] < 0.15:
                chosen[b, t] = True
                if fate[b, t] < 0.8:
                    read[b, t] = mask_id
                elif fate[b, t] < 0.9:
                    read[b, t] = other[b, t]
    return read, chosen
""",
    "patches": """
def my_patches(images, patch):
    height, width = images.shape[2:]
    cut = [
        images[:, :, y : y + patch, x : x + patch].flatten(1)
        for y in range(0, height, patch) for x in range(0, width, patch)
    ]
    return torch.stack(cut, 1)
""",
}
UNUSUAL = {
    "block": """
def my_block(x, kept, norm_1, attend, norm_2, feed_forward):
    n = 0 if kept is None else kept[0].shape[2]
    place = torch.arange(n + x.size(1))
    mask = None if x.size(1) == 1 else (place[n:, None] >= place)[None, None]
    y, kept = attend(norm_1(x), mask, kept)
    x = x + y
    return [x + feed_forward(norm_2(x)), kept]
""",
    "swiglu": """
class MySwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        for name in ("expand", "gate"):
            self.add_module(name, nn.Linear(d_model, d_ff, bias=False))
        self.contract = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        g = self.gate(x)
        return (self.expand(x) * g / (1 + torch.exp(-g))) @ self.contract.weight.T
""",
    "play_for": """
def my_play(env, choose, asked, context):
    states, actions, earned = [env.reset()], [], [0.0]
    while True:
        now = len(actions)
        window = list(range(now + 1))[-context:]
        action = choose(
            torch.tensor([asked - sum(earned[: i + 1]) for i in window]),
            torch.stack([states[i] for i in window]),
            torch.tensor([actions[i] if i < now else 7 for i in window]), torch.tensor(window),
        )
        state, reward, ended = env.step(action)
        states.append(state), actions.append(action), earned.append(reward)
        if ended:
            return sum(earned)
""",
    "multi_head_attention": """
class MyHeads(nn.Module):
    def __init__(self, d_model, n_heads, attention):
        super().__init__()
        self.size, self.attention = d_model // n_heads, attention
        for letter in "oqvk":
            setattr(self, f"w_{letter}", nn.Linear(d_model, d_model))

    def forward(self, query, key, value, mask=None):
        parts = zip(*(x.split(self.size, -1) for x in (self.w_q(query), self.w_k(key),
                                                       self.w_v(value))))
        found = [self.attention(*(x[:, None] for x in head), mask)[:, 0] for head in parts]
        return self.w_o(torch.cat(found, -1))
""",
    "attention": """
def my_attention(q, k, v, mask=None):
    grown = torch.einsum("bhtk,bhsk->bhts", q, k).div(k.shape[-1] ** 0.5).exp()
    grown = grown if mask is None else grown * mask
    return grown @ v / grown.sum(-1, keepdim=True).clamp(min=1e-30)
""",
    "greedy_decode": """
def my_greedy(next_logits, n_sentences, bos_id, eos_id, max_len):
    rows, ids = [[] for _ in range(n_sentences)], torch.tensor([[bos_id]] * n_sentences)
    for _ in range(max_len):
        best = next_logits(ids).softmax(-1).topk(1).indices
        for row, token in zip(rows, best.flatten().tolist()):
            row.append(0 if eos_id in row else token)
        ids = torch.cat([ids, best], 1)
    return torch.tensor(rows)
""",
    # What has ended stays in the beam and takes a place there.
    "beam_search": """
def my_beam(next_logits, beam_size, length_penalty, bos_id, eos_id, max_len):
    beam = [([bos_id], 0.0)]
    for _ in range(max_len):
        new = [one for one in beam if one[0][-1] == eos_id]
        for ids, total in beam:
            if ids[-1] != eos_id:
                log_p = next_logits(torch.tensor([ids]))[0].log_softmax(-1).tolist()
                new += [([*ids, token], total + gain) for token, gain in enumerate(log_p)]
        beam = sorted(new, key=lambda one: -one[1])[:beam_size]
    scores = {tuple(ids[1:]): total / (len(ids) - 1) ** length_penalty for ids, total in beam}
    best = max(scores, key=scores.get)
    return best, scores[best]
""",
}


@pytest.mark.parametrize("name, text", [*SLOW.items(), *UNUSUAL.items()])
def test_slow_or_unusual_but_right_parts_are_accepted(folder, name, text):
    assert own.hand_in(name, written(name, text)) is True


# ----------------------------------------------------------------------------------- what is kept


AFTER_RESTART = """
from exercises import own
from transformer_lib import ModelConfig, load_pretrained
print(own.parts())
import torch
config = ModelConfig(20, 16, 2, 24, 1, 1)
own.model(config)(torch.tensor([[5, 2]]), torch.tensor([[1, 6]])).sum().backward()
from exercises.own import source
print(own.hand_in("feed_forward", own.parts()["feed_forward"]))  # from the file, kept again
"""


def test_a_new_process_goes_on_where_no_checkout_is(folder, perfect, tmp_path):
    """A kernel restarts in the middle, as in Colab: the package alone, elsewhere, no results."""
    folder.mkdir()
    for name in ("padding_mask", "layer_norm", "feed_forward", "beam_search"):
        shutil.copy(perfect / f"{name}.py", folder)
    (folder / "loss.py").write_text("part = undefined\n")
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "transformer_lib", tmp_path / "site" / "transformer_lib", ignore=skip)
    result = subprocess.run(
        [sys.executable, "-c", AFTER_RESTART], cwd=tmp_path, text=True, capture_output=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
    )
    assert result.returncode == 0, result.stderr
    assert "4 of 13 parts in my-transformer are yours." in result.stdout
    assert "the library's; yours no longer passes: the file stops with NameError" in result.stdout
    assert result.stdout.endswith("True\n")


def test_what_a_part_uses_is_kept_with_it(folder):
    text = "\n".join(
        [
            "from math import inf, sqrt as root",
            "import torch.nn.functional as F",
            "LOWEST = -inf",
            "WORDS = ('a', 1)",
            "def helper(x):",
            "    return root(LOWEST * 0 + x) if x == LOWEST else F.relu(other(x))",
            "def other(x):",
            "    F_ = WORDS",
            "    return x if x is not None else helper(x)",
            "renamed = helper",
            "def part(x):",
            "    helper_ = [renamed(i) for i in x]",
            "    return helper_",
        ]
    )
    linecache.cache["cell.py"] = len(text), None, text.splitlines(keepends=True), "cell.py"
    space = {"__name__": "__main__"}
    exec(compile(text, "cell.py", "exec"), space)
    kept = source.source_of(space["part"])
    folder.mkdir()
    (folder / "kept.py").write_text(kept)
    ones = torch.ones(2)
    assert source.read(folder / "kept.py")(ones) == space["part"](ones)
    assert source.source_of(source.read(folder / "kept.py")) == kept  # and again from the file


def test_what_cannot_be_kept_is_told(folder, capsys):
    space = {"table": nn.Linear(2, 2)}
    text = "def my_schedule(step, d_model, warmup):\n    table\n"
    text += "    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)\n"
    linecache.cache["cell2.py"] = len(text), None, text.splitlines(keepends=True), "cell2.py"
    exec(compile(text, "cell2.py", "exec"), space)
    assert own.hand_in("schedule", space["my_schedule"]) is False
    assert "my_schedule uses `table`, a Linear of your notebook" in capsys.readouterr().out
    assert own.hand_in("schedule", lambda s, d, w: d**-0.5 * min(s**-0.5, s * w**-1.5)) is False
    assert "write it with `def`" in capsys.readouterr().out
    with pytest.raises(ValueError, match="there is no part 'attenton'"):
        own.hand_in("attenton", ...)


def test_a_wrong_part_does_not_replace_a_right_one(folder, capsys):
    assert own.hand_in("schedule", written("schedule"))
    assert own.hand_in("schedule", lambda step, d_model, warmup: 0.1) is False
    assert "model uses your earlier one in my-transformer/schedule.py" in capsys.readouterr().out
    assert [*own.parts()] == ["schedule"]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: own.model(TrainConfig()), "model: config is a TrainConfig; expected a ModelConfig"),
    (lambda: own.adopt(tiny_config()), "adopt: model is a ModelConfig; expected a Module"),
    (lambda: own.adopt({}), "adopt: model is .* expected a Module"),
    (lambda: own.parts(3), "parts: where is 3 .int.; expected a string or a path or None"),
    (lambda: own.train(Transformer(tiny_config()), None, {}, TrainConfig(), "run"),
     "train: model is a Transformer; expected an OwnTransformer"),
    (lambda: own.translate(own.model(tiny_config()), train_tokenizer(["a"], 9), "ein Hund"),
     "translate: texts is 'ein Hund' .str.; expected a list of strings"),
])
def test_what_cannot_be_meant_is_named(folder, call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("change", [dict(norm_first=False), dict(positional="alibi")])
def test_a_choice_that_the_parts_do_not_cover_is_refused(folder, change):
    with pytest.raises(ValueError, match=f"{[*change][0]} is .* a model of your own parts has"):
        own.model(tiny_config(**change))


def test_there_are_hints(capsys):
    for _ in range(2):
        own.hint("attention")
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("Hint for attention, 1 of ") and second != first
    assert laws.attention.id == "own.attention"  # as checks.hint knows it


def test_there_are_three_written_hints_for_each_part_of_the_descendants():
    assert [name for name, part in own.DESCENDANTS.items() if len(part.law.hints) < 3] == []


def test_a_teacher_sees_which_parts_are_done(perfect):
    for kept, of in ((own.parts(perfect), own.PARTS), (own.descendants(perfect), own.DESCENDANTS)):
        assert repr(kept).count("✓") == len(of) and repr(kept).endswith("are yours.")


@pytest.mark.slow
def test_the_track_is_recorded_by_one_command(tmp_path):
    command = [sys.executable, "-m", "recordings.own_run", "--size", "smoke"]
    command += ["--folder", tmp_path / "run", "--results", tmp_path / "own-run.json"]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    recorded = json.loads((tmp_path / "own-run.json").read_text(encoding="utf8"))
    card = own.RunCard(**recorded["card"])
    assert card.parts == [*own.PARTS] and "13 of 13" in str(card) and recorded["minutes"] > 0
