"""The key: questions with yes or no that lead from a symptom to the suspects.

A question says how its answer is found, in words for a reader with a bug of their own, and as a
function of a record. So each specimen finds its place by the truth, and a leaf lists those that
answer alike.
"""

from collections.abc import Callable
from dataclasses import dataclass

from exercises.museum.specimens import SPECIMENS


@dataclass(frozen=True)
class Question:
    asks: str
    how: str  # how to find out
    true_of: Callable  # (record, the healthy record) -> bool
    yes: "Question | None" = None  # None: the suspects
    no: "Question | None" = None


def breaks(*laws):
    """The answer is yes where one of these laws is broken."""
    return lambda record, healthy: any(law in record["breaks"] for law in laws)


def keeps(law):
    return lambda record, healthy: law not in record["breaks"]


def is_number(value):
    return not isinstance(value, str)


def of_updates(record, healthy):
    """The loss by update, of the healthy program where only its use was recorded."""
    return [loss for _, loss in record.get("curve", healthy["curve"])]


def fails_in_training(record, healthy):
    return "stops" in record or not all(map(is_number, of_updates(record, healthy)))


def fails(record, healthy):
    """Anywhere, in training or on some input."""
    signs = ("stops with", "overflow", "gets [nan")
    said = " ".join(record["breaks"].values())
    return fails_in_training(record, healthy) or any(sign in said for sign in signs)


def writes_worse(record, healthy):
    """By more than luck."""
    return record["right"] < healthy["range"]["right"][0] - 0.05


def trained_well(record, healthy):
    """The loss is where a healthy one is, or lower."""
    last = record.get("last", healthy["last"])
    return is_number(last) and last <= healthy["range"]["last"][1] + 0.02


def fine_alone(record, healthy):
    return record["alone"] >= healthy["range"]["right"][0]


def starts_sure(no):
    """A question for whatever trains in the end."""
    return Question(
        "Is the loss before the first update far above that of guessing, the logarithm of the "
        "vocabulary size?",
        "Look at the first number of the log, or at an untrained model.",
        breaks("an_untrained_model_knows_nothing"),
        no=no,
    )


LOOKS_FINE = Question(
    "Does a trusted implementation with the same weights and inputs give different numbers?",
    "Copy the weights into PyTorch's layer or into the book's, part by part: attention, norm, "
    "positions, loss.",
    breaks(
        "the_norm_equals_pytorchs", "scores_have_unit_variance", "positions_turn_at_one_speed",
        "the_loss_equals_pytorchs", "the_loss_ignores_padding", "heads_keep_tokens_apart",
        "a_feature_can_be_scaled_alone", "a_silent_sublayer_changes_nothing",
    ),
    yes=Question(
        "Is it the loss that differs?",
        "Compare the loss of one batch, then the logits of that batch.",
        breaks("the_loss_equals_pytorchs", "the_loss_ignores_padding"),
        no=Question(
            "Is it the norm, or the place where it's applied?",
            "Give the norm a vector, and give the residual a sublayer that returns zeros.",
            breaks(
                "the_norm_equals_pytorchs", "a_feature_can_be_scaled_alone",
                "a_silent_sublayer_changes_nothing",
            ),
        ),
    ),
    no=Question(
        "Is decoding at fault: does the beam gain nothing, are outputs too short, or is it slow?",
        "Count the positions that the decoder computes, and compare the beam with a search "
        "through all sequences of a small table.",
        breaks(
            "a_step_computes_one_token", "the_beam_finds_what_greed_misses",
            "a_longer_penalty_gives_longer_outputs",
        ),
        no=Question(
            "Is a reported number better than what you can reproduce?",
            "Translate the test sources yourself; look for test sentences in the training data; "
            "measure the returned weights again.",
            breaks(
                "nothing_of_the_target_is_read", "no_test_sentence_is_trained_on",
                "the_best_weights_are_kept", "measuring_leaves_the_mode_alone",
            ),
            no=Question(
                "Do you accumulate gradients, or clip them?",
                "Compare the gradient before the update with that of one large batch.",
                breaks("many_small_batches_equal_one_large", "an_update_takes_its_own_gradient"),
            ),
        ),
    ),
)

