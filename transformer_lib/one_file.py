"""A whole Transformer in one file: the model, its training, and two ways of decoding.

The Transformer that this book builds chapter by chapter is here once more, small enough to be read
in one sitting. The names are the library's, and tests check that the numbers are, too.
Its task is a small one, so that you can watch it learn: write a row of letters backwards, in
capitals. Try it: it takes about a quarter of a minute.

    python -m transformer_lib.one_file            # trains, then shows what it has learned
    python -m transformer_lib.one_file bad cafe   # ... then writes these words backwards

Your words may use only the letters a to h: the model learns no others.

It is also the healthy program of the bug museum, where every specimen, except those in the three
wings, is this file with one, two or three lines changed.
"""

import copy
import math
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn

PAD, BOS, EOS, UNK = range(4)

# --------------------------------------------------------------------------------------- the model


def scaled_dot_product_attention(q, k, v, mask=None, dropout_p=0.0):
    """q (..., T, K), k and v (..., S, K), mask True = may attend -> output (..., T, K), weights."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # (..., T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    nothing = scores.isneginf().all(-1, keepdim=True)  # (..., T, 1): no key is left
    weights = scores.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)
    weights = F.dropout(weights, dropout_p)
    return weights @ v, weights


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, dropout=0.0):
        super().__init__()
        self.n_heads, self.dropout = n_heads, dropout
        self.w_q, self.w_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.w_v, self.w_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, memory, mask=None, cache=None):
        """query (B, T, D), memory (B, S, D) -> (B, T, D). A cache keeps earlier keys and values."""
        q = self.split_heads(self.w_q(query))
        k, v = self.split_heads(self.w_k(memory)), self.split_heads(self.w_v(memory))
        if cache is not None:
            if cache:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache["k"], cache["v"] = k, v
        dropout_p = self.dropout if self.training else 0.0
        output, self.weights = scaled_dot_product_attention(q, k, v, mask, dropout_p)
        return self.w_o(self.join_heads(output))

    def split_heads(self, x):
        """(B, T, D) -> (B, H, T, K)"""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def join_heads(self, x):
        """(B, H, T, K) -> (B, T, D)"""
        return x.transpose(1, 2).flatten(2)


def padding_mask(ids):
    """(B, T) -> (B, 1, 1, T): no query attends to padding."""
    return (ids != PAD)[:, None, None, :]


def causal_mask(size):
    """(1, 1, T, T): position i attends to 0..i."""
    return torch.ones(1, 1, size, size, dtype=torch.bool).tril()


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias


class Residual(nn.Module):
    def __init__(self, d_model, dropout):
        super().__init__()
        self.norm, self.dropout = LayerNorm(d_model), nn.Dropout(dropout)

    def forward(self, x, sublayer):
        return x + self.dropout(sublayer(self.norm(x)))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.expand, self.contract = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.contract(F.relu(self.expand(x)))


class Layer(nn.Module):
    """A layer of the encoder, or, with cross-attention, of the decoder."""

    def __init__(self, d_model, n_heads, d_ff, dropout, cross_attention=False):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attention = None
        if cross_attention:
            self.cross_attention = MultiHeadAttention(d_model, n_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff)
        n_sublayers = 3 if cross_attention else 2
        self.residuals = nn.ModuleList([Residual(d_model, dropout) for _ in range(n_sublayers)])

    def forward(self, x, mask, memory=None, memory_mask=None, cache=None):
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, mask, cache))
        if memory is not None:
            x = self.residuals[1](x, lambda y: self.cross_attention(y, memory, memory_mask))
        return self.residuals[-1](x, self.feed_forward)


class Stack(nn.Module):
    def __init__(self, n_layers, *sizes, cross_attention=False):
        super().__init__()
        self.layers = nn.ModuleList([Layer(*sizes, cross_attention) for _ in range(n_layers)])
        self.norm = LayerNorm(sizes[0])

    def forward(self, x, mask, memory=None, memory_mask=None, caches=None):
        for i, layer in enumerate(self.layers):
            x = layer(x, mask, memory, memory_mask, caches and caches[i])
        return self.norm(x)


class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.lookup = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.lookup.weight, std=d_model**-0.5)

    def forward(self, ids):
        return self.lookup(ids) * math.sqrt(self.lookup.embedding_dim)


def sinusoidal_table(max_len, d_model):
    """(max_len, D): sine and cosine of each frequency side by side."""
    position = torch.arange(max_len, dtype=torch.float64)[:, None]
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model  # (D / 2,)
    angle = position / 10000**exponent  # (max_len, D / 2)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1).float()


class Transformer(nn.Module):
    def __init__(self, vocab_size=12, d_model=32, n_heads=4, d_ff=64, n_layers=2, dropout=0.1,
                 max_len=64):
        super().__init__()
        sizes = (d_model, n_heads, d_ff, dropout)
        self.d_model = d_model
        self.src_embedding = Embedding(vocab_size, d_model)
        self.tgt_embedding = Embedding(vocab_size, d_model)
        self.register_buffer("positions", sinusoidal_table(max_len, d_model), persistent=False)
        self.dropout = nn.Dropout(dropout)
        self.encoder = Stack(n_layers, *sizes)
        self.decoder = Stack(n_layers, *sizes, cross_attention=True)
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        for weight in [*self.encoder.parameters(), *self.decoder.parameters()]:
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
        nn.init.normal_(self.output.weight, std=d_model**-0.5)

    def forward(self, src, tgt):
        """src (B, S), tgt (B, T) -> logits (B, T, V)"""
        memory = self.encode(src)
        return self.output(self.decode(tgt, memory, padding_mask(src)))

    def embed(self, x, start=0):
        return self.dropout(x + self.positions[start : start + x.size(1)])

    def encode(self, src):
        return self.encoder(self.embed(self.src_embedding(src)), padding_mask(src))

    def decode(self, tgt, memory, memory_mask, caches=None):
        start = caches[0]["k"].size(2) if caches and caches[0] else 0
        x = self.embed(self.tgt_embedding(tgt), start)
        mask = causal_mask(start + tgt.size(1))[:, :, start:]
        if not start:
            mask = mask & padding_mask(tgt)
        return self.decoder(x, mask, memory, memory_mask, caches)


# ---------------------------------------------------------------------------------------- the data

SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>"]
SOURCE = {word: i for i, word in enumerate([*SPECIAL, *"abcdefgh"])}
TARGET = {word: i for i, word in enumerate([*SPECIAL, *"ABCDEFGH"])}


def make_pairs(count, seed=0, shortest=2, longest=5):
    """[(letters, the same backwards in capitals), ...]"""
    rng = random.Random(seed)
    rows = [rng.choices("abcdefgh", k=rng.randint(shortest, longest)) for _ in range(count)]
    return [(row, [letter.upper() for letter in reversed(row)]) for row in rows]


def split(pairs, held_out):
    """(pairs to train on, pairs to test on); no pair is in both."""
    test = pairs[:held_out]
    return [pair for pair in pairs[held_out:] if pair not in test], test


def encode_words(words, vocabulary):
    """The ids of the words, then <eos>; a word that the vocabulary doesn't hold is <unk>."""
    return [vocabulary.get(word, UNK) for word in words] + [EOS]


