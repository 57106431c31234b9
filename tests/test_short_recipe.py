"""The law of each change that recordings/claims/short_recipe.py makes to the short recipe."""

from dataclasses import replace
from itertools import islice

import pytest
import torch

from recordings.claims import short_recipe as tries
from transformer_lib import training
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.config import ModelConfig, TrainConfig
from transformer_lib.decoding import greedy_decode
from transformer_lib.masks import padding_mask
from transformer_lib.models.transformer import Transformer

SMALL = ModelConfig(30, 16, 2, 32, 2, 2, 0.0, positional="rotary", tie_embeddings=False)
CONFIG = TrainConfig(
    max_steps=6, max_tokens=64, optimizer="muon", peak_lr=0.01, warmup=2, cooldown=2, average=1,
    checkpoint_every=6, validate_every=6, clip_norm=0.0, progress=False, device="cpu",
)
EMBEDDINGS = ("src_embedding.lookup.weight", "tgt_embedding.lookup.weight", "output.weight")


@pytest.fixture
def rows():
    """Ids of 60 sources and targets."""
    draw = torch.Generator().manual_seed(0)

    def sentence():
        length = int(torch.randint(3, 9, (), generator=draw))
        return torch.randint(4, 30, (length,), generator=draw).tolist()

    return [[*sentence(), 2] for _ in range(60)], [[1, *sentence(), 2] for _ in range(60)]


@pytest.fixture
def batch(rows):
    stream = training.translation_batches(*rows, 64, seed=0)
    return stream.tensors(next(iter(stream)), "cpu")


def built(name):
    torch.manual_seed(0)
    return tries.CHANGES[name].model(SMALL).eval()


def attentions(model):
    return [part for part in model.modules() if isinstance(part, MultiHeadAttention)]


def weights_over_time(change, rows, model_config=SMALL):
    """The weights by name, before the first update and after each."""
    seen = []

    class Noted(type(change)):
        def optimizer(self, config):
            make = super().optimizer(config)

            def noting(model, **options):
                def note():
                    seen.append({k: v.detach().clone() for k, v in model.state_dict().items()})

                class Noting(make.func if hasattr(make, "func") else make):
                    def step(self):
                        super().step()
                        note()

                note()
                return Noting(model, **getattr(make, "keywords", {}), **options)

            return noting

    tries.fitted(Noted(), model_config, CONFIG, rows)
    assert len(seen) == 1 + CONFIG.max_steps
    return seen


def test_without_a_change_it_is_the_librarys_training(rows, tmp_path):
    model = tries.fitted(tries.CHANGES["unchanged"], SMALL, CONFIG, rows)
    training.set_seed(CONFIG.seed)
    library, stream = Transformer(SMALL), training.translation_batches(*rows, 64, CONFIG.seed)
    training.fit(library, stream, tries.Unchanged().loss(CONFIG), CONFIG, tmp_path)
    for name, value in library.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name


def test_the_settings_are_the_short_recipes():
    ours, recipe = tries.RECIPE, tries.recipes.SHORT
    assert (ours.model, ours.data) == (recipe.model, recipe.data)
    where = {"max_steps", "max_tokens", "warmup", "cooldown", "checkpoint_every",
             "validate_every", "progress", "fast"}
    differs = {k for k, v in vars(ours.train).items() if v != getattr(recipe.train, k)}
    assert differs == where


def test_zero_output_projections_leave_the_path_of_the_embeddings(batch):
    src_ids, read = batch[0], batch[1][:, :-1]

    def only_embeddings(model):
        return model.project(model.decoder.norm(model.embed(model.tgt_embedding(read))))

    zero, plain = built("zero output projections"), built("unchanged")
    torch.testing.assert_close(zero(src_ids, read), only_embeddings(zero))
    assert not torch.allclose(plain(src_ids, read), only_embeddings(plain))


