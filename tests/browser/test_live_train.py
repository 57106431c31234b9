"""The training in the page equals the library's: same weights and batch, gradients as autograd's.

The page is empty and served on this machine; the book need not be built.
"""

import numpy as np
import pytest
import torch

from benchmarks.browser import CHROMIUM, DRIVER, LIVE, open_page
from transformer_lib import ModelConfig, Transformer
from transformer_lib.batching import pad
from transformer_lib.schedule import inverse_sqrt
from transformer_lib.training import translation_loss

if not (CHROMIUM and DRIVER):
    pytest.skip("chromium and chromedriver are not on the path", allow_module_level=True)
pytest.importorskip("selenium")

SIZES = {  # what the figure trains, and everything about it that may be otherwise
    "as in the figure": {},
    "a bag of letters": dict(positional="none"),
    "deeper, four heads": dict(n_encoder_layers=2, n_decoder_layers=3, n_heads=4),
    "one head, odd sizes": dict(d_model=6, n_heads=1, d_ff=7, n_encoder_layers=0),
}
# Sentences of several lengths, and letters that repeat within one.
PAIRS = [([4, 5, 6, 4, 7], [7, 4, 6, 5, 4]), ([8, 8], [8, 8]), ([13, 9, 4], [4, 9, 13])]
SETUP = """
window.train = { ...await import('/train.js'), ...await import('/train_tasks.js') };
window.modelOf = ({ config, weights }) => {
  const model = new train.Trainable(config);
  const [own, given] = [Object.keys(model.parameters), Object.keys(weights)].map((n) => n.sort());
  if (String(own) !== String(given)) throw new Error(`parameters ${own} and ${given}`);
  for (const name of own) model.parameters[name].data.set(weights[name].flat());
  return model;
};
window.copied = (parameters, part) => Object.fromEntries(
  Object.entries(parameters).map(([name, tensor]) => [name, Array.from(tensor[part])]));
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with open_page(tmp_path_factory.mktemp("chromium")) as page:
        page.run(SETUP)
        yield page


def make_model(seed=0, **changes):
    """A torch model of the library, in float64, whose gradients are exact beside the page's.

    Gains and biases of the norms are moved off 1 and 0, where some mistakes would not show.
    """
    torch.manual_seed(seed)
    sizes = dict(d_model=32, n_heads=2, d_ff=64, n_encoder_layers=1, n_decoder_layers=1)
    model = Transformer(ModelConfig(14, **sizes | {"dropout": 0.0, "max_len": 32} | changes))
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.2 * torch.randn_like(parameter)
    return model.double()


def given(model):
    """What the page needs to build the same model."""
    fields = ("vocab_size", "d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers",
              "max_len", "positional")
    return {
        "config": {field: getattr(model.config, field) for field in fields},
        "weights": {name: p.tolist() for name, p in model.named_parameters()},
    }


def batches(pairs):
    """The same batch for torch, padded, and for the page, where nothing needs padding."""
    source = pad([source + [2] for source, _ in pairs])  # (B, S)
    target = pad([[1] + target + [2] for _, target in pairs])  # (B, T + 1)
    return (source, target), [{"source": s + [2], "target": t + [2]} for s, t in pairs]


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_every_gradient_is_autograds(page, sizes):
    model = make_model(**sizes)
    batch, pairs = batches(PAIRS)
    loss = translation_loss(model, batch)
    loss.backward()
    found = page.run(
        "const [model, tape] = [modelOf(args.given), new train.Tape()];"
        "const { loss } = model.forward(tape, args.pairs); tape.backward(loss);"
        "return { loss: loss.data[0], grads: copied(model.parameters, 'grad') };",
        given=given(model),
        pairs=pairs,
    )
    assert found["loss"] == pytest.approx(loss.item(), rel=1e-5)
    size = sum(p.grad.norm() ** 2 for p in model.parameters()) ** 0.5
    for name, parameter in model.named_parameters():
        told, own = parameter.grad.flatten(), torch.tensor(found["grads"][name]).double()
        # A bias of the keys moves all scores of a row alike, and softmax does not see it: its
        # gradient is zero, and rounding is all that is there.
        zero = name.endswith("w_k.bias")
        assert (told.norm() < 1e-12 * size) == zero
        limit = 1e-6 * size if zero else 1e-4 * told.norm()
        assert (own - told).norm() < limit, name


def test_gradients_add_up_over_batches_until_they_are_used(page):
    """As in torch: two backward passes give the sum, and a step of Adam clears them."""
    model = make_model()
    _, pairs = batches(PAIRS)
    once, twice, after = page.run(
        "const model = modelOf(args.given); const found = [];"
        "for (let i = 0; i < 2; i++) { const tape = new train.Tape();"
        "  tape.backward(model.forward(tape, args.pairs).loss);"
        "  found.push(copied(model.parameters, 'grad')); }"
        "new train.Adam(model.parameters).step(0); found.push(copied(model.parameters, 'grad'));"
        "return found;",
        given=given(model),
        pairs=pairs,
    )
    for name in once:
        np.testing.assert_allclose(twice[name], 2 * np.array(once[name]), rtol=1e-4, atol=1e-7)
        assert not any(after[name])


def test_adam_is_torchs(page):
    """On gradients that are given: sizes from 1e-4 to 1, and a weight that never gets any."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(6, generator=generator)
    scales = torch.tensor([1.0, 0.1, 1e-2, 1e-3, 1e-4, 0.0])
    grads = torch.randn(8, 6, generator=generator) * scales
    rates = [inverse_sqrt(step, peak_lr=6e-3, warmup=3) for step in range(1, 9)]
    parameter = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.Adam([parameter], betas=(0.9, 0.98), eps=1e-9)
    expected = []
    for grad, rate in zip(grads, rates, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        parameter.grad = grad.clone()
        optimizer.step()
        expected.append(parameter.tolist())
    found = page.run(
        "const w = new train.Tensor(1, 6, new Float32Array(args.start));"
        "const adam = new train.Adam({ w }); return args.grads.map((grad, i) => { w.grad.set(grad);"
        "adam.step(train.inverseSqrt(i + 1, 6e-3, 3)); return Array.from(w.data); });",
        start=start.tolist(),
        grads=grads.tolist(),
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_whole_training_is_torchs(page):
    """Thirty updates from the same weights on the same batches: the same losses."""
    model = make_model()
    drawn = page.run(
        "const { generator } = await import('/decoding.js'); const random = generator(1);"
        "return Array.from({ length: 30 }, () => train.drawBatch('reverse', 8, [3, 6], random));"
    )
    start = given(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    expected = []
    for step, pairs in enumerate(drawn, 1):
        batch, _ = batches([(pair["source"][:-1], pair["target"][:-1]) for pair in pairs])
        optimizer.param_groups[0]["lr"] = inverse_sqrt(step, peak_lr=6e-3, warmup=50)
        optimizer.zero_grad()
        loss = translation_loss(model, batch)
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    found = page.run(
        "const model = modelOf(args.given); const adam = new train.Adam(model.parameters);"
        "return args.drawn.map((pairs, i) => { const tape = new train.Tape();"
        "  const { loss } = model.forward(tape, pairs); tape.backward(loss);"
        "  adam.step(train.inverseSqrt(i + 1, 6e-3, 50)); return loss.data[0]; });",
        given=start,
        drawn=drawn,
    )
    assert expected[-1] < 0.8 * expected[0], "it learned nothing, so nothing was compared"
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_what_is_trained_runs_in_the_engine_that_decodes(page):
    """train.js and transformer.js are one model: the same logits, and the same cross-attention."""
    model = make_model(n_encoder_layers=2, n_decoder_layers=2)
    _, pairs = batches(PAIRS[:1])
    largest, weights = page.run(
        "const { Transformer, KeyValueCache } = await import('/transformer.js');"
        "const { Intervention } = await import('/intervention.js');"
        "const own = modelOf(args.given); const [{ source, target }] = args.pairs;"
        "const { logits, weights } = own.forward(new train.Tape(), args.pairs);"
        "const engine = new Transformer(own.config, own.parameters);"
        "const run = new Intervention({}, { keep: ['decoder.1.cross.weights'] });"
        "const memory = engine.encode(source, run);"
        "const hidden = engine.decode([[1, ...target.slice(0, -1)]], memory, [new KeyValueCache()], run);"  # noqa: E501
        "const off = (a, b) => Math.max(...a.map((x, i) => Math.abs(x - b[i])));"
        "const flat = (rows) => rows.flatMap((row) => Array.from(row));"
        "return [off(flat(engine.project(hidden)), logits.data),"
        "  off(flat(run.kept['decoder.1.cross.weights'].flat()), weights[0])];",
        given=given(model),
        pairs=pairs,
    )
    assert largest < 1e-4 and weights < 1e-6


def test_weights_start_as_the_librarys(page):
    """The same names and sizes, and for each weight the same spread; a seed repeats them."""
    model = make_model()
    config = given(model)["config"]
    script = "return copied(new train.Trainable(args.config, args.seed).parameters, 'data');"
    found = page.run(script, config=config, seed=1)
    fresh = Transformer(model.config)
    assert {n: len(v) for n, v in found.items()} == {
        n: p.numel() for n, p in fresh.named_parameters()
    }
    for name, parameter in fresh.named_parameters():
        assert np.std(found[name]) == pytest.approx(
            parameter.std(correction=0).item(), rel=0.4, abs=0.01
        )
        assert np.mean(found[name]) == pytest.approx(parameter.mean().item(), abs=0.08)
    assert page.run(script, config=config, seed=1) == found
    assert page.run(script, config=config, seed=2) != found


@pytest.mark.parametrize("task", ["copy", "reverse", "sort"])
def test_the_tasks_are_the_chapters(page, task):
    rule = {"copy": list, "reverse": lambda x: x[::-1], "sort": sorted}[task]
    drawn = page.run(
        "const { generator } = await import('/decoding.js');"
        "return train.drawBatch(args.task, 200, [3, 6], generator(0));",
        task=task,
    )
    assert {len(pair["source"]) for pair in drawn} == {4, 5, 6, 7}
    assert {i for pair in drawn for i in pair["source"]} == {2, *range(4, 14)}
    for pair in drawn:
        assert pair["source"][-1] == pair["target"][-1] == 2
        assert pair["target"][:-1] == rule(pair["source"][:-1])


def test_the_training_stays_readable():
    """Printed in one sitting: operations, model, Adam."""
    lines = (LIVE / "train.js").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 350
    wide = [number for number, line in enumerate(lines, 1) if len(line) > 100]
    assert not wide, f"train.js has more than 100 columns in the lines {wide}"


def test_it_learns_to_reverse_and_a_bag_of_letters_does_not(page):
    """What the figure shows, by the figure's own run: tokens of new sequences that are right."""
    with_positions, bag, hasty = page.run(
        "const { Run } = await import('/train_run.js');"
        "return [{}, { positions: false }, { rate: 0.06 }].map((settings) => {"
        "  const run = new Run(settings); for (let i = 0; i < 600; i++) run.step();"
        "  return run.accuracy(); });"
    )
    assert with_positions > 0.95
    assert max(bag, hasty) < 0.75
