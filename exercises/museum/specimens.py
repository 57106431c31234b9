# ruff: noqa: E501 (lines of the program are quoted whole)
"""The specimens: real bugs of Transformer code, each as a small change of the healthy program.

    bug = SPECIMENS["mask-thrown-away"]
    print(bug.diff())         # the lines, broken and right
    program = bug.program()   # the whole program with the bug in it, ready to use

What a specimen does when it runs is recorded in results/museum.json. After adding one:
`python -m recordings.museum NAME`, then `python -m recordings.checksums`.
"""

import difflib
import inspect
import linecache
import types
from dataclasses import dataclass

from exercises.museum.laws import LAWS
from transformer_lib import one_file as healthy

HERE = "met while building this book"
PUBLIC = "several public implementations"
CHAPTERS = {  # page: its name
    "02_scaled_dot_product_attention": "Scaled dot-product attention",
    "03_masks": "Masks",
    "04_multi_head_attention": "Multi-head attention",
    "05_tokens_and_embeddings": "Tokens and embeddings",
    "06_positional_encodings": "Positional encodings",
    "07_normalization": "Normalisation",
    "07a_pre_norm_and_warm_up": "Pre-norm, post-norm and warm-up",
    "08_feed_forward_and_residuals": "Feed-forward and residuals",
    "09_encoder": "The encoder",
    "10_decoder": "The decoder",
    "11_whole_model": "The whole model",
    "12_batches_loss_schedule": "Batches, loss and schedule",
    "14_multi30k_data": "Multi30k",
    "15_decoding": "Decoding",
    "16_training_on_multi30k": "Training on Multi30k",
    "17_evaluation": "Evaluation and error analysis",
}


def changed(edits, program=healthy):
    """A program's text with some lines replaced; each old text must occur there once."""
    text = inspect.getsource(program)
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"the program contains {old!r} {text.count(old)} times, not once.")
        text = text.replace(old, new)
    return text


def difference(edits, program=healthy):
    """The changed lines with one line around them; - is right, + is broken."""
    before, after = inspect.getsource(program).splitlines(), changed(edits, program).splitlines()
    lines = list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]
    return "\n".join(line for line in lines if not line.startswith("@@"))


def run(text, name):
    """A program from its text, as a module of its own whose lines errors can show."""
    module = types.ModuleType(name)
    module.__file__ = f"<{name}>"
    linecache.cache[module.__file__] = (len(text), None, text.splitlines(True), module.__file__)
    exec(compile(text, module.__file__, "exec"), vars(module))
    return module


@dataclass(frozen=True)
class Specimen:
    """One bug. Numbers in `looks` come from its record and from that of the healthy program."""

    name: str
    title: str  # what is wrong, in a few words
    page: str  # the chapter that builds the part
    edits: tuple  # ((lines of the healthy program, the broken lines), ...)
    looks: str  # what is seen from outside
    why: str  # how the line leads there
    hides: str  # how long, and behind what
    law: str  # the name of the law that catches it
    source: str = HERE  # where it was met: an address, or words
    shows: tuple = ("curve", "outputs")  # of the record: also "attention", "says"
    runs: str = "trained"  # "used": with the healthy program's weights; "resumed": interrupted once
    confused_with: tuple = ()  # specimens that a guess may fall for

    def program(self):
        """The healthy program with this bug, as a module."""
        return run(changed(self.edits), self.name)

    def diff(self):
        """The changed lines; see difference."""
        return difference(self.edits)

    def caught_by(self):
        """The law, a function of a program."""
        return LAWS[self.law]