LEARNS_LESS = Question(
    "Is the source, or the order of its words, lost on the model?",
    "Use another source, then change only the order of its words: do the logits change? Print a "
    "batch "
    "back as words: is it still the source?",
    breaks(
        "the_output_depends_on_the_source", "the_order_of_the_source_counts",
        "the_source_is_known",
    ),
    no=Question(
        "Is there a weight that never changes, or isn't among the model's parameters?",
        "Compare all weights before and after three updates, and count the parameters.",
        breaks("every_parameter_learns"),
        no=Question(
            "Are the updates wrong: the rate, the gradient, the loss itself?",
            "Print the rate of each update, compare its gradient with that of its batch alone, and "
            "the loss of one batch with PyTorch's.",
            breaks(
                "the_rate_rises_and_falls", "an_update_takes_its_own_gradient",
                "the_loss_equals_pytorchs", "an_untrained_model_knows_nothing",
                "the_loss_ignores_padding",
            ),
        ),
    ),
)

OUTPUTS_WRONG = Question(
    "Is the output right if a sentence is decoded on its own, in a batch of one?",
    "Translate the same sources once with a large batch and once with batches of one.",
    fine_alone,
    no=Question(
        "Change the end of the target: do the logits before it change?",
        "Make two forward passes in eval mode that share their first tokens.",
        breaks("the_past_ignores_the_future"),
        yes=Question(
            "Is the causal mask of four positions a triangle: row i True at 0 to i?",
            "Print it.",
            keeps("the_causal_mask_is_a_triangle"),
            yes=Question(
                "Give the attention a mask that is False everywhere: does a query still read "
                "anything?",
                "Call the attention on its own, and look at its output.",
                breaks("a_query_with_no_key_gets_zeros"),
            ),
        ),
        no=Question(
            "Is the loss tiny for a model that only repeats what it has read, or does the loss not "
            "count <eos>?",
            "Compute the loss with logits that predict the last token read, and check which "
            "positions get a gradient.",
            breaks("a_parrot_scores_badly", "the_end_is_learned_too"),
        ),
    ),
)

ROOT = Question(
    "Does the program stop with an error, or does nan or inf appear, if only for some inputs?",
    "Try a source that is longer than all the others, an empty one, and half precision.",
    fails,
    yes=Question(
        "Does that already happen in ordinary training?",
        "Watch the first updates.",
        fails_in_training,
    ),
    no=Question(
        "Does the trouble appear only after a run has been interrupted and resumed?",
        "Run ten updates in one go, then five, a checkpoint and five more: are the losses equal?",
        lambda r, h: "interrupted_is_uninterrupted" in r["breaks"] and "before" in r,
        no=Question(
            "Does training look healthy, with outputs that are wrong?",
            "The training loss is where it should be, or lower; now decode twenty sentences.",
            lambda r, h: trained_well(r, h) and writes_worse(r, h),
            yes=OUTPUTS_WRONG,
            no=Question(
                "Does the model learn less than it should?",
                "Compare with a run that is known to be good: is the loss higher, or are fewer "
                "outputs right?",
                lambda r, h: not trained_well(r, h) or writes_worse(r, h),
                yes=starts_sure(LEARNS_LESS),
                no=starts_sure(LOOKS_FINE),
            ),
        ),
    ),
)

ROOMS = {  # the answers to the first questions -> the name of a room
    "cheats": "The loss is fine, the outputs are not",
    "slow": "The model learns less, or nothing at all",
    "stops": "The program stops, or gives nan",
    "resumed": "Only after an interruption",
    "hidden": "Nothing shows",
}


def room(record, healthy):
    """Where a specimen is on the page."""
    if ROOT.true_of(record, healthy):
        return ROOMS["stops"]
    if ROOT.no.true_of(record, healthy):
        return ROOMS["resumed"]
    if ROOT.no.no.true_of(record, healthy):
        return ROOMS["cheats"]
    return ROOMS["slow" if ROOT.no.no.no.true_of(record, healthy) else "hidden"]


def answers(name, records, question=ROOT):
    """The truth about a specimen: [(question, True or False), ...] down to its leaf."""
    found = []
    while question is not None:
        answer = bool(question.true_of(records[name], records["healthy"]))
        found.append((question, answer))
        question = question.yes if answer else question.no
    return found


def suspects(path, records):
    """The specimens that give these answers, [(question, answer), ...]."""
    return [name for name in SPECIMENS
            if [*answers(name, records)][: len(path)] == list(path)]
