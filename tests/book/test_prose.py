"""A guard against relapse into translated English (tools/prose.py).

It can tell that a page sounds translated, never that it reads well: only reading aloud can.
"""

import pytest

from tools import prose

LEAST_WORDS = 250  # on a shorter page a rate says nothing
SENTENCE = (12.5, 19.5)  # words, on average
CHAPTER_SENTENCE = (14, 19)  # a chapter is read aloud from top to bottom: shorter ones are staccato
HABITS = 12  # per 10,000 words, at most
CONTRACTIONS, YOU = 3, 5  # per 1,000 words, at least

CHAPTERS = ("book/0", "book/1", "book/2")
LOOKED_UP = {"book/glossary.md"}  # read by the entry: definitions don't address anybody

# What a reader of these chapters must be able to search for.
TERMS = {
    "02_scaled_dot_product_attention": ["softmax", "gradient", "variance", "dot product"],
    "03_masks": ["teacher forcing", "causal", "padding"],
    "04_multi_head_attention": ["projection", "head"],
    "05_tokens_and_embeddings": ["vocabulary", "subword", "embedding"],
    "06_positional_encodings": ["extrapolat", "rotary", "wavelength"],
    "07_normalization": ["inference", "learning rate", "running"],
    "07a_pre_norm_and_warm_up": ["learning rate", "warm-up", "gradient", "initialis"],
    "08_feed_forward_and_residuals": ["residual connection", "nonlinearit", "activation"],
    "09_encoder": ["sublayer", "hidden state"],
    "10_decoder": ["cross-attention", "teacher forcing"],
    "11_whole_model": ["initialis", "logits", "parameter"],
    "12_batches_loss_schedule": ["epoch", "hyperparameter", "cross-entropy", "regularis"],
    "13_toy_tasks": ["generalis", "training run"],
    "14_multi30k_data": ["batch size", "vocabulary"],
    "15_decoding": ["greedy decoding", "beam search", "nucleus", "inference", "latency"],
    "16_training_on_multi30k": ["hyperparameter", "checkpoint", "overfit", "throughput"],
    "17_evaluation": ["confidence interval", "baseline"],
    "18_looking_inside": ["ablation", "activation"],
    "19_encoder_only": ["masked language model", "fine-tun", "pretrain", "bidirectional"],
    "20_decoder_only": ["perplexity", "nucleus", "autoregressive", "temperature"],
    "21_vision_transformer": ["patch", "convolution", "class token"],
    "22_encoder_decoders": ["pretrain", "fine-tun", "denoising", "span corruption"],
    "23_cheaper_attention": ["sparse", "linear attention", "low-rank", "online softmax"],
    "24_longer_memory": ["segment", "recurrence", "nearest neighbour", "perplexity"],
    "24a_less_depth": ["early exit", "halting", "adaptive"],
    "25_acting": ["trajectory", "policy", "behaviour cloning", "reinforcement learning"],
    "26_what_a_cache_costs": [
        "key-value cache",
        "grouped-query",
        "quantis",
        "sliding window",
        "latent vector",
    ],
    "27_states": ["state space", "recurrence", "associative recall", "linear attention"],
    "28_preferences": ["reward model", "policy gradient", "preference"],
}


def pages():
    return [str(path.relative_to(prose.ROOT)) for path in prose.pages()]


@pytest.mark.parametrize("page", pages())
def test_a_page_does_not_sound_translated(page):
    it = prose.read(prose.ROOT / page)
    if it.words < LEAST_WORDS:
        return
    where = [f"{prose.HABITS[p]}: ...{place}..." for p, all_ in it.habits.items() for place in all_]
    assert it.habit_rate <= HABITS, "\n".join(where)
    least, most = CHAPTER_SENTENCE if page.startswith(CHAPTERS) else SENTENCE
    length = it.mean_sentence
    assert least <= round(length, 1) <= most, f"{length:.1f} words in a sentence, on average"
    assert it.per(it.contractions, 1000) >= CONTRACTIONS, "hardly a contraction: nobody talks so"
    assert page in LOOKED_UP or it.per(it.you, 1000) >= YOU, "the page hardly speaks to its reader"


@pytest.mark.parametrize("chapter", TERMS)
def test_a_chapter_uses_the_words_of_the_field(chapter):
    text = prose.prose(prose.ROOT / "book" / f"{chapter}.ipynb").lower()
    assert not [term for term in TERMS[chapter] if term not in text]


def test_what_is_code_or_a_formula_is_no_prose(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Title that stands\n\n```python\nx = 'stands'\n```\n\n$$stands$$\n\n"
        "You'll see: the $stands$ of `stands` in [a page](stands.md). It stands in brackets.\n\n"
        "```{note}\nThe note is read.\n```\n| stands | a |\n"
    )
    it = prose.read(page)
    assert sum(map(len, it.habits.values())) == 1 and it.contractions == 1 and it.you == 1
    assert "The note is read." in prose.prose(page)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("In brackets stands the interval.", True),
        ("GPT stands for something.", False),
        ("A training took two hours.", True),
        ("The training set has two parts, a training run three.", False),
        ("The last line says so.", True),
        ("Captions of like length.", True),
    ],
)
def test_habits_are_found_where_they_are(text, found):
    assert bool(prose.habits(text)) is found