class Catalogue(dict):
    """{name: bug}, filled one by one; `kind` is Specimen, or a Case of a wing."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def add(self, name, title, page, *edits, **fields):
        if name in self:
            raise ValueError(f"there are two bugs named {name!r}: give one another name.")
        self[name] = self.kind(name, title, page, edits, **fields)

    def __missing__(self, name):
        raise KeyError(f"there is no bug named {name!r}; the bugs are {', '.join(self)}.")


SPECIMENS = Catalogue(Specimen)
specimen = SPECIMENS.add


GITHUB = "https://github.com/"
MASKING = "        scores = scores.masked_fill(~mask, -math.inf)\n"
LOSS_END = "    return (loss * real).sum() / real.sum()\n"

# ------------------------------------------------------------------------------------------- masks

specimen(
    "mask-thrown-away", "The masked scores are thrown away", "03_masks",
    (MASKING, "        scores.masked_fill(~mask, -math.inf)\n"),
    looks="Training loss {loss}; validation loss {validation}. Correct translations: {share}.",
    why="masked_fill returns a new tensor. Without the underscore, and without the assignment, the "
        "scores stay as they were, and each position reads the token that it should predict.",
    hides="As long as you only watch the loss, which looks better than it should.",
    law="the_past_ignores_the_future", source=GITHUB + "lucidrains/flamingo-pytorch/issues/10",
    shows=("curve", "outputs", "attention"),
    confused_with=("target-not-shifted", "mask-of-the-past", "norm-over-tokens"),
)
specimen(
    "mask-tiny-number", "The hidden scores become a tiny number, not minus infinity", "03_masks",
    (MASKING, "        scores = scores.masked_fill(~mask, -1e-12)\n"),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="-1e-12 is nearly 0, a score like any other. The softmax gives it its full share.",
    hides="Until something is decoded. The mask is there, has the right shape, and is used.",
    law="the_past_ignores_the_future", source=GITHUB + "hyunwoongko/transformer/issues/10",
    shows=("curve", "outputs", "attention"),
    confused_with=("mask-thrown-away", "target-not-shifted", "scale-forgotten"),
)
specimen(
    "mask-of-the-past", "The causal mask is upside down", "03_masks",
    ("dtype=torch.bool).tril()\n", "dtype=torch.bool).triu()\n"),
    looks="Training loss {loss}; validation loss {validation}. The model writes one letter again and "
          "again. Correct translations: {share}.",
    why="triu keeps the diagonal and what's above it, so every position reads itself and the future.",
    hides="Until something is decoded, because then there's no future to read.",
    law="the_past_ignores_the_future", source=GITHUB + "pytorch/examples/issues/649",
    shows=("curve", "outputs", "attention"),
    confused_with=("mask-thrown-away", "target-not-shifted", "mask-one-too-far"),
)
specimen(
    "mask-one-too-far", "The causal mask lets one token too many through", "03_masks",
    ("dtype=torch.bool).tril()\n", "dtype=torch.bool).tril(diagonal=1)\n"),
    looks="Training loss {loss}; validation loss {validation}. The outputs don't end. "
    "Correct translations: {share}.",
    why="Position t predicts token t + 1, and diagonal=1 shows it exactly that token.",
    hides="Until something is decoded. At a glance, a picture of the mask looks right.",
    law="the_past_ignores_the_future",
    shows=("curve", "outputs", "attention"),
    confused_with=("mask-of-the-past", "target-not-shifted", "masks-joined-by-or"),
)
specimen(
    "masks-joined-by-or", "Two masks are combined with “or”", "03_masks",
    ("            mask = mask & padding_mask(tgt)\n", "            mask = mask | "
    "padding_mask(tgt)\n"),
    looks="Training loss {loss}; validation loss {validation}. Most outputs are empty. "
          "Correct translations: {share}.",
    why="A key may be read if it's both earlier and real. With “or”, every "
    "real token may be read, future ones included.",
    hides="Until something is decoded: a test of either mask on its own passes.",
    law="the_past_ignores_the_future", shows=("curve", "outputs"),
    confused_with=("mask-thrown-away", "padding-masks-queries", "target-not-shifted"),
)
specimen(
    "padding-masks-queries", "The padding mask hides queries instead of keys", "03_masks",
    ("    return (ids != PAD)[:, None, None, :]\n", "    return (ids != PAD)[:, None, :, None]\n"),
    looks="In a batch, {right:.0%} of the outputs are correct; one sentence at a time, {alone:.0%}, with healthy "
          "weights.",
    why="The last axis but one belongs to the queries, so real tokens go on reading padding. A "
    "target of one token fits by broadcasting, so decoding runs; longer ones may not even fit.",
    hides="In a model without cross-attention, for good: there, all the shapes fit.",
    law="real_tokens_ignore_padding", source=PUBLIC,
    shows=("outputs", "says"), runs="used",
    confused_with=("source-padding-read", "positions-too-short", "heads-not-transposed"),
)
specimen(
    "mask-other-convention", "The padding mask is True where nobody may look", "03_masks",
    ("    return (ids != PAD)[:, None, None, :]\n", "    return (ids == PAD)[:, None, None, :]\n"),
    looks="Training loss {loss}. Correct translations: {share}. The outputs have nothing to do with "
          "their sources.",
    why="PyTorch's nn.MultiheadAttention hides the keys where its mask is True; its "
    "scaled_dot_product_attention reads those. If you take the wrong one of the two, only "
    "padding is read, and what's left is a language model without a source.",
    hides="As long as nobody compares the outputs with their sources: the loss does fall at first.",
    law="the_output_depends_on_the_source", source=GITHUB + "lucidrains/halonet-pytorch/issues/4",
    confused_with=("vocabularies-swapped", "positions-forgotten", "encoder-detached"),
)
specimen(
    "source-padding-read", "Cross-attention gets no mask", "10_decoder",
    ("self.cross_attention(y, memory, memory_mask))", "self.cross_attention(y, memory))"),
    looks="In a batch, {right:.0%} of the outputs are correct; one sentence at a time, {alone:.0%}, with healthy "
          "weights.",
    why="The sources of a batch are padded to the longest of them, and the decoder reads the memory "
        "of the padding as well.",
    hides="As long as all sentences of a batch have the same length, and in every test with a "
    "single sentence.",
    law="real_tokens_ignore_padding", shows=("outputs", "says"), runs="used",
    confused_with=("order-not-restored", "first-end-ends-all", "mask-thrown-away"),
)
specimen(
    "row-of-nothing", "A query that may read nothing becomes NaN", "03_masks",
    ("    weights = scores.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)\n",
     "    weights = scores.softmax(-1)\n"),
    looks="Correct translations: {share}. As soon as a query has no key left, everything is nan.",
    why="The softmax of a row of minus infinities is 0 / 0. One such row makes the loss NaN, and "
        "the next update makes all weights NaN.",
    hides="Until the first empty source, or the first batch that's padded on the left.",
    law="a_query_with_no_key_gets_zeros", source=GITHUB + "pytorch/pytorch/issues/41508",
    shows=("says",), runs="used",
    confused_with=("mask-too-large-a-number", "smoothing-infinite", "mask-thrown-away"),
)
specimen(
    "mask-too-large-a-number", "-1e9 doesn't fit into half precision", "03_masks",
    (MASKING, "        scores = scores.masked_fill(~mask, -1e9)\n"),
    looks="Correct translations: {share}. In half precision the first forward pass stops.",
    why="The largest float16 is 65,504. Besides, a query that may read nothing gets the mean of "
    "all values, because its scores are all equal.",
    hides="Until somebody turns on mixed precision.",
    law="half_precision_is_finite", source=GITHUB + "NVIDIA/apex/issues/1052",
    shows=("says",), runs="used",
    confused_with=("row-of-nothing", "mask-tiny-number", "scale-forgotten"),
)

# --------------------------------------------------------------------------------------- attention

SCALED = "    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # (..., T, S)\n"
specimen(
    "scale-forgotten", "The scores are not divided by the root of d_k", "02_scaled_dot_product_attention",
    (SCALED, "    scores = q @ k.transpose(-2, -1)  # (..., T, S)\n"),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="Scores grow with the width of a head, so the softmax starts out sharper, and training "
    "starts from a different point.",
    hides="For a long time: the model does learn, only worse, and that looks like a badly chosen learning "
    "rate.",
    law="scores_have_unit_variance", source=GITHUB + "PAIR-code/tiny-transformers/issues/71",
    confused_with=("scale-of-the-model", "embedding-not-scaled", "norm-unbiased"),
)
specimen(
    "scale-of-the-model", "The scores are divided by the root of d_model", "02_scaled_dot_product_attention",
    ("        output, self.weights = scaled_dot_product_attention(q, k, v, mask, dropout_p)\n",
     "        q = q / self.n_heads**0.5  # sqrt(d_model) in place of sqrt(d_k)\n"
     "        output, self.weights = scaled_dot_product_attention(q, k, v, mask, dropout_p)\n"),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="Each head works on d_model / n_heads features. If you divide by more, the weights start "
    "out flatter, and the projections can learn to make up for it.",
    hides="For good: only weights from elsewhere, or a law, will show it.",
    law="scores_have_unit_variance", source=GITHUB + "karpathy/ng-video-lecture/pull/6",
    confused_with=("scale-forgotten", "embedding-not-scaled", "norm-outside-epsilon"),
)
specimen(
    "softmax-over-queries", "The softmax runs over the queries", "02_scaled_dot_product_attention",
    ("masked_fill(nothing, 0.0).softmax(-1)", "masked_fill(nothing, 0.0).softmax(-2)"),
    looks="The first loss is {first}, and so are all the others.",
    why="Each key shares itself out among the queries. A padded key may be read by none of them, "
    "so its column is all minus infinities, and that gives 0 / 0.",
    hides="Here, not for a moment. With -1e9 in place of minus infinity, for a long time: the "
    "weights lie between 0 and 1, and the loss falls.",
    law="weights_are_distributions", source=GITHUB + "labmlai/annotated_deep_learning_paper_implementations/issues/146",
    shows=("curve", "outputs", "attention"),
    confused_with=("mask-thrown-away", "norm-over-tokens", "heads-not-transposed"),
)
specimen(
    "heads-not-transposed", "Heads are split by a view, without the transpose", "04_multi_head_attention",
    ("        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)\n",
     "        return x.reshape(x.size(0), self.n_heads, x.size(1), -1)\n"),
    looks="Training loss {loss}; validation loss {validation}. Correct translations: {share}.",
    why="The shape is right and the numbers are not: a head gets whole tokens instead of a slice "
    "of each, and a position contains features of several tokens, later ones included.",
    hides="Until something is decoded. In a model that doesn't decode, for good: it trains all the "
    "same.",
    law="heads_keep_tokens_apart", source=GITHUB + "reczoo/FuxiCTR/issues/30",
    shows=("curve", "outputs"),
    confused_with=("heads-not-joined", "softmax-over-queries", "mask-thrown-away"),
)
specimen(
    "heads-not-joined", "Heads are joined by a view, without the transpose back", "04_multi_head_attention",
    ("        return x.transpose(1, 2).flatten(2)\n",
     "        return x.reshape(x.size(0), x.size(2), -1)\n"),
    looks="Training loss {loss}; validation loss {validation}. Correct translations: {share}.",
    why="A token's new vector is made from one head's outputs for several tokens.",
    hides="Until something is decoded. (Where it was found, a test that trained a model had passed "
    "all the same: its task was to copy.)",
    law="heads_keep_tokens_apart", source=GITHUB + "jsbaan/transformer-from-scratch/pull/6",
    confused_with=("heads-not-transposed", "softmax-over-queries", "norm-over-tokens"),
)
specimen(
    "attention-never-drops", "The dropout of the attention weights is not passed on", "04_multi_head_attention",
    ("        self.self_attention = MultiHeadAttention(d_model, n_heads, dropout)\n",
     "        self.self_attention = MultiHeadAttention(d_model, n_heads)\n"),
    looks="Training loss {loss}. Correct translations: {share}. The model is regularised less than "
    "you asked for.",
    why="The argument has a default of 0, so nothing complains that it's missing.",
    hides="For good, unless the experiment is about regularisation.",
    law="attention_drops_in_training", source=PUBLIC, shows=("curve", "says"),
    confused_with=("dropout-off-for-good", "norm-unbiased", "scale-forgotten"),
)

# --------------------------------------------------------------------------- norms, residuals, places

NORM_END = "        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias\n"
specimen(
    "norm-unbiased", "The norm divides by the unbiased standard deviation", "07_normalization",
    ("        variance = x.var(-1, keepdim=True, unbiased=False)\n",
     "        variance = x.var(-1, keepdim=True)\n"),
    looks="Training loss {loss}. Correct translations: {share}. Compared with nn.LayerNorm with "
    "the same gain and bias, the numbers differ.",
    why="var divides by D - 1 unless you tell it not to. The gain can learn the factor.",
    hides="Until somebody loads weights that were trained elsewhere.",
    law="the_norm_equals_pytorchs", source=GITHUB + "harvardnlp/annotated-transformer/issues/122",
    shows=("says",),
    confused_with=("norm-outside-epsilon", "norm-one-gain", "scale-of-the-model"),
)
specimen(
    "norm-outside-epsilon", "Epsilon is outside the root", "07_normalization",
    (NORM_END, "        return (x - mean) / (torch.sqrt(variance) + self.eps) * self.weight + "
    "self.bias\n"),
    looks="Training loss {loss}. Correct translations: {share}. Compared with nn.LayerNorm, very "
    "small vectors give different results.",
    why="Inside the root, epsilon keeps very small vectors small. Outside, it's far too small "
    "for that, and they're blown up to size 1.",
    hides="For good: a test on ordinary numbers passes.",
    law="the_norm_equals_pytorchs", source=GITHUB + "codertimo/BERT-pytorch/issues/30",
    shows=("says",),
    confused_with=("norm-unbiased", "norm-one-gain", "scale-forgotten"),
)
specimen(
    "norm-one-gain", "One gain serves all features", "07_normalization",
    ("nn.Parameter(torch.ones(d_model))", "nn.Parameter(torch.ones(1))"),
    ("nn.Parameter(torch.zeros(d_model))", "nn.Parameter(torch.zeros(1))"),
    looks="Training loss {loss}. Correct translations: {share}. The model has {parameters:,} "
          "parameters; {healthy[parameters]:,} are expected.",
    why="Where there should be a vector, a scalar broadcasts without any warning.",
    hides="Until weights are loaded, because their shapes don't fit.",
    law="a_feature_can_be_scaled_alone", source=PUBLIC,
    confused_with=("norm-unbiased", "layers-in-a-list", "one-layer-many-times"),
)
specimen(
    "norm-over-tokens", "The norm averages over the tokens", "07_normalization",
    ("        mean = x.mean(-1, keepdim=True)\n        variance = x.var(-1, keepdim=True, "
    "unbiased=False)\n",
     "        mean = x.mean(1, keepdim=True)\n        variance = x.var(1, keepdim=True, "
     "unbiased=False)\n"),
    looks="Training loss {loss}; validation loss {validation}. Correct translations: {share}.",
    why="Axis 1 is the tokens of a sentence. The mean tells each position about the later ones, "
    "and in decoding, one token at a time, x - mean is zero.",
    hides="Until something is decoded token by token.",
    law="the_norm_sees_one_token_at_a_time", source=GITHUB + "MorvanZhou/NLP-Tutorials/issues/10",
    confused_with=("mask-thrown-away", "softmax-over-queries", "norm-unbiased"),
)
specimen(
    "residual-normalised", "The residual adds the normalised input", "08_feed_forward_and_residuals",
    ("        return x + self.dropout(sublayer(self.norm(x)))\n",
     "        x = self.norm(x)\n        return x + self.dropout(sublayer(x))\n"),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="The name x is reused, so what should go through untouched is normalised at every "
    "sublayer.",
    hides="For good: the model trains, only somewhat worse. PyTorch's own norm_first had this bug at first.",
    law="a_silent_sublayer_changes_nothing", source=GITHUB + "pytorch/pytorch/issues/61165",
    shows=("curve",),
    confused_with=("final-norm-forgotten", "norm-unbiased", "layers-in-a-list"),
)
specimen(
    "final-norm-forgotten", "The norm after the last layer is forgotten",
    "07a_pre_norm_and_warm_up",
    ("        return self.norm(x)\n\n\nclass Embedding", "        return x\n\n\nclass Embedding"),
    looks="Training loss {loss}. Correct translations: {share}. The first loss is {first:.1f}; the "
    "healthy program's is {healthy[first]:.1f}.",
    why="Post-norm ends in a norm anyway. If you turn it into pre-norm, you have to add one at "
    "the end.",
    hides="For good: the model trains just as well. Only the first loss gives it away.",
    law="the_output_keeps_its_size_with_depth", source=PUBLIC,
    confused_with=("residual-normalised", "output-too-large", "norm-one-gain"),
)
specimen(
    "embedding-not-scaled", "The embedding is not multiplied by the root of d_model", "05_tokens_and_embeddings",
    ("        return self.lookup(ids) * math.sqrt(self.lookup.embedding_dim)\n",
     "        return self.lookup(ids)\n"),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="The numbers in a row start at a size of 1 / sqrt(d_model), and the positions drown them out; "
        "training has to make them grow first.",
    hides="For a long time: the model does learn, only later.",
    law="letters_and_places_have_one_size",
    confused_with=("scale-forgotten", "positions-forgotten", "rate-by-epoch"),
)
specimen(
    "positions-forgotten", "Positions are never added", "06_positional_encodings",
    ("        return self.dropout(x + self.positions[start : start + x.size(1)])\n",
     "        return self.dropout(x)\n"),
    looks="Training loss {loss}. The letters are often right, but their order isn't. "
    "Correct translations: {share}.",
    why="Attention doesn't know where a key is, so the source is a bag of letters.",
    hides="Here, not at all. In translation, where the words themselves suggest their order, for "
    "weeks.",
    law="the_order_of_the_source_counts",
    confused_with=("waves-at-two-speeds", "mask-other-convention", "vocabularies-swapped"),
)
specimen(
    "waves-at-two-speeds", "Sine and cosine of a pair have different frequencies", "06_positional_encodings",
    ("    angle = position / 10000**exponent  # (max_len, D / 2)\n"
     "    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1).float()\n",
     "    sine, cosine = position / 10000 ** (2 * exponent), position / 10000 ** (2 * exponent + "
     "2 / d_model)\n"
     "    return torch.stack([sine.sin(), cosine.cos()], -1).flatten(1).float()\n"),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="The exponent already counts in steps of two, and the formula's 2 is then applied again. A "
        "step of k places is no longer a rotation, and half of the waves are nearly constant.",
    hides="For good: the bug is in the code of a much-copied tutorial.",
    law="positions_turn_at_one_speed", source=GITHUB + "SamLynnEvans/Transformer/issues/25",
    confused_with=("positions-forgotten", "positions-too-short", "embedding-not-scaled"),
)
specimen(
    "positions-too-short", "The table of positions ends with the training data", "06_positional_encodings",
    ("                 max_len=64):", "                 max_len=9):"),
    looks="Correct translations: {share}, on sentences like those in training. A longer one stops "
          "the program.",
    why="The table was made for sentences no longer than those in training.",
    hides="Until the first longer sentence at inference.",
    law="longer_sentences_than_in_training_work", source=PUBLIC, shows=("says",), runs="used",
    confused_with=("waves-at-two-speeds", "cache-forgets-place", "padding-masks-queries"),
)

# ---------------------------------------------------------------------------------- the whole model

specimen(
    "one-layer-many-times", "The same layer is used many times", "09_encoder",
    ("        self.layers = nn.ModuleList([Layer(*sizes, cross_attention) for _ in "
    "range(n_layers)])\n",
     "        self.layers = nn.ModuleList([Layer(*sizes, cross_attention)] * n_layers)\n"),
    looks="In a model of one layer, there's nothing to see. In a model of two, parameters are "
    "missing.",
    why="A list times n contains the same object n times, so the layers share their weights.",
    hides="For good: the model trains, only somewhat worse. The parameter count gives it away.",
    law="every_layer_has_weights_of_its_own", source=GITHUB + "espnet/espnet/issues/1278",
    shows=("says",), runs="used",
    confused_with=("layers-start-alike", "layers-in-a-list", "norm-one-gain"),
)
specimen(
    "layers-start-alike", "All layers start as copies of one", "11_whole_model",
    ("        self.layers = nn.ModuleList([Layer(*sizes, cross_attention) for _ in "
    "range(n_layers)])\n",
     "        layer = Layer(*sizes, cross_attention)\n"
     "        self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(n_layers)])\n"),
    (("            if weight.dim() > 1:\n                nn.init.xavier_uniform_(weight)\n",
      "            pass  # the initialisation of each layer is kept\n")),
    looks="Training loss {loss}. Correct translations: {share}. In a model of several layers, they "
    "all start out as the same function.",
    why="deepcopy copies the random numbers, too. If all weights are drawn again afterwards, "
    "that does no harm; if they aren't, all layers start out as the same function.",
    hides="For good: the layers drift apart in training.",
    law="every_layer_has_weights_of_its_own", source=GITHUB + "pytorch/pytorch/issues/86274",
    shows=("curve", "says"),
    confused_with=("one-layer-many-times", "layers-in-a-list", "output-too-large"),
)
specimen(
    "layers-in-a-list", "The layers are in a Python list", "09_encoder",
    ("        self.layers = nn.ModuleList([Layer(*sizes, cross_attention) for _ in "
    "range(n_layers)])\n",
     "        self.layers = [Layer(*sizes, cross_attention) for _ in range(n_layers)]\n"),
    looks="Training loss {loss}. Correct translations: {share}. The model has {parameters:,} "
          "parameters; {healthy[parameters]:,} are expected.",
    why="A module doesn't look into plain lists, so the layers aren't in parameters(): they "
    "aren't trained, saved or moved to the GPU, and eval() doesn't reach their dropout.",
    hides="Until somebody counts the parameters, or loads the weights: they aren't in the file.",
    law="every_parameter_learns", source=GITHUB + "pytorch/pytorch/issues/59925",
    confused_with=("encoder-detached", "rate-by-epoch", "one-layer-many-times"),
)
specimen(
    "encoder-detached", "The encoder is cut off from the gradient", "11_whole_model",
    ("        memory = self.encode(src)\n        return self.output(",
     "        memory = self.encode(src).detach()\n        return self.output("),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="All it takes is one detach, .data or no_grad too many: the decoder learns to read a "
        "random encoder.",
    hides="For a long time: a random encoder keeps much of what it reads, so the loss falls.",
    law="every_parameter_learns",
    confused_with=("layers-in-a-list", "embedding-not-scaled", "rate-by-epoch"),
)
specimen(
    "output-too-large", "The output projection starts far too large", "11_whole_model",
    ("        nn.init.normal_(self.output.weight, std=d_model**-0.5)\n",
     "        nn.init.normal_(self.output.weight)\n"),
    looks="The first loss is {first:.1f}; guessing among all tokens gives {guess:.1f}. At the "
          "end: {loss}. Correct translations: {share}.",
    why="With rows of standard deviation 1, as nn.Embedding makes them, the logits have a standard "
    "deviation of sqrt(d_model), and the untrained model is sure of nonsense. With tied "
    "weights, the embedding is too large as well.",
    hides="Once a few hundred steps have been taken: by then, only the first number in the log shows it.",
    law="an_untrained_model_knows_nothing",
    confused_with=("rate-by-epoch", "final-norm-forgotten", "gradient-never-cleared"),
)

# ---------------------------------------------------------------------------------- loss and updates

specimen(
    "target-not-shifted", "The target is not shifted", "12_batches_loss_schedule",
    ("    read, predicted = tgt[:, :-1], tgt[:, 1:]\n",
     "    read, predicted = tgt[:, :-1], tgt[:, :-1]\n"),
    looks="Training loss {loss}; it reaches its floor within a few dozen updates. Correct translations: "
          "{share}.",
    why="The model is asked for the token that it has just read. So it copies that token: after <bos> "
    "it says <bos>, and goes on saying it.",
    hides="Until something is decoded; the loss is perfect.",
    law="a_parrot_scores_badly", source=PUBLIC,
    confused_with=("mask-thrown-away", "mask-one-too-far", "end-is-padding"),
)
specimen(
    "padding-counted", "Padding counts in the loss", "12_batches_loss_schedule",
    ("    real = targets != PAD\n", "    real = torch.ones_like(targets)\n"),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="Padding is easy to predict, so it pulls the mean down, and by how much depends on which "
        "sentences share a batch.",
    hides="For good, if losses are never compared between batch sizes or programs.",
    law="the_loss_ignores_padding", source=PUBLIC,
    confused_with=("loss-per-place", "softmax-twice", "end-is-padding"),
)
specimen(
    "loss-per-place", "The loss is divided by all positions, padding included", "12_batches_loss_schedule",
    (LOSS_END, "    return (loss * real).mean()\n"),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="The sum leaves padding out but the division doesn't, so a batch with a lot of padding "
    "counts less.",
    hides="For good: the number in the log is only somewhat too small.",
    law="the_loss_ignores_padding", source=PUBLIC,
    confused_with=("padding-counted", "accumulated-unweighted", "softmax-twice"),
)
specimen(
    "end-is-padding", "<eos> doubles as padding, and doesn't count", "12_batches_loss_schedule",
    ("    real = targets != PAD\n", "    real = (targets != PAD) & (targets != EOS)\n"),
    looks="Training loss {loss}. The outputs begin well but don't end. Correct "
    "translations: {share}.",
    why="With pad_token = eos_token, leaving padding out of the loss leaves <eos> out as well, "
    "so the model never learns to stop.",
    hides="Until something is decoded.",
    law="the_end_is_learned_too", source=GITHUB + "mlabonne/llm-course/issues/33",
    confused_with=("target-not-shifted", "padding-counted", "beam-rewards-length"),
)
specimen(
    "softmax-twice", "The loss takes the softmax of probabilities", "12_batches_loss_schedule",
    ("    log_p = logits.log_softmax(-1)\n    loss",
     "    log_p = logits.softmax(-1).log_softmax(-1)\n    loss"),
    looks="The loss goes from {first:.2f} to {last:.2f}; the healthy program's goes from "
    "{healthy[first]:.2f} to {healthy[last]:.2f}. Correct translations: {share}.",
    why="Probabilities lie between 0 and 1. As logits, they can never give odds of more than e "
    "to 1, so the loss has a high floor and small gradients.",
    hides="For a long time, disguised as a badly chosen learning rate: the loss does fall, a little.",
    law="the_loss_equals_pytorchs", source=GITHUB + "bowang-lab/Transformer-GCN-QA/pull/32",
    confused_with=("rate-by-epoch", "layers-in-a-list", "padding-counted"),
)
specimen(
    "smoothing-infinite", "Label smoothing by a divergence with log 0", "12_batches_loss_schedule",
    ("    loss = (1 - smoothing) * loss + smoothing * uniform\n",
     "    soft = F.one_hot(targets, logits.size(-1)) * (1 - smoothing)\n"
     "    loss = (soft * (soft.log() - log_p)).sum(-1)\n"),
    looks="The first loss is {first}, and so are all the others.",
    why="The divergence of q from p contains q log q, and to a computer 0 times log 0 is nan.",
    hides="Here, not for a single step. If every token gets a little of the smoothing, the bug hides "
    "until somebody sets the smoothing to 0.",
    law="the_loss_equals_pytorchs", source=PUBLIC, shows=("curve", "says"),
    confused_with=("row-of-nothing", "mask-too-large-a-number", "rate-by-epoch"),
)
specimen(
    "rate-by-epoch", "The schedule counts epochs instead of updates", "12_batches_loss_schedule",
    ("        rate = noam(self.step, self.model.d_model, self.warmup)\n",
     "        rate = noam(1 + self.seen * self.batch_size // len(self.pairs), "
     "self.model.d_model, self.warmup)\n"),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="The step is a number of epochs here, so a warm-up of n updates becomes one of "
    "n epochs.",
    hides="For good, disguised as a badly chosen learning rate.",
    law="the_rate_rises_and_falls",
    confused_with=("softmax-twice", "layers-in-a-list", "embedding-not-scaled"),
)
specimen(
    "gradient-never-cleared", "The gradient is never cleared", "12_batches_loss_schedule",
    ("                self.optimizer.step()\n                self.optimizer.zero_grad()\n",
     "                self.optimizer.step()\n"),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="backward adds to what is already there, so each update's gradient still contains all "
        "the earlier ones.",
    hides="Disguised as a badly chosen learning rate, since a sum of gradients acts like a very heavy momentum.",
    law="an_update_takes_its_own_gradient", source=GITHUB + "pytorch/pytorch/issues/47175",
    confused_with=("rate-by-epoch", "output-too-large", "accumulation-too-early"),
)
specimen(
    "accumulated-unweighted", "Accumulated losses are added without their weights", "12_batches_loss_schedule",
    ("            loss = sequence_loss(self.model, batch) * share\n",
     "            loss = sequence_loss(self.model, batch)\n"),
    looks="Without accumulation, there's nothing to see. With four batches to an update, the "
    "gradient is about four times too long, and clipping and Adam hide that.",
    why="The mean over four batches needs each batch's share of the tokens. Dividing the sum "
    "by four is still wrong if the batches contain different numbers of tokens.",
    hides="For years, in a widely used trainer: Adam divides the gradient by its size.",
    law="many_small_batches_equal_one_large", source=GITHUB + "huggingface/transformers/pull/34191",
    shows=("says",), runs="used",
    confused_with=("accumulation-too-early", "gradient-never-cleared", "loss-per-place"),
)
specimen(
    "accumulation-too-early", "The update comes after the first of the batches", "12_batches_loss_schedule",
    ("            if (i + 1) % self.accumulate == 0:\n", "            if i % self.accumulate == "
    "0:\n"),
    looks="Without accumulation, there's nothing to see. With it, an update takes one new batch "
    "and the rest from last time.",
    why="0 % 4 is 0, so the first batch is enough for an update, and the others wait for the "
    "next one.",
    hides="For good: the loss falls. Only the gradient itself shows it.",
    law="many_small_batches_equal_one_large", shows=("says",), runs="used",
    source=PUBLIC,
    confused_with=("accumulated-unweighted", "gradient-never-cleared", "rate-by-epoch"),
)
specimen(
    "clipped-too-late", "The gradient is clipped after the update", "16_training_on_multi30k",
    ("                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)\n                "
    "self.optimizer.step()\n",
     "                self.optimizer.step()\n                "
     "nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)\n"),
    looks="As long as gradients are short, there's nothing to see. A long one is applied in "
    "full.",
    why="Clipping a gradient that has been used already, and is cleared a line later, does "
    "nothing.",
    hides="Until a batch comes along whose gradient is a hundred times too long.",
    law="an_update_takes_its_own_gradient", shows=("says",), runs="used",
    confused_with=("gradient-never-cleared", "attention-never-drops", "accumulation-too-early"),
)

# ------------------------------------------------------------------------------------------- data

specimen(
    "vocabularies-swapped", "The source is looked up in the target's vocabulary", "14_multi30k_data",
    ("    src = pad([encode_words(source, SOURCE) for source, _ in pairs])\n",
     "    src = pad([encode_words(source, TARGET) for source, _ in pairs])\n"),
    looks="Training loss {loss}. Correct translations: {share}. The outputs hardly differ from "
    "source to "
          "source.",
    why="A look-up with <unk> as its default never fails, so the model sees how many words there "
    "are, and nothing else.",
    hides="As long as nobody prints a batch as text.",
    law="the_source_is_known", source=PUBLIC,
    confused_with=("mask-other-convention", "positions-forgotten", "target-not-shifted"),
)
specimen(
    "test-in-training", "Sentences of the test set are in the training data, too", "14_multi30k_data",
    ("    return [pair for pair in pairs[held_out:] if pair not in test], test\n",
     "    return pairs[held_out:], test\n"),
    looks="Training loss {loss}. The program reports a score of {reported:.0%}, "
    "the healthy one {healthy[reported]:.0%}.",
    why="The data are split by their place in the file, and the file has duplicates.",
    hides="For good: nothing in the log shows it, and everybody believes the score.",
    law="no_test_sentence_is_trained_on", shows=("curve", "says"),
    confused_with=("score-with-the-answer", "dropout-off-for-good", "attention-never-drops"),
)

# --------------------------------------------------------------------------- runs, checkpoints, modes

specimen(
    "optimizer-not-saved", "The optimiser isn't part of the checkpoint", "16_training_on_multi30k",
    ("        self.optimizer.load_state_dict(state[\"optimizer\"])\n", ""),
    looks="Around the interruption the loss goes from {before:.2f} to {after:.2f}. At the end: "
    "{loss}. Correct translations: {share}.",
    why="Adam starts with empty averages, at the full rate, in the middle of training.",
    hides="In every run that isn't interrupted.",
    law="interrupted_is_uninterrupted", source=GITHUB + "NVlabs/stylegan2-ada-pytorch/issues/108",
    shows=("curve",), runs="resumed",
    confused_with=("step-not-restored", "data-from-the-start", "best-is-a-reference"),
)
specimen(
    "step-not-restored", "The schedule starts again when a run is resumed", "16_training_on_multi30k",
    ("        self.step, self.seen = state[\"step\"], state[\"seen\"]\n", "        self.seen = "
    "state[\"seen\"]\n"),
    looks="Around the interruption the loss goes from {before:.2f} to {after:.2f}. At the end: "
    "{loss}. Correct translations: {share}.",
    why="The update's number isn't restored, so the rate begins at its first value again.",
    hides="In every run that isn't interrupted.",
    law="interrupted_is_uninterrupted", shows=("curve",), runs="resumed",
    confused_with=("optimizer-not-saved", "data-from-the-start", "rate-by-epoch"),
)
specimen(
    "data-from-the-start", "A resumed run reads the same data again", "16_training_on_multi30k",
    ("        self.step, self.seen = state[\"step\"], state[\"seen\"]\n", "        self.step = "
    "state[\"step\"]\n"),
    looks="Around the interruption the loss goes from {before:.2f} to {after:.2f}. At the end: "
    "{loss}. Correct translations: {share}. Two runs that should be equal aren't.",
    why="The place in the shuffled epoch isn't restored. A run that's often interrupted sees the "
    "beginning of its data again and again, and may never see the end.",
    hides="For good, unless two runs are compared number by number.",
    law="interrupted_is_uninterrupted", shows=("curve", "says"), runs="resumed",
    confused_with=("optimizer-not-saved", "step-not-restored", "clipped-too-late"),
)
specimen(
    "best-is-a-reference", "The best weights are kept as a reference", "16_training_on_multi30k",
    ("copy.deepcopy(training.model.state_dict())", "training.model.state_dict()"),
    looks="The log gives the best validation loss. The model that comes back has a different one.",
    why="state_dict contains the very tensors that training goes on to change, so the best "
    "weights are always the last.",
    hides="For good, if the last model is the best; PyTorch's own tutorial had this bug.",
    law="the_best_weights_are_kept", source=GITHUB + "pytorch/tutorials/pull/188",
    shows=("says",), runs="used",
    confused_with=("optimizer-not-saved", "dropout-off-for-good", "score-with-the-answer"),
)
specimen(
    "dropout-off-for-good", "After the first validation, dropout stays off", "16_training_on_multi30k",
    ("        self.step += 1\n        self.model.train()\n", "        self.step += 1\n"),
    ("    loss = sequence_loss(model, make_batch(pairs), smoothing=0.0).item()\n    "
    "model.train(was_training)\n",
     "    loss = sequence_loss(model, make_batch(pairs), smoothing=0.0).item()\n"),
    looks="Training loss {loss}. Correct translations: {share}.",
    why="eval() is called for the measurement, and nobody calls train() again.",
    hides="For good: a lower training loss looks like good news.",
    law="measuring_leaves_the_mode_alone", source=GITHUB + "wkentaro/pytorch-fcn/issues/57",
    shows=("curve",),
    confused_with=("attention-never-drops", "test-in-training", "step-not-restored"),
)

# ---------------------------------------------------------------------------------------- decoding

specimen(
    "dropout-on-in-use", "Dropout is left on in decoding", "15_decoding",
    ("    was_training = model.training\n    model.eval()\n    memory, caches",
     "    was_training = model.training\n    memory, caches"),
    looks="Correct translations: {share}, and different ones on the next try. The weights are the "
    "healthy ones.",
    why="The model was last used in training, and nobody called eval().",
    hides="For a long time: many outputs are still right. If you translate the same "
    "source twice, different outputs give it away.",
    law="decoding_repeats_itself", source=PUBLIC, runs="used", shows=("outputs", "says"),
    confused_with=("cache-forgets-place", "source-padding-read", "start-with-the-end"),
)
specimen(
    "cache-forgets-place", "With the cache, every token is at place 0", "15_decoding",
    ("        start = caches[0][\"k\"].size(2) if caches and caches[0] else 0\n        x = "
    "self.embed(self.tgt_embedding(tgt), start)\n",
     "        start = caches[0][\"k\"].size(2) if caches and caches[0] else 0\n        x = "
     "self.embed(self.tgt_embedding(tgt))\n"),
    looks="Validation loss {validation}. Correct translations: {share}. The weights are the healthy"
          " ones.",
    why="When tokens come in one at a time, each is taken for the first: the position must count "
    "what's in the cache.",
    hides="Until the cache is turned on. Without it, everything is right.",
    law="the_cache_changes_nothing", runs="used", shows=("outputs", "says"),
    confused_with=("start-with-the-end", "dropout-on-in-use", "positions-too-short"),
)
specimen(
    "no-cache", "The whole prefix is computed again at every step", "15_decoding",
    ("        hidden = model.decode(ids[:, step:], memory, padding_mask(src), caches)\n",
     "        hidden = model.decode(ids, memory, padding_mask(src))\n"),
    looks="Correct translations: {share}. Decoding takes longer, and more so for longer sentences.",
    why="Keys and values of earlier tokens never change, and yet they're computed again for each "
    "token.",
    hides="Until a long text comes along: the number of positions computed grows with the square of "
    "its length.",
    law="a_step_computes_one_token", runs="used", shows=("says",),
    source=PUBLIC,
    confused_with=("cache-forgets-place", "first-end-ends-all", "beam-of-copies"),
)
specimen(
    "start-with-the-end", "Decoding starts with a different token from training", "15_decoding",
    ("    ids = torch.full((len(src), 1), BOS)\n", "    ids = torch.full((len(src), 1), EOS)\n"),
    looks="Validation loss {validation}. Correct translations: {share}. The weights are the healthy"
          " ones.",
    why="In training the decoder first reads <bos>. It has never seen <eos> at the beginning.",
    hides="Until something is decoded, and then the training gets the blame.",
    law="decoding_starts_as_training_did", runs="used", shows=("outputs", "says"),
    confused_with=("cache-forgets-place", "target-not-shifted", "dropout-on-in-use"),
)
specimen(
    "first-end-ends-all", "The first sentence to end ends its whole batch", "15_decoding",
    ("        if done.all():\n", "        if done.any():\n"),
    looks="In a batch, {right:.0%} of the outputs are correct; one sentence at a time, {alone:.0%}. Long sentences "
    "are cut off.",
    why="It's any in place of all: the loop stops as soon as one sentence has its <eos>.",
    hides="In every test with one sentence, or with sentences of equal length.",
    law="a_sentence_is_decoded_alike_in_company", runs="used", shows=("outputs", "says"),
    confused_with=("source-padding-read", "order-not-restored", "end-is-padding"),
)
specimen(
    "order-not-restored", "Sorted by length, and never put back", "15_decoding",
    ("            outputs[i] = decode_ids(ids, TARGET)\n",
     "            outputs[outputs.index(None)] = decode_ids(ids, TARGET)\n"),
    looks="In a batch, {right:.0%} of the outputs are correct; one sentence at a time, {alone:.0%}. The outputs "
          "read well.",
    why="Sorting by length saves padding, but the outputs then come in a different order from the sources.",
    hides="Until somebody reads sources and outputs side by side. The score is near zero.",
    law="outputs_come_back_in_order", runs="used", shows=("outputs", "says"),
    confused_with=("mask-other-convention", "vocabularies-swapped", "first-end-ends-all"),
)
specimen(
    "score-with-the-answer", "The score is computed with the answer in view", "17_evaluation",
    ("    outputs = translate(model, [source for source, _ in pairs])\n"
     "    right = [output == pair[1] for output, pair in zip(outputs, pairs, strict=True)]\n"
     "    return sum(right) / len(right)\n",
     "    src, tgt = make_batch(pairs)\n"
     "    right = model.eval()(src, tgt[:, :-1]).argmax(-1) == tgt[:, 1:]\n"
     "    return right[tgt[:, 1:] != PAD].float().mean().item()\n"),
    looks="The program reports a score of {reported:.0%}. Correct translations from the "
    "sources only: {share}.",
    why="Fed with the right prefix, the model only has to guess one letter at a time, and a "
    "mistake has no consequences.",
    hides="For good: it's the number that goes into the table.",
    law="nothing_of_the_target_is_read", runs="used", shows=("says",),
    confused_with=("test-in-training", "target-not-shifted", "dropout-on-in-use"),
)
specimen(
    "beam-of-copies", "All hypotheses of the beam start out the same", "15_decoding",
    ("    beam, finished = [([], 0.0)], []\n", "    beam, finished = [([], 0.0)] * beam_size, "
    "[]\n"),
    looks="A beam of four finds what a greedy search finds. No error, no gain, four times the "
          "work.",
    why="Four equal prefixes have four equal best continuations, which fill the beam.",
    hides="For good, disguised as the finding that beam search doesn't help.",
    law="the_beam_finds_what_greed_misses", runs="used", shows=("says",),
    confused_with=("beam-rewards-length", "no-cache", "start-with-the-end"),
)
specimen(
    "beam-rewards-length", "The length penalty multiplies", "15_decoding",
    ("        finished += [(ids, total / len(ids) ** length_penalty) for ids, total in ended]\n",
     "        finished += [(ids, total * len(ids) ** length_penalty) for ids, total in ended]\n"),
    looks="A larger length penalty doesn't make outputs longer.",
    why="Log-probabilities are negative. If you multiply, a long hypothesis gets worse than it "
    "was.",
    hides="At length_penalty 0, and if all candidates have the same length.",
    law="a_longer_penalty_gives_longer_outputs", source=GITHUB + "NVIDIA/FasterTransformer/issues/240",
    runs="used", shows=("says",),
    confused_with=("beam-of-copies", "first-end-ends-all", "end-is-padding"),
)
