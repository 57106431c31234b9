"""Stands for `exercises.own` in a page: a part is judged by its laws there, and kept nowhere."""

from exercises.checks import own as laws


def law(name):
    if hasattr(laws, name):
        return getattr(laws, name)
    from exercises.checks import descendants  # loaded for those who ask

    return getattr(descendants, name)


def hand_in(name, part):
    """What the laws say of a part, printed: True (right), False (wrong) or None (not written)."""
    verdict, mistakes = law(name).judge((part,))
    if verdict is None:
        print(f"○ {name}: not written yet.")
    if verdict:
        print(f"✓ {name}: right. Copy it into the notebook, and the model computes with it there.")
    for sentence, *details in mistakes:
        print(f"✗ {name}: {sentence}")
        for detail in details:
            print(f"    {detail}")
    return verdict


def hint(name):
    print(f"Hint for {name}, {law(name).hint()}")