def decode_ids(ids, vocabulary):
    """The words before <eos>."""
    words = list(vocabulary)
    ids = ids[: ids.index(EOS)] if EOS in ids else ids
    return [words[i] for i in ids if i != PAD]


def pad(sequences):
    longest = max(map(len, sequences))
    return torch.tensor([[*ids, *[PAD] * (longest - len(ids))] for ids in sequences])


def make_batch(pairs):
    """src (B, S), and tgt (B, T + 1) with <bos> first"""
    src = pad([encode_words(source, SOURCE) for source, _ in pairs])
    tgt = pad([[BOS, *encode_words(target, TARGET)] for _, target in pairs])
    return src, tgt


def shuffled(pairs, epoch):
    """The pairs in the order of one epoch."""
    return random.Random(epoch).sample(pairs, len(pairs))


# ---------------------------------------------------------------------------------------- training


def label_smoothed_cross_entropy(logits, targets, smoothing=0.1):
    """Mean over the real tokens; logits (..., V), targets (...)."""
    log_p = logits.log_softmax(-1)
    loss = -log_p.gather(-1, targets[..., None]).squeeze(-1)  # (...)
    uniform = -log_p.mean(-1)
    loss = (1 - smoothing) * loss + smoothing * uniform
    real = targets != PAD
    return (loss * real).sum() / real.sum()