def test_normalised_queries_and_keys_bound_the_scores():
    bound = (SMALL.d_model // SMALL.n_heads) ** 0.5
    x = torch.randn(3, 7, SMALL.d_model, generator=torch.Generator().manual_seed(0)) * 100

    @torch.no_grad()
    def widest(attention):  # a softmax keeps the differences of scores
        scores = attention(x, x, x, need_weights=True)[1].log()
        return float((scores.amax(-1) - scores.amin(-1)).max())

    normed = attentions(built("QK-norm"))
    assert len(normed) == 6  # in the encoder, in the decoder, and across
    assert all(widest(attention) <= 2 * bound + 1e-3 for attention in normed)
    assert all(widest(attention) > 2 * bound + 1 for attention in attentions(built("unchanged")))


def test_a_normalised_model_decodes_with_its_cache_what_it_decodes_without(batch):
    model = built("QK-norm")
    cached, whole = (greedy_decode(model, batch[0], use_cache=use) for use in (True, False))
    assert torch.equal(cached, whole)


def test_embeddings_are_one_until_the_switch_and_three_after_it(rows, batch, monkeypatch):
    # In bf16 a product's last bit, which differs between processors, becomes a thousandth of a
    # logit.
    monkeypatch.setattr(tries.optimizers, "multiplies_bf16", lambda device: False)
    seen = weights_over_time(tries.CHANGES["tied, then untied"], rows)
    for step, weights in enumerate(seen):
        first, *others = (weights[name] for name in EMBEDDINGS)
        together = all(torch.equal(first, other) for other in others)
        assert together == (step <= 4), step  # two thirds of six updates
    # Until then it's the training of one shared matrix, so its logits are the same at the switch.
    tied = replace(SMALL, tie_embeddings=True)
    shared = weights_over_time(tries.CHANGES["unchanged"], rows, tied)
    logits = []
    for config, weights in ((SMALL, seen[4]), (tied, shared[4])):
        model = Transformer(config).eval()
        model.load_state_dict(weights)
        logits.append(model(batch[0], batch[1][:, :-1]))
    torch.testing.assert_close(*logits, rtol=1e-4, atol=1e-4)


def test_growing_batches_read_as_many_tokens():
    sources = [[5] * n + [2] for n in range(1, 16) for _ in range(200)]
    targets = [[1, *source] for source in sources]
    config = replace(CONFIG, max_steps=20, max_tokens=256)
    read, sizes = {}, {}
    for name in ("unchanged", "growing batches"):
        stream = tries.CHANGES[name].batches(sources, targets, config)
        batches = list(islice(stream, config.max_steps + (name != "unchanged")))
        assert len(batches) == config.max_steps  # a growing stream ends there
        sizes[name] = [stream.tensors(batch, "cpu")[0].numel() for batch in batches]
        read[name] = sum(sizes[name])
    assert (stream.epoch, stream.next_batch) == (3, 0)  # each third has an epoch of its own
    assert read["growing batches"] == pytest.approx(read["unchanged"], rel=0.03)
    grown = sizes["growing batches"]
    assert max(grown[:6]) <= 128 < min(grown[6:14]) <= max(grown[6:14]) <= 256 < min(grown[14:])


def test_what_adam_trains_moves_every_second_step_only(rows):
    seen = weights_over_time(tries.CHANGES["Adam every second step"], rows)
    matrices = {name for name, weight in seen[0].items() if weight.dim() == 2} - {*EMBEDDINGS}
    for step, (before, after) in enumerate(zip(seen, seen[1:], strict=False), start=1):
        still = {name for name in before if torch.equal(before[name], after[name])}
        assert not still & matrices, step
        if step % 2:
            assert still == before.keys() - matrices, step
        else:
            assert not still & {*EMBEDDINGS}, step


def test_the_kept_gradient_is_not_lost(rows):
    """The second of two steps is that of the mean of both gradients."""
    torch.manual_seed(0)
    model = Transformer(SMALL)
    optimizer = tries.EverySecondStep(model, lr=0.01)
    for value in (1.0, 3.0):
        for p in model.parameters():
            p.grad = torch.full_like(p, value)
        optimizer.step()
    first = optimizer.adams[0]
    average = optimizer.state[first]["exp_avg"] / (1 - optimizer.param_groups[0]["betas"][0])
    torch.testing.assert_close(average, torch.full_like(first, 2.0))
    assert not optimizer.kept


def test_a_second_loss_of_weight_zero_is_the_plain_loss(batch):
    model = built("next-but-one token")
    losses = [tries.NextButOne(0.1, weight, 10)(model, batch) for weight in (0.0, 0.5)]
    assert losses[0] == training.translation_loss(model, batch, 0.1)
    gradients = torch.autograd.grad(losses[1], [model.ahead.weight])
    assert losses[1] > losses[0] and gradients[0].abs().max() > 0


def test_the_second_loss_is_on_the_token_after_the_next_and_fades(batch):
    model = built("next-but-one token")
    src_ids, tgt_ids = batch
    hidden = model.decode(tgt_ids[:, :-2], model.encode(src_ids), padding_mask(src_ids))
    log_p = model.project(model.ahead(hidden)).log_softmax(-1)
    real = tgt_ids[:, 2:] != 0
    expected = -log_p.gather(-1, tgt_ids[:, 2:, None]).squeeze(-1)[real].mean()
    loss = tries.NextButOne(0.0, 0.5, 2)
    plain = training.translation_loss(model, batch)
    found = [float((loss(model, batch) - plain).detach()) for _ in range(3)]
    assert found == pytest.approx([0.5 * float(expected), 0.25 * float(expected), 0.0], abs=1e-4)
