"""What holds for every right Transformer: a function each, of a program such as `one_file`.

A law raises AssertionError, with a sentence, for a program that breaks it. The healthy program
keeps all of them, and each specimen of the museum breaks the one that is named with it.
"""

import copy
import math
from itertools import product

import torch
import torch.nn.functional as F
from torch import nn

LAWS = {}  # name -> law


def law(function):
    LAWS[function.__name__] = function
    return function


def small(p, **changes):
    """A model without dropout; its weights are random, and so are its norms' gains and biases."""
    torch.manual_seed(0)
    model = p.Transformer(**({"n_layers": 2, "dropout": 0.0} | changes)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 1:
                weight.add_(0.2 * torch.randn_like(weight))
    return model


def letters(*shape, seed=0):
    """Ids of ordinary letters."""
    return torch.randint(4, 12, shape, generator=torch.Generator().manual_seed(seed))


def close(a, b, tolerance=1e-4):
    return torch.allclose(a, b, atol=tolerance, rtol=0)


# --------------------------------------------------------------------------------------- attention


@law
def the_past_ignores_the_future(p):
    """If you change the end of the target, the logits before it stay the same."""
    model, src, tgt = small(p), letters(2, 5), letters(2, 6, seed=1)
    other = torch.cat([tgt[:, :3], letters(2, 3, seed=2)], 1)
    with torch.no_grad():
        before, after = model(src, tgt)[:, :3], model(src, other)[:, :3]
    assert close(before, after), "what comes later changes what was predicted before it"


@law
def real_tokens_ignore_padding(p):
    """A sentence means the same on its own and next to a longer one."""
    model, src, tgt = small(p), letters(1, 4), letters(1, 4, seed=1)
    padded = torch.cat([src, torch.full((1, 3), p.PAD)], 1)
    with torch.no_grad():
        assert close(model(src, tgt), model(padded, tgt)), "padding changes the logits"


@law
def the_causal_mask_is_a_triangle(p):
    """Row i of the causal mask is True at 0 to i, and nowhere else."""
    mask = p.causal_mask(4)[0, 0].tolist()
    assert mask == [[j <= i for j in range(4)] for i in range(4)], f"the mask of 4 is {mask}"


@law
def weights_are_distributions(p):
    """The weights of each query sum to 1."""
    q, k = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    total = p.scaled_dot_product_attention(q, k, k)[1].sum(-1)
    assert close(total, torch.ones(2, 3)), "the weights of a query do not sum to 1"


@law
def scores_have_unit_variance(p):
    """If queries and keys have unit variance, so do their scores, whatever the width."""
    torch.manual_seed(0)
    attention = p.MultiHeadAttention(64, 4)
    q, k = torch.randn(4000, 1, 16), torch.randn(4000, 1, 16)
    two = torch.cat([k, torch.zeros_like(k)], 1)  # the second key scores 0
    weights = p.scaled_dot_product_attention(q, two, two)[1]
    variance = (weights[..., 0] / weights[..., 1]).log().var()
    assert abs(variance - 1) < 0.15, f"the scores have variance {variance:.2f}"
    with torch.no_grad():  # and inside the module as well
        for part in (attention.w_q, attention.w_k, attention.w_v, attention.w_o):
            part.weight.copy_(torch.eye(64))
            part.bias.zero_()
        x = torch.randn(1, 50, 64)
        attention(x, x)
        expected = (x.unflatten(-1, (4, 16)).transpose(1, 2) / 4).matmul(
            x.unflatten(-1, (4, 16)).transpose(1, 2).mT
        )
        assert close(attention.weights, expected.softmax(-1)), (
            "the module scales in a different way"
        )


@law
def a_query_with_no_key_gets_zeros(p):
    """A query that may read nothing gets zeros, not NaN or the mean of the hidden values."""
    x, mask = torch.randn(1, 3, 4), torch.zeros(1, 3, 3, dtype=torch.bool)
    output = p.scaled_dot_product_attention(x, x, x, mask)[0]
    assert output.eq(0).all(), f"a query that may read nothing gets {output[0, 0].tolist()}"


@law
def half_precision_is_finite(p):
    """The mask's number fits into 16 bits."""
    x, mask = torch.randn(1, 3, 4).half(), p.causal_mask(3)[0]
    try:
        output = p.scaled_dot_product_attention(x, x, x, mask)[0]
    except RuntimeError as error:
        raise AssertionError(str(error)) from None
    assert output.isfinite().all(), "half precision overflows"


@law
def heads_keep_tokens_apart(p):
    """Without a mask, reordering the tokens only reorders the outputs."""
    torch.manual_seed(0)
    attention, x, order = p.MultiHeadAttention(8, 2), torch.randn(1, 4, 8), [2, 0, 3, 1]
    y = x[:, order]
    assert close(attention(y, y), attention(x, x)[:, order]), "heads mix the features of tokens"


@law
def attention_drops_in_training(p):
    """In training mode, two passes through the attention differ."""
    torch.manual_seed(0)
    layer, x = p.Layer(8, 2, 16, 0.5).train(), torch.randn(2, 4, 8)
    first = layer.self_attention(x, x)
    assert not close(first, layer.self_attention(x, x)), "no weight is ever dropped"


# ------------------------------------------------------------------------------------------- blocks


@law
def the_norm_equals_pytorchs(p):
    """With copied gain and bias, LayerNorm equals torch.nn.LayerNorm, for small vectors too."""
    torch.manual_seed(0)
    ours, theirs = p.LayerNorm(16), nn.LayerNorm(16)
    gain, bias = torch.randn(16), torch.randn(16)
    with torch.no_grad():
        for norm in (ours, theirs):
            norm.weight.copy_(gain)
            norm.bias.copy_(bias)
    for size in (1.0, 1e-3):
        x = size * torch.randn(20, 16)
        far = (ours(x) - theirs(x)).abs().max().item()
        assert far < 1e-4, f"the norm differs from nn.LayerNorm by up to {far:.3f}"


@law
def a_feature_can_be_scaled_alone(p):
    """The norm has one gain for each feature."""
    norm, x = p.LayerNorm(16), torch.randn(4, 16)
    before = norm(x)
    with torch.no_grad():
        norm.weight.view(-1)[-1] = 3.0
    assert close(norm(x)[:, :-1], before[:, :-1]), "one gain serves all features"


@law
def the_norm_sees_one_token_at_a_time(p):
    """Normalising a sentence is the same as normalising each of its tokens."""
    norm, x = p.LayerNorm(16), torch.randn(2, 5, 16)
    alone = torch.cat([norm(x[:, i : i + 1]) for i in range(5)], 1)
    assert close(norm(x), alone), "a token's norm depends on its neighbours"


@law
def a_silent_sublayer_changes_nothing(p):
    """If the sublayer returns zeros, x goes through a residual connection untouched."""
    x = 3 * torch.randn(2, 4, 16)
    out = p.Residual(16, 0.0)(x, torch.zeros_like)
    assert close(out, x), "the path of x itself is touched"


@law
def the_output_keeps_its_size_with_depth(p):
    """The output of a stack has unit size, however deep the stack is."""
    for n_layers in (1, 6):
        torch.manual_seed(0)
        model = p.Transformer(n_layers=n_layers, dropout=0.0)
        with torch.no_grad():
            size = model.encode(letters(4, 7)).std().item()
        assert abs(size - 1) < 0.1, f"the memory has size {size:.2f} after {n_layers} layers"


@law
def positions_turn_at_one_speed(p):
    """The product of two positions depends only on their distance."""
    table = p.sinusoidal_table(40, 32)
    near = (table[:-5] * table[5:]).sum(-1)
    far = (near - near[0]).abs().max().item()
    assert far < 1e-3, f"5 places apart, the products differ by up to {far:.2f}"
    wavelength = 2 * math.pi * 10000 ** (30 / 32)
    assert abs(table[1, 30].item() - math.sin(2 * math.pi / wavelength)) < 1e-6, (
        "the last wave is not of the paper's length"
    )


@law
def letters_and_places_have_one_size(p):
    """Embedded tokens are about as large as the positions that are added to them."""
    torch.manual_seed(0)
    model = p.Transformer(d_model=256)
    letter = model.src_embedding(letters(4, 20)).pow(2).mean().sqrt().item()
    place = model.positions[:20].pow(2).mean().sqrt().item()
    assert 1 / 3 < letter / place < 3, f"letters have size {letter:.2f}, positions {place:.2f}"


@law
def the_order_of_the_source_counts(p):
    """The same letters in a different order give different logits."""
    model, src, tgt = small(p), letters(1, 6), letters(1, 4, seed=1)
    with torch.no_grad():
        change = (model(src, tgt) - model(src.flip(1), tgt)).abs().max().item()
    assert change > 1e-3, "the source is read as a bag of letters"


@law
def the_output_depends_on_the_source(p):
    """A different source gives different logits."""
    model, tgt = small(p), letters(1, 4, seed=1)
    with torch.no_grad():
        change = (model(letters(1, 5), tgt) - model(letters(1, 5, seed=3), tgt)).abs().max().item()
    assert change > 1e-3, "the source is never read"


@law
def every_layer_has_weights_of_its_own(p):
    """The layers of a stack share nothing, and don't start out the same."""
    torch.manual_seed(0)
    first, second = p.Transformer(n_layers=2).encoder.layers
    weights = [layer.self_attention.w_q.weight for layer in (first, second)]
    assert weights[0] is not weights[1], "the layers are one and the same"
    assert not torch.equal(*weights), "the layers start with the same numbers"


@law
def every_parameter_learns(p):
    """Three updates change every weight that takes part."""
    torch.manual_seed(0)
    training = p.Training(p.Transformer(n_layers=2, dropout=0.0), p.make_pairs(40))
    model = training.model
    parts = {id(layer) for stack in (model.encoder, model.decoder) for layer in stack.layers}
    assert parts <= {id(part) for part in model.modules()}, "the model does not know its own layers"
    before = copy.deepcopy(dict(model.named_parameters()))
    for _ in range(3):
        training.update()
    for name, weight in model.named_parameters():
        silent = name.endswith("w_k.bias")  # the softmax takes it out again
        assert silent or not torch.equal(weight, before[name]), f"{name} never changes"


@law
def an_untrained_model_knows_nothing(p):
    """An untrained model's loss is about ln V, the loss of a guess."""
    torch.manual_seed(0)
    model, (src, tgt) = p.Transformer(dropout=0.0), p.make_batch(p.make_pairs(64))
    with torch.no_grad():
        logits = model(src, tgt[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=0).item()
    assert abs(loss - math.log(12)) < 1.2, f"before training the loss is {loss:.1f}, not ln V"


# --------------------------------------------------------------------------------- loss and updates


@law
def a_parrot_scores_badly(p):
    """A model that only repeats the token it has just read gets a high loss."""
    pairs = [(list("abcd"), list("ABCD")), (list("hg"), list("HG"))]

    def parrot(src, read):
        return 20.0 * F.one_hot(read, 12).float()

    loss = p.sequence_loss(parrot, p.make_batch(pairs), smoothing=0.0).item()
    assert loss > 5, f"the parrot's loss is {loss:.2f}"


@law
def the_loss_ignores_padding(p):
    """More padding doesn't change the loss."""
    torch.manual_seed(0)
    logits, targets = torch.randn(2, 4, 12), letters(2, 4)
    longer = torch.cat([targets, torch.full((2, 5), p.PAD)], 1)
    wider = torch.cat([logits, torch.randn(2, 5, 12)], 1)
    losses = [p.label_smoothed_cross_entropy(*x) for x in ((logits, targets), (wider, longer))]
    assert close(*losses), "the loss changes with the padding of its batch"


@law
def the_end_is_learned_too(p):
    """The loss counts <eos> after the last letter."""
    read = []

    def model(src, tgt):
        read.append(torch.zeros(*tgt.shape, 12, requires_grad=True))
        return read[0]

    p.sequence_loss(model, p.make_batch([(list("ab"), list("BA"))])).backward()
    wanted = read[0].grad[0].argmin(-1).tolist()
    expected = [p.TARGET[word] for word in "BA"] + [p.SPECIAL.index("<eos>")]
    assert wanted == expected, "the loss does not ask for <eos>"
    longer = p.make_batch([(list("ab"), list("BA")), (list("abcd"), list("DCBA"))])
    read.clear()
    p.sequence_loss(model, longer).backward()
    asked = read[0].grad[0].abs().sum(-1) > 0
    expected = [True, True, True, False, False]
    assert asked.tolist() == expected, "<eos> does not count, or padding does"


@law
def the_loss_equals_pytorchs(p):
    """With and without smoothing, the loss equals torch.nn.functional.cross_entropy."""
    torch.manual_seed(0)
    logits, targets = torch.randn(6, 12), torch.tensor([4, 5, 6, 7, 2, 0])
    for smoothing in (0.0, 0.1):
        ours = p.label_smoothed_cross_entropy(logits, targets, smoothing)
        theirs = F.cross_entropy(logits, targets, label_smoothing=smoothing, ignore_index=0)
        assert close(ours, theirs), f"the loss is {ours:.3f}; PyTorch's is {theirs:.3f}"


@law
def the_rate_rises_and_falls(p):
    """Each update takes its own rate from the schedule, which peaks at the end of the warm-up."""
    rates = [p.noam(step, 32, 10) for step in range(1, 41)]
    assert max(range(40), key=rates.__getitem__) == 9, "the peak is not at the end of the warm-up"
    assert abs(rates[39] / rates[9] - 0.5) < 1e-6, "four times the steps do not halve the rate"
    training = p.Training(p.Transformer(n_layers=1), p.make_pairs(40), batch_size=8, warmup=10)
    for step in range(1, 4):
        training.update()
        used = training.optimizer.param_groups[0]["lr"]
        assert abs(used - p.noam(step, 32, 10)) < 1e-9, f"update {step} takes the rate {used:.2g}"


def gradients_of(training, updates):
    """The gradient that each update takes, and the model before it."""
    found, step = [], training.optimizer.step

    def look(*args):
        model = training.model
        copied = [None if w.grad is None else w.grad.clone() for w in model.parameters()]
        found.append((copied, copy.deepcopy(model.state_dict())))
        return step(*args)

    training.optimizer.step = look
    for _ in range(updates):
        training.update()
    return found


@law
def many_small_batches_equal_one_large(p):
    """Accumulated over four batches, the gradient is that of the four together."""
    found = []
    for size, accumulate in ((8, 4), (32, 1)):
        torch.manual_seed(0)
        model = p.Transformer(n_layers=1, dropout=0.0)
        training = p.Training(model, p.make_pairs(64), batch_size=size, accumulate=accumulate)
        norms, clip = [], nn.utils.clip_grad_norm_
        nn.utils.clip_grad_norm_ = lambda weights, most: norms.append(  # noqa: B023
            torch.cat([w.grad.flatten() for w in weights])
        )
        try:
            training.update()
        finally:
            nn.utils.clip_grad_norm_ = clip
        found.append(norms[0])
    ratio = (found[0].norm() / found[1].norm()).item()
    assert close(*found, tolerance=1e-5), (
        f"the gradient is {ratio:.2f} times as long as it should be"
    )


@law
def an_update_takes_its_own_gradient(p):
    """The gradient is the batch's own, clipped, with nothing left of earlier updates."""
    torch.manual_seed(0)
    training = p.Training(p.Transformer(n_layers=1, dropout=0.0), p.make_pairs(64), batch_size=8)
    second, state = gradients_of(training, 2)[1]
    model = p.Transformer(n_layers=1, dropout=0.0)
    model.load_state_dict(state)
    batch = p.make_batch(p.shuffled(training.pairs, 0)[8:16])
    p.sequence_loss(model, batch).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
    for weight, given in zip(model.parameters(), second, strict=True):
        assert close(weight.grad, given, 1e-4), (
            f"the gradient isn't the batch's own, whose norm is {norm:.1f}"
        )


# --------------------------------------------------------------------------------------------- data


@law
def the_source_is_known(p):
    """No letter of the data becomes <unk>, on either side."""
    src, tgt = p.make_batch(p.make_pairs(50))
    unknown = (src == p.UNK).sum() + (tgt == p.UNK).sum()
    assert unknown == 0, f"{int(unknown)} letters of 50 pairs became <unk>"


@law
def no_test_sentence_is_trained_on(p):
    """No test sentence is in the training data, even if the data set contains it twice."""
    train, test = p.split(p.make_pairs(300), 30)
    common = sum(pair in train for pair in test)
    assert not common, f"{common} of 30 test pairs are in the training data"


# ------------------------------------------------------------------------------ training as a whole


@law
def interrupted_is_uninterrupted(p):
    """A run that is stopped and resumed takes the same updates as one that isn't."""

    def start():
        torch.manual_seed(0)
        return p.Training(p.Transformer(n_layers=1, dropout=0.2), p.make_pairs(64), batch_size=8)

    whole = start()
    for _ in range(6):
        whole.update()
    before = start()
    for _ in range(3):
        before.update()
    state, after = before.state(), start()
    torch.manual_seed(99)
    after.restore(state)
    for _ in range(3):
        after.update()
    far = max(abs(a - b) for a, b in zip(whole.curve[3:], after.curve[-3:], strict=True))
    assert far < 1e-5, f"after the interruption, the losses differ by up to {far:.3f}"


@law
def the_best_weights_are_kept(p):
    """The model that training returns is the one with the lowest loss."""
    torch.manual_seed(0)
    training = p.Training(p.Transformer(n_layers=1, dropout=0.0), p.make_pairs(64), warmup=4)
    losses, measure = [], p.validation_loss

    def record(model, pairs):  # the first measurement is the best
        losses.append(measure(model, pairs))
        return float(len(losses))

    p.validation_loss = record
    try:
        p.train(training, 6, p.make_pairs(16, seed=1), validate_every=2)
    finally:
        p.validation_loss = measure
    kept = measure(training.model, p.make_pairs(16, seed=1))
    assert abs(kept - losses[0]) < 1e-5, "the weights that come back aren't those that scored best"


@law
def measuring_leaves_the_mode_alone(p):
    """After a validation or a translation, the model goes on training as before."""
    model = p.Transformer(n_layers=1)
    model.train()
    p.validation_loss(model, p.make_pairs(4))
    p.translate(model, [list("abc")])
    assert model.training and model.dropout.training, "dropout stays off after a look at the model"


# ----------------------------------------------------------------------------------------- decoding


class Copier(nn.Module):
    """Says the source once more, <eos> included, and then "a" for ever: for laws of decoding."""

    def __init__(self):
        super().__init__()
        self.decoder = nn.Module()
        self.decoder.layers = [None]
        self.output = nn.Identity()

    def encode(self, src):
        return F.one_hot(src.masked_fill(src == 0, 4), 12).float()  # (B, S, V)

    def decode(self, tgt, memory, memory_mask=None, caches=None):
        read = tgt.size(1)
        if caches is not None:
            read = caches[0]["read"] = read + caches[0].get("read", 0)
        said = memory[:, read - 1 : read] if read <= memory.size(1) else memory[:, :1] * 0
        return said if read <= memory.size(1) else said + F.one_hot(torch.tensor(4), 12)


@law
def decoding_repeats_itself(p):
    """The same source always gets the same translation."""
    torch.manual_seed(0)
    model = p.Transformer(n_layers=1, dropout=0.5).train()
    src = letters(4, 5)
    found = {str(p.greedy_decode(model, src).tolist()) for _ in range(4)}
    assert len(found) == 1, "the same source gives a different translation each time"


@law
def a_sentence_is_decoded_alike_in_company(p):
    """A sentence gets the same translation on its own and in a batch with other lengths."""
    model, eos = Copier(), p.SPECIAL.index("<eos>")
    sources = [letters(n, seed=n).tolist() + [eos] for n in range(2, 9)]
    together = p.greedy_decode(model, p.pad(sources)).tolist()
    for source, output in zip(sources, together, strict=True):
        alone = p.greedy_decode(model, p.pad([source])).tolist()[0]
        assert alone == source, f"for {source}, {alone} is written"
        assert output[: len(alone)] == alone, f"decoded on its own: {alone}; in the batch: {output}"
        assert set(output[len(alone) :]) <= {0}, "something comes after <eos>"


@law
def the_cache_changes_nothing(p):
    """Reading step by step with the cache gives the same vectors as reading the prefix at once."""
    model, src, tgt = small(p), letters(2, 5), letters(2, 6, seed=1)
    with torch.no_grad():
        memory, mask = model.encode(src), p.padding_mask(src)
        caches = [{} for _ in model.decoder.layers]
        steps = [model.decode(tgt[:, i : i + 1], memory, mask, caches) for i in range(6)]
        whole = model.decode(tgt, memory, mask)
    assert close(torch.cat(steps, 1), whole), "with the cache, later tokens come out differently"


@law
def a_step_computes_one_token(p):
    """Decoding sends each token through the decoder once."""
    model, asked = small(p), []
    handle = model.decoder.register_forward_pre_hook(lambda _, x: asked.append(x[0].size(1)))
    length = p.greedy_decode(model, letters(1, 5), max_len=10).size(1)
    handle.remove()
    assert sum(asked) == length, f"{sum(asked)} positions computed for {length} tokens"


@law
def outputs_come_back_in_order(p):
    """Each source gets its own translation, whatever the batches."""
    decode = p.greedy_decode
    p.greedy_decode = lambda model, src, **options: src  # "translates" by copying
    try:
        sources = [pair[0] for pair in p.make_pairs(40)]
        outputs = p.translate(None, sources)
    finally:
        p.greedy_decode = decode
    pairs = zip(sources, outputs, strict=True)
    right = sum([letter.upper() for letter in source] == output for source, output in pairs)
    assert right == 40, f"sources that get their own output: {right} of 40"


@law
def decoding_starts_as_training_did(p):
    """In decoding, the decoder's first token is the same as in training."""
    model, read = small(p), []
    decode = model.decode
    model.decode = lambda tgt, *rest: read.append(tgt) or decode(tgt, *rest)
    p.greedy_decode(model, letters(1, 5))
    first = p.make_batch(p.make_pairs(1))[1][0, 0].item()
    assert read[0][0, 0].item() == first, "decoding and training start with different tokens"


@law
def longer_sentences_than_in_training_work(p):
    """A source may be three times as long as any in the data."""
    model = p.Transformer(n_layers=1)
    try:
        p.translate(model, [list("abcdefgh") * 2])
    except (RuntimeError, IndexError) as error:
        raise AssertionError(f"a source of 17 tokens stops with: {error}") from None


@law
def nothing_of_the_target_is_read(p):
    """The score depends only on the sources: other targets give the same translations."""
    model, asked = small(p), []
    forward, p_make = model.forward, p.make_batch
    model.forward = lambda src, tgt: asked.append(tgt) or forward(src, tgt)
    p.score(model, p.make_pairs(3))
    assert not asked and p_make is p.make_batch, "the translation is scored with the target in view"


def table_of(p, rows):
    """log_probs(prefix) from {prefix: probabilities of <eos>, A, B}; the rest is impossible."""

    def log_probs(prefix):
        known = rows.get(tuple(prefix), (0.98, 0.01, 0.01))
        found = torch.full((12,), 1e-9)
        for token, probability in zip((2, 4, 5), known, strict=True):
            found[token] = probability
        return found.log()

    return log_probs


GARDEN = {  # the greedy path, A, leads to a poor end
    (): (0.02, 0.53, 0.45),
    (4,): (0.34, 0.33, 0.33),
    (5,): (0.04, 0.94, 0.02),
    (5, 4): (0.97, 0.01, 0.02),
}


@law
def the_beam_finds_what_greed_misses(p):
    """With room for all prefixes, beam search finds the best of all sequences."""
    log_probs = table_of(p, GARDEN)
    found, score = p.beam_search(log_probs, beam_size=4, max_len=4, length_penalty=0.0)
    best = max(
        (sum(log_probs(ids[:i])[ids[i]].item() for i in range(len(ids))), ids)
        for length in range(4)
        for ids in ([*body, 2] for body in product((4, 5), repeat=length))
    )
    assert found == best[1], f"beam search finds {found}; the best is {best[1]}"
    assert abs(score - best[0]) < 1e-3, f"the score is {score:.2f}; it should be {best[0]:.2f}"


@law
def a_longer_penalty_gives_longer_outputs(p):
    """A length_penalty of 0 favours short outputs; 1 compares means per token."""
    rows = {(): (0.40, 0.60, 0.0), (4,): (0.60, 0.40, 0.0), (4, 4): (0.60, 0.40, 0.0)}
    lengths = [
        len(p.beam_search(table_of(p, rows), 4, 6, penalty)[0]) for penalty in (0.0, 1.0, 2.0)
    ]
    assert lengths[0] == 1 and lengths == sorted(lengths) and lengths[2] > 1, (
        f"penalties 0, 1 and 2 give lengths {lengths}"
    )


def complaint(law, program) -> str:
    """What a law says of a program: "" if it is kept. An error breaks it too."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            law(program)
        except AssertionError as broken:
            return str(broken)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""
