"""Planned wrong answers of lab 6: for each task, what a student may hand in and what it earns.

WRONG maps the id of an answer cell to (description, source of the whole cell, expected points), the
points of the visible check, the hidden tests and, if there are any, the hidden edge cases.
"""

PARTIAL = (
    "Answers that pass the visible check and fail the hidden tests: a test that looks at the "
    "first row of the logits only, one that changes only the last token, one that leaves the "
    "model in evaluation mode, one that pads "
    "the target only, one that trains the model that it was given, a scale fixed to the sizes of "
    "the lab, positions added in place, dropout on the path of x, a final norm without gain and "
    "bias, a loss with class weights hard-coded for the lab's vocabulary."
)

WRONG = {
    "future": [
        (
            "always True",
            """# Task 1: the past ignores the future
def past_ignores_future(model, source, target):
    return True
""",
            (0, 0),
        ),
        (
            "dropout left on",
            """# Task 1: the past ignores the future
def past_ignores_future(model, source, target):
    read = target[:, :-1]
    changed = read.clone()
    changed[:, -1] = torch.where(read[:, -1] == 5, 6, 5)
    with torch.no_grad():
        before, after = model(source, read), model(source, changed)
    return torch.allclose(before[:, :-1], after[:, :-1], atol=1e-5)
""",
            (0, 0),
        ),
        (
            "compares the changed position too",
            """# Task 1: the past ignores the future
def past_ignores_future(model, source, target):
    read = target[:, :-1]
    changed = read.clone()
    changed[:, -1] = torch.where(read[:, -1] == 5, 6, 5)
    with torch.no_grad(), evaluating(model):
        before, after = model(source, read), model(source, changed)
    return torch.allclose(before, after, atol=1e-5)
""",
            (0, 0),
        ),
        (
            "looks at the first row of the logits only",
            """# Task 1: the past ignores the future
def past_ignores_future(model, source, target):
    read = target[:, :-1]
    changed = read.clone()
    changed[:, -1] = torch.where(read[:, -1] == 5, 6, 5)
    with torch.no_grad(), evaluating(model):
        before, after = model(source, read), model(source, changed)
    return torch.allclose(before[:, 0], after[:, 0], atol=1e-5)
""",
            (1, 0),
        ),
        (
            "changes only the last token",
            """# Task 1: the past ignores the future
def past_ignores_future(model, source, target):
    read = target[:, :-1]
    changed = read.clone()
    changed[:, -1] = torch.where(read[:, -1] == 5, 6, 5)
    with torch.no_grad(), evaluating(model):
        before, after = model(source, read), model(source, changed)
    return torch.allclose(before[:, :-1], after[:, :-1], atol=1e-5)
""",
            (1, 0),
        ),
        (
            "the model is left in evaluation mode",
            """# Task 1: the past ignores the future
def past_ignores_future(model, source, target):
    model.eval()
    read = target[:, :-1]
    with torch.no_grad():
        before = model(source, read)
        for t in range(1, read.size(1)):
            changed = read.clone()
            changed[:, t] = torch.where(read[:, t] == 5, 6, 5)
            if not torch.allclose(before[:, :t], model(source, changed)[:, :t], atol=1e-5):
                return False
    return True
""",
            (1, 0),
        ),
    ],
    "padding": [
        (
            "compares exactly, with dropout on",
            """# Task 2: padding changes nothing
def padding_changes_nothing(model, source, target):
    return bool(model.loss(source, target) == model.loss(F.pad(source, (0, 3)), target))
""",
            (0, 0),
        ),
        (
            "pads the source only",
            """# Task 2: padding changes nothing
def padding_changes_nothing(model, source, target):
    with torch.no_grad(), evaluating(model):
        plain, more = model.loss(source, target), model.loss(F.pad(source, (0, 3)), target)
    return bool((plain - more).abs() < 1e-5)
""",
            (0, 0),
        ),
        (
            "pads the target only",
            """# Task 2: padding changes nothing
def padding_changes_nothing(model, source, target):
    with torch.no_grad(), evaluating(model):
        plain, more = model.loss(source, target), model.loss(source, F.pad(target, (0, 3)))
    return bool((plain - more).abs() < 1e-5)
""",
            (1, 0),
        ),
    ],
    "order": [
        (
            "exact comparison: rounding counts as a difference",
            """# Task 3: order matters
def order_matters(model, source, target):
    read = target[:, :-1]
    with torch.no_grad(), evaluating(model):
        before, after = model(source, read), model(source.roll(1, dims=1), read)
    return not torch.equal(before, after)
""",
            (0, 0),
        ),
        (
            "swaps the rows of the batch",
            """# Task 3: order matters
def order_matters(model, source, target):
    read = target[:, :-1]
    with torch.no_grad(), evaluating(model):
        before, after = model(source, read), model(source.flip(0), read)
    return not torch.allclose(before, after, atol=1e-4)
""",
            (0, 0),
        ),
        (
            "dropout left on",
            """# Task 3: order matters
def order_matters(model, source, target):
    read = target[:, :-1]
    with torch.no_grad():
        before, after = model(source, read), model(source.roll(1, dims=1), read)
    return not torch.allclose(before, after, atol=1e-4)
""",
            (0, 0),
        ),
        (
            "the model is left in evaluation mode",
            """# Task 3: order matters
def order_matters(model, source, target):
    model.eval()
    read = target[:, :-1]
    with torch.no_grad():
        before, after = model(source, read), model(source.roll(1, dims=1), read)
    return not torch.allclose(before, after, atol=1e-4)
""",
            (1, 0),
        ),
    ],
    "heart": [
        (
            "judges by the loss",
            """# Task 4: learns by heart
def learns_by_heart(model, source, target):
    learner = copy.deepcopy(model).eval()
    optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
    for _ in range(80):
        optimizer.zero_grad()
        loss = learner.loss(source, target)
        loss.backward()
        optimizer.step()
    return loss.item() < 0.1
""",
            (0, 0),
        ),
        (
            "the target compared with its <bos>",
            """# Task 4: learns by heart
def learns_by_heart(model, source, target):
    learner = copy.deepcopy(model).eval()
    optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
    for _ in range(80):
        optimizer.zero_grad()
        learner.loss(source, target).backward()
        optimizer.step()
    return torch.equal(write(learner, source, target.size(1)), target)
""",
            (0, 0),
        ),
        (
            "trains the model that it was given",
            """# Task 4: learns by heart
def learns_by_heart(model, source, target):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    with evaluating(model):
        for _ in range(80):
            optimizer.zero_grad()
            model.loss(source, target).backward()
            optimizer.step()
    return torch.equal(write(model, source, target.size(1) - 1), target[:, 1:])
""",
            (1, 0),
        ),
    ],
    "attention": [
        (
            "unchanged",
            """# Task 5: attention
class MyAttention(TheirAttention):
    pass
""",
            (0, 0),
        ),
        (
            "the mask fixed, but not the scale",
            """# Task 5: attention
class MyAttention(TheirAttention):
    def weights(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return scores.softmax(-1)
""",
            (0, 0),
        ),
        (
            "the mask after the softmax",
            """# Task 5: attention
class MyAttention(TheirAttention):
    def scores(self, q, k):
        return q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))

    def weights(self, scores, mask):
        weights = scores.softmax(-1)
        return weights if mask is None else weights * mask
""",
            (0, 0),
        ),
        (
            "the scale hard-coded for the lab's sizes",
            """# Task 5: attention
class MyAttention(TheirAttention):
    def scores(self, q, k):
        return q @ k.transpose(-2, -1) / math.sqrt(8)

    def weights(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return scores.softmax(-1)
""",
            (1, 0),
        ),
    ],
    "positions": [
        (
            "off by one",
            """# Task 6: positions
class MyPositions(TheirPositions):
    def forward(self, x):
        return x + self.table[1 : x.size(1) + 1, 0]
""",
            (0, 0),
        ),
        (
            "the right rows along the wrong axis",
            """# Task 6: positions
class MyPositions(TheirPositions):
    def forward(self, x):
        return x + self.table[: x.size(1)]
""",
            (0, 0),
        ),
        (
            "x changed in place",
            """# Task 6: positions
class MyPositions(TheirPositions):
    def forward(self, x):
        x += self.table[: x.size(1), 0]
        return x
""",
            (1, 0),
        ),
    ],
    "trunk": [
        (
            "unchanged",
            """# Task 7: residual and stack
class MyResidual(TheirResidual):
    pass


class MyStack(TheirStack):
    pass
""",
            (0, 0),
        ),
        (
            "a norm after every layer",
            """# Task 7: residual and stack
class MyResidual(TheirResidual):
    def forward(self, x, sublayer):
        return x + self.dropout(sublayer(self.norm(x)))


class MyStack(TheirStack):
    def __init__(self, layers, d_model):
        super().__init__(layers, d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, *others):
        for layer in self.layers:
            x = self.norm(layer(x, *others))
        return x
""",
            (0, 0),
        ),
        (
            "the stack fixed, but not the residual",
            """# Task 7: residual and stack
class MyResidual(TheirResidual):
    pass


class MyStack(TheirStack):
    def __init__(self, layers, d_model):
        super().__init__(layers, d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, *others):
        return self.norm(super().forward(x, *others))
""",
            (0, 0),
        ),
        (
            "dropout on the path of x",
            """# Task 7: residual and stack
class MyResidual(TheirResidual):
    def forward(self, x, sublayer):
        return self.dropout(x + sublayer(self.norm(x)))


class MyStack(TheirStack):
    def __init__(self, layers, d_model):
        super().__init__(layers, d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, *others):
        return self.norm(super().forward(x, *others))
""",
            (1, 0),
        ),
        (
            "a final norm without gain and bias",
            """# Task 7: residual and stack
class MyResidual(TheirResidual):
    def forward(self, x, sublayer):
        return x + self.dropout(sublayer(self.norm(x)))


class MyStack(TheirStack):
    def forward(self, x, *others):
        x = super().forward(x, *others)
        return F.layer_norm(x, x.shape[-1:])
""",
            (1, 0),
        ),
    ],
    "loss": [
        (
            "unchanged",
            """# Task 8: loss
my_loss = their_loss
""",
            (0, 0),
        ),
        (
            "divided by all positions",
            """# Task 8: loss
def my_loss(model, source, target):
    logits, answers = model(source, target[:, :-1]), target[:, 1:]
    total = F.cross_entropy(
        logits.flatten(0, 1), answers.flatten(), ignore_index=PAD, reduction="sum"
    )
    return total / answers.numel()
""",
            (0, 0),
        ),
        (
            "target not shifted",
            """# Task 8: loss
def my_loss(model, source, target):
    logits = model(source, target[:, :-1])
    return F.cross_entropy(
        logits.flatten(0, 1), target[:, :-1].flatten(), ignore_index=PAD
    )
""",
            (0, 0),
        ),
        (
            "class weights hard-coded for the lab's vocabulary",
            """# Task 8: loss
def my_loss(model, source, target):
    logits, answers = model(source, target[:, :-1]), target[:, 1:]
    weight = torch.ones(N_WORDS)
    weight[PAD] = 0
    return F.cross_entropy(logits.flatten(0, 1), answers.flatten(), weight=weight)
""",
            (1, 0),
        ),
    ],
}