def noam(step, d_model, warmup):
    """The learning rate of update `step`; steps are counted from 1."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def sequence_loss(model, batch, smoothing=0.1):
    src, tgt = batch
    read, predicted = tgt[:, :-1], tgt[:, 1:]
    return label_smoothed_cross_entropy(model(src, read), predicted, smoothing)


class Training:
    """A model in training, which can be interrupted: update(), state(), restore()."""

    def __init__(self, model, pairs, batch_size=32, accumulate=1, warmup=100):
        self.model, self.pairs, self.batch_size = model, pairs, batch_size
        self.accumulate, self.warmup = accumulate, warmup
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True
        )
        self.step, self.seen = 0, 0  # updates, batches
        self.curve = []  # loss by update

    def next_batch(self):
        per_epoch = math.ceil(len(self.pairs) / self.batch_size)
        epoch, place = divmod(self.seen, per_epoch)
        self.seen += 1
        start = place * self.batch_size
        return make_batch(shuffled(self.pairs, epoch)[start : start + self.batch_size])

    def update(self):
        self.step += 1
        self.model.train()
        rate = noam(self.step, self.model.d_model, self.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        together = [self.next_batch() for _ in range(self.accumulate)]
        n_tokens = sum(int((tgt[:, 1:] != PAD).sum()) for _, tgt in together)
        total = 0.0
        for i, batch in enumerate(together):
            share = int((batch[1][:, 1:] != PAD).sum()) / n_tokens
            loss = sequence_loss(self.model, batch) * share
            loss.backward()
            total += loss.item()
            if (i + 1) % self.accumulate == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad()
        self.curve.append(total)

    def state(self):
        """All that the next update depends on."""
        return copy.deepcopy({
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "seen": self.seen,
            "random": torch.get_rng_state(),
        })

    def restore(self, state):
        state = copy.deepcopy(state)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.seen = state["step"], state["seen"]
        torch.set_rng_state(state["random"])


@torch.no_grad()
def validation_loss(model, pairs):
    was_training = model.training
    model.eval()
    loss = sequence_loss(model, make_batch(pairs), smoothing=0.0).item()
    model.train(was_training)
    return loss


def train(training, steps, held_out, validate_every=50):
    """Train until update `steps`; the model ends with its best weights. Returns their loss."""
    best, lowest = None, math.inf
    while training.step < steps:
        training.update()
        if training.step % validate_every == 0 or training.step == steps:
            loss = validation_loss(training.model, held_out)
            if best is None or loss < lowest:
                lowest, best = loss, copy.deepcopy(training.model.state_dict())
    training.model.load_state_dict(best)
    return lowest


# ---------------------------------------------------------------------------------------- decoding


@torch.no_grad()
def greedy_decode(model, src, max_len=12):
    """src (B, S) -> ids (B, T), <eos> included, then padding"""
    was_training = model.training
    model.eval()
    memory, caches = model.encode(src), [{} for _ in model.decoder.layers]
    ids = torch.full((len(src), 1), BOS)
    done = torch.zeros(len(src), dtype=torch.bool)
    for step in range(max_len):
        hidden = model.decode(ids[:, step:], memory, padding_mask(src), caches)
        token = model.output(hidden[:, -1]).argmax(-1)  # (B,)
        token = token.masked_fill(done, PAD)
        ids = torch.cat([ids, token[:, None]], 1)
        done = done | (token == EOS)
        if done.all():
            break
    model.train(was_training)
    return ids[:, 1:]


def translate(model, sources, batch_size=16):
    """Lists of letters -> lists of letters; sentences of similar length share a batch."""
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    outputs = [None] * len(sources)
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        src = pad([encode_words(sources[i], SOURCE) for i in chosen])
        for i, ids in zip(chosen, greedy_decode(model, src).tolist(), strict=True):
            outputs[i] = decode_ids(ids, TARGET)
    return outputs


def score(model, pairs):
    """The share of sources whose translation is right to the last letter."""
    outputs = translate(model, [source for source, _ in pairs])
    right = [output == pair[1] for output, pair in zip(outputs, pairs, strict=True)]
    return sum(right) / len(right)


def beam_search(log_probs, beam_size=4, max_len=12, length_penalty=1.0):
    """log_probs(ids) -> (V,), for the token after ids. Returns the best ids and their score.

    A hypothesis scores (sum of log-probabilities) / length ** length_penalty; <eos> counts, too.
    """
    beam, finished = [([], 0.0)], []
    for _ in range(max_len):
        candidates = [
            ([*prefix, token], total + p)
            for prefix, total in beam
            for token, p in enumerate(log_probs(prefix).tolist())
        ]
        candidates.sort(key=lambda candidate: candidate[1], reverse=True)
        ended = [candidate for candidate in candidates[:beam_size] if candidate[0][-1] == EOS]
        finished += [(ids, total / len(ids) ** length_penalty) for ids, total in ended]
        beam = [candidate for candidate in candidates if candidate[0][-1] != EOS][:beam_size]
        if len(finished) >= beam_size:
            break
    else:  # at the length limit, take the hypotheses as they are
        finished += [(ids, total / len(ids) ** length_penalty) for ids, total in beam]
    return max(finished, key=lambda hypothesis: hypothesis[1])


@torch.no_grad()
def beam_translate(model, source, **options):
    """One list of letters -> its translation by beam search."""
    model.eval()
    src = pad([encode_words(source, SOURCE)])
    memory = model.encode(src)

    def log_probs(prefix):
        hidden = model.decode(torch.tensor([[BOS, *prefix]]), memory, padding_mask(src))
        return model.output(hidden[0, -1]).log_softmax(-1)

    return decode_ids(beam_search(log_probs, **options)[0], TARGET)


# ------------------------------------------------------------------------------------ all together


def main(words, updates=600):
    """Train on random rows of letters, report progress, then write these words backwards."""
    if strange := [word for word in words if not word or set(word) - SOURCE.keys()]:
        sys.exit(f"{strange[0]!r} must be made of the letters a to h: the model learns no others.")
    torch.manual_seed(0)
    pairs, held_out = split(make_pairs(2000), held_out=200)
    training = Training(Transformer(), pairs)
    for step in range(100, updates + 1, 100):
        loss = train(training, step, held_out, validate_every=100)
        print(f"update {step:4}: loss {loss:.3f} on rows held out of training")
    print(f"{score(training.model, held_out):.0%} of {len(held_out)} new rows are right")
    for word in words:
        greedy = translate(training.model, [list(word)])[0]
        best = beam_translate(training.model, word)
        print(f"{word} -> {''.join(greedy)} (greedy), {''.join(best)} (beam search)")


if __name__ == "__main__":
    main(sys.argv[1:] or ["bad", "cafe", "faced"])
