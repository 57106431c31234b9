"""Every check of the Vision Transformer accepts the right answer and names what is wrong."""

import pytest
import torch
import torch.nn.functional as F

from exercises.checks import vision_transformer as ch

AXES = (0, 2, 4, 1, 3, 5)


def patches(*axes):
    def answer(images, patch):
        cut = images.unflatten(2, (-1, patch)).unflatten(4, (-1, patch))
        return cut.permute(axes).flatten(3).flatten(1, 2)

    return answer


def loss(first="labels", second="teacher", part=0.5):
    def answer(ours, token, teacher, labels):
        goals = {"labels": labels, "teacher": teacher.argmax(-1), "soft": teacher.softmax(-1)}
        return part * (F.cross_entropy(ours, goals[first]) + F.cross_entropy(token, goals[second]))

    return answer


TURNED = torch.arange(64).flip(0)
Y, X = torch.arange(8)[:, None], torch.arange(8)[None, :]
MIXED = (8 * ((Y % 2) * 4 + Y // 2) + (X % 2) * 4 + X // 2).flatten()
ONE_PATCH = TURNED.clone()  # two pixels of one patch exchanged, in that patch alone
ONE_PATCH[[0, 1]] = TURNED[[1, 0]]

def by_exponentials(student, teacher, temperature):
    def soft(logits):
        powers = torch.exp(logits / temperature)
        return powers / powers.sum(1, keepdim=True)

    return temperature / student.shape[0] * (soft(student) - soft(teacher))


def by_autograd(student, teacher, temperature):
    leaf = student.clone().requires_grad_()
    target = (teacher / temperature).softmax(-1)
    loss = -(target * (leaf / temperature).log_softmax(-1)).sum(-1).mean() * temperature**2
    return torch.autograd.grad(loss, leaf)[0]


CASES = [
    (ch.by_hand, (197, 768, 38809), True, "Right"),
    (ch.by_hand, (197, 768, 38416), False, "queries and is queried"),
    (ch.exchanged, (False, True, False), True, "Right"),
    (ch.exchanged, (True, True, False), False, "logits can't change"),
    (ch.exchanged, (False, False, False), False, "change places"),
    (ch.exchanged, (False, True, True), False, "same bag"),
    (ch.exchanged, ("no", True, False), False, "True or False"),
    (ch.repaired_patches, (patches(*AXES),), True, "Right"),
    (ch.repaired_patches, (lambda images, patch: ...,), None, "Not attempted"),
    (ch.repaired_patches, (patches(0, 2, 4, 1, 5, 3),), False, "down the columns"),
    (ch.deit_loss, (loss(),), True, "Right"),
    (ch.deit_loss, (lambda *given: ...,), None, "Not attempted"),
    (ch.deit_loss, (loss(first="teacher"),), False, "both your heads learn from the teacher"),
    (ch.pixel_orders, (TURNED, MIXED), True, "Right"),
    (ch.pixel_orders, (torch.arange(64), MIXED), False, "leaves a pixel"),
    (ch.pixel_orders, (torch.arange(64).roll(1), MIXED), False, "new picture"),
    (ch.pixel_orders, (ONE_PATCH, MIXED), False, "cannot undo both"),
    (ch.pixel_orders, (TURNED, TURNED), False, "two pixels of the same"),
    (ch.pixel_orders, (TURNED, torch.zeros(64)), False, "once"),
    (ch.soft_gradient, (by_exponentials,), True, "Right"),
    (ch.soft_gradient, (lambda student, teacher, temperature: ...,), None, "Not attempted"),
    (ch.soft_gradient, (lambda s, t, c: by_exponentials(s, t, c) + 0.1,), False, "autograd"),
    (ch.soft_gradient, (by_autograd,), False, "rules out"),
]


@pytest.mark.parametrize(("check", "answers", "verdict", "word"), CASES)
def test_verdict(check, answers, verdict, word, capsys):
    assert check(*answers) is verdict
    assert word in capsys.readouterr().out
