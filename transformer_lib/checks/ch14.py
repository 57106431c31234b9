"""Checks for chapter 14, Multi30k: data and tokenizers."""

import inspect
import itertools

from transformer_lib.checks import exercise, expect, expect_close


@exercise("14.1", hint="rows times the longest, less the real tokens, over rows times the longest")
def padding(one_batch, two_batches):
    one, two = float(one_batch), float(two_batches)
    expect(one < 1 and two < 1, "a share lies between 0 and 1; divide by the size of the batch")
    expect(
        abs(one - 12 / 20) > 1e-3,
        "you divided by the real tokens; the share is of the whole rectangle, 4 x 8",
    )
    expect_close(one, 12 / 32, "one batch is 4 x 8 = 32 numbers, 20 of them real", 0.006)
    expect(
        abs(two - 6 / 26) > 1e-3,
        "3 with 8 is not the best: put sentences of like length together",
    )
    expect_close(two, 4 / 24, "the best are (3, 4) and (5, 8): 2 x 4 and 2 x 8 numbers", 0.006)


@exercise("14.2", hint="Counter(train_words).most_common(n)")
def coverage(answer):
    train = "fox dog cat a bird a dog cat a dog a".split()
    test = "a a a dog fish fish cat cat cat cat".split()
    given = float(answer(train, test, 2))
    expect(
        abs(given - 2 / 4) > 1e-6,
        "you count each different word once; every running word of the test counts",
    )
    expect(
        abs(given - 7 / 10) > 1e-6,
        "your vocabulary comes from the test words: that is the leak of this chapter",
    )
    expect(
        abs(given - 7 / 11) > 1e-6,
        "that is the share of the training words; count the test words",
    )
    expect(
        abs(given - 8 / 10) > 1e-6,
        "your vocabulary has more than the n most frequent words",
    )
    expect(
        abs(given - 1 / 10) > 1e-6,
        "you take the n words that come first; count how often each occurs",
    )
    expect_close(given, 0.4, "with n = 2 the words a and dog are known, 4 of 10", 1e-6)
    expect_close(answer(train, test, 10), 0.8, "with n = 10 every training word is known", 1e-6)


@exercise("14.3", given=0x0BD5E3CC)
def shorten(answer):
    short, long = [1, 7, 8, 2], [1, *range(10, 30), 2]
    result = list(answer(list(long), 6))
    expect(len(result) <= 6, f"with limit 6 you return {len(result)} ids: count <eos> too")
    expect(result[-1] == 2, "<eos> is lost: leave room for it and put it back")
    expect(result[0] == 1, "<bos> is lost: cut at the end, not at the beginning")
    expect(result == [1, 10, 11, 12, 13, 2], f"expected the first ids kept, got {result}")
    given = list(answer(list(short), 6))
    expect(given.count(2) == 1, f"a short target needs no second <eos>: you return {given}")
    expect(given == short, f"a target that fits must stay as it is: you return {given}")
    exact = list(answer(list(short), 4))
    expect(exact == short, f"a target of exactly the limit fits; you return {exact}")


@exercise("14.4", hint="start a new batch when (rows + 1) * new length is over the budget")
def budget(answer):
    lengths, limit = [2, 2, 3, 4, 4, 6, 6, 7], 12
    batches = [list(batch) for batch in answer(list(lengths), limit)]
    flat = list(itertools.chain.from_iterable(batches))
    expect([] not in batches, "one of your batches is empty")
    missing = sorted(set(range(len(lengths))) - set(flat))
    expect(flat != lengths, "these are the lengths; return the indices, 0 to 7")
    at_the_end = missing == list(range(len(lengths)))[-len(missing) :]
    why = "is the last batch returned" if at_the_end else "is the one that opens a batch in it"
    expect(not missing, f"the indices {missing} are in no batch: {why}?")
    expect(
        flat == list(range(len(lengths))), f"each index once and in order, please; you give {flat}"
    )
    for batch in batches:
        size = len(batch) * max(lengths[i] for i in batch)
        expect(
            size <= limit,
            f"the batch of lengths {[lengths[i] for i in batch]} takes {size} with its padding, "
            f"over the budget of {limit}; rows times the longest counts",
        )
    for one, two in itertools.pairwise(batches):
        could = (len(one) + 1) * lengths[two[0]]
        expect(
            could > limit,
            f"the batch of lengths {[lengths[i] for i in one]} has room for one more: "
            f"{could} is within the budget of {limit}",
        )


@exercise("14.5", hint="a set of the cleaned training sources")
def leak(answer):
    train = [("Ein Hund.", "A dog."), ("Zwei Katzen.", "Two cats."), ("Ein Mann.", "A man.")]
    test = [
        ("ein hund. ", "One dog."),  # another translation, other case, a space: still a leak
        ("Ein Hund.", "A dog."),
        ("Eine Frau.", "A dog."),  # only the target is known
    ]
    given = answer(train, test)
    expect(not inspect.isgenerator(given), "return a number, not a generator")
    expect(given != 3, "a shared target is no leak of the source; compare sources only")
    if given == 1:
        cased = answer(train, [("Ein Hund.", "One dog.")])
        twice = answer(train, [("Ein Hund.", "A dog.")] * 2)
        expect(twice == 2, "count the test pairs, not the different sources among them")
        expect(cased == 1, "you compare whole pairs; another translation of the source leaks too")
        expect(False, "'ein hund. ' and 'Ein Hund.' are the same source: lower case, strip")
    expect_close(given, 2, "two of the three test pairs have a source that is in training", 0)
    expect_close(answer([(" Ein Hund.", "A dog.")], test[1:]), 1, "clean both sides", 0)
