"""Planned wrong answers of lab 5: for each task, what a student may hand in and what it earns.

WRONG maps the id of an answer cell to (description, source of the whole cell, expected points), the
points of the visible check, the hidden tests and, if there are any, the hidden edge cases.
"""

PARTIAL = (
    "One answer of each task passes the visible check and fails the hidden tests: the first "
    "sentence taken for the longest, the log of a softmax, no case for a warm-up of 0, the last "
    "group of batches forgotten, dropout left on in decoding, hypotheses lost that have not ended "
    "at max_len."
)

WRONG = {
    "shift": [
        (
            "target not shifted: the decoder reads its own answer",
            """# Task 1: shift the target
def shift_targets(sentences):
    full = pad([[BOS, *ids, EOS] for ids in sentences])
    return full[:, 1:], full[:, 1:]
""",
            (0, 0),
        ),
        (
            "read and predicted swapped",
            """# Task 1: shift the target
def shift_targets(sentences):
    full = pad([[BOS, *ids, EOS] for ids in sentences])
    return full[:, 1:], full[:, :-1]
""",
            (0, 0),
        ),
        (
            "no <eos>",
            """# Task 1: shift the target
def shift_targets(sentences):
    return pad([[BOS, *ids] for ids in sentences]), pad([[*ids, PAD] for ids in sentences])
""",
            (0, 0),
        ),
        (
            "the first sentence taken for the longest",
            """# Task 1: shift the target
def shift_targets(sentences):
    full = torch.zeros(len(sentences), len(sentences[0]) + 2, dtype=torch.int64)
    for row, ids in zip(full, sentences):
        row[: len(ids) + 2] = torch.tensor([BOS, *ids, EOS])
    return full[:, :-1], full[:, 1:]
""",
            (1, 0),
        ),
    ],
    "loss": [
        (
            "padding counted",
            """# Task 2: label-smoothed loss
def smoothed_loss(logits, targets, smoothing=0.1):
    log_p = logits.log_softmax(-1)
    right = -log_p.gather(-1, targets[..., None]).squeeze(-1)
    return ((1 - smoothing) * right - smoothing * log_p.mean(-1)).mean()
""",
            (0, 0, 0),
        ),
        (
            "padding left out of the sum, but not of the count",
            """# Task 2: label-smoothed loss
def smoothed_loss(logits, targets, smoothing=0.1):
    log_p = logits.log_softmax(-1)
    right = -log_p.gather(-1, targets[..., None]).squeeze(-1)
    loss = (1 - smoothing) * right - smoothing * log_p.mean(-1)
    return (loss * (targets != PAD)).mean()
""",
            (0, 0, 0),
        ),
        (
            "smoothing shared among the V - 1 wrong words",
            """# Task 2: label-smoothed loss
def smoothed_loss(logits, targets, smoothing=0.1):
    log_p = logits.log_softmax(-1)
    right = -log_p.gather(-1, targets[..., None]).squeeze(-1)
    others = (-log_p.sum(-1) - right) / (logits.size(-1) - 1)
    real = targets != PAD
    loss = (1 - smoothing) * right + smoothing * others
    return (loss * real).sum() / real.sum().clamp(min=1)
""",
            (0, 0, 0),
        ),
        (
            "the ready-made function",
            """# Task 2: label-smoothed loss
def smoothed_loss(logits, targets, smoothing=0.1):
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=smoothing
    )
""",
            (0, 0, 0),
        ),
        (
            "log of a softmax: -inf for large logits",
            """# Task 2: label-smoothed loss
def smoothed_loss(logits, targets, smoothing=0.1):
    log_p = logits.softmax(-1).log()
    right = -log_p.gather(-1, targets[..., None]).squeeze(-1)
    real = targets != PAD
    loss = (1 - smoothing) * right - smoothing * log_p.mean(-1)
    return (loss * real).sum() / real.sum().clamp(min=1)
""",
            (1, 1, 0),
        ),
    ],
    "rate": [
        (
            "falls with the update instead of its root",
            """# Task 3: learning rate
def learning_rate(step, peak, warmup):
    warmup = max(warmup, 1)
    return peak * min(step / warmup, warmup / step)
""",
            (0, 0),
        ),
        (
            "updates counted from 0",
            """# Task 3: learning rate
def learning_rate(step, peak, warmup):
    if step <= warmup:
        return peak * (step - 1) / max(warmup, 1)
    return peak * (max(warmup, 1) / step) ** 0.5
""",
            (0, 0),
        ),
        (
            "no case for a warm-up of 0",
            """# Task 3: learning rate
def learning_rate(step, peak, warmup):
    return peak * min(step / warmup, (warmup / step) ** 0.5)
""",
            (1, 0),
        ),
    ],
    "accumulate": [
        (
            "the broken function, unchanged",
            """# Task 4: gradient accumulation
train_epoch = broken_epoch
""",
            (0, 0, 0),
        ),
        (
            "gradients added, not divided",
            """# Task 4: gradient accumulation
def train_epoch(model, optimizer, batches, every, loss_of):
    losses = []
    for start in range(0, len(batches), every):
        optimizer.zero_grad()
        for batch in batches[start : start + every]:
            loss = loss_of(model, *batch)
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
""",
            (0, 0, 0),
        ),
        (
            "divided by the number of batches",
            """# Task 4: gradient accumulation
def train_epoch(model, optimizer, batches, every, loss_of):
    losses = []
    for start in range(0, len(batches), every):
        group = batches[start : start + every]
        optimizer.zero_grad()
        total = 0.0
        for batch in group:
            loss = loss_of(model, *batch) / len(group)
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses
""",
            (0, 0, 0),
        ),
        (
            "zero_grad still inside the loop",
            """# Task 4: gradient accumulation
def train_epoch(model, optimizer, batches, every, loss_of):
    losses, total = [], 0.0
    for i, (source, read, predicted) in enumerate(batches):
        optimizer.zero_grad()
        group = batches[i - i % every : i - i % every + every]
        tokens = sum((p != PAD).sum() for _, _, p in group)
        loss = loss_of(model, source, read, predicted) * (predicted != PAD).sum() / tokens
        loss.backward()
        total += loss.item()
        if (i + 1) % every == 0 or i + 1 == len(batches):
            optimizer.step()
            losses.append(total)
            total = 0.0
    return losses
""",
            (0, 0, 0),
        ),
        (
            "the last, smaller group makes no update",
            """# Task 4: gradient accumulation
def train_epoch(model, optimizer, batches, every, loss_of):
    losses = []
    for start in range(0, len(batches) - every + 1, every):
        group = batches[start : start + every]
        tokens = sum((p != PAD).sum() for _, _, p in group)
        optimizer.zero_grad()
        total = 0.0
        for batch in group:
            loss = loss_of(model, *batch) * (batch[2] != PAD).sum() / tokens
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses
""",
            (1, 0, 0),
        ),
    ],
    "greedy": [
        (
            "goes on after <eos>",
            """# Task 5: greedy decoding
@torch.no_grad()
def greedy(model, source, max_len):
    with evaluating(model):
        mask = padding_mask(source, PAD)
        memory = model.encode(source, mask)
        ids = torch.full((len(source), 1), BOS)
        for _ in range(max_len):
            logits = model.project(model.decode(ids, memory, mask)[:, -1])
            logits[:, PAD] = -math.inf
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
    return ids[:, 1:]
""",
            (0, 0, 0),
        ),
        (
            "right ids, but never stops early",
            """# Task 5: greedy decoding
@torch.no_grad()
def greedy(model, source, max_len):
    with evaluating(model):
        mask = padding_mask(source, PAD)
        memory = model.encode(source, mask)
        ids = torch.full((len(source), 1), BOS)
        ended = torch.zeros(len(source), dtype=torch.bool)
        for _ in range(max_len):
            logits = model.project(model.decode(ids, memory, mask)[:, -1])
            logits[:, PAD] = -math.inf
            token = logits.argmax(-1).masked_fill(ended, PAD)
            ids = torch.cat([ids, token[:, None]], dim=1)
            ended |= token == EOS
    return ids[:, 1:]
""",
            (0, 0, 0),
        ),
        (
            "the source's padding mask forgotten in decode",
            """# Task 5: greedy decoding
@torch.no_grad()
def greedy(model, source, max_len):
    with evaluating(model):
        memory = model.encode(source)
        ids = torch.full((len(source), 1), BOS)
        ended = torch.zeros(len(source), dtype=torch.bool)
        while ids.size(1) <= max_len and not ended.all():
            logits = model.project(model.decode(ids, memory)[:, -1])
            logits[:, PAD] = -math.inf
            token = logits.argmax(-1).masked_fill(ended, PAD)
            ids = torch.cat([ids, token[:, None]], dim=1)
            ended |= token == EOS
    return ids[:, 1:]
""",
            (0, 0, 0),
        ),
        (
            "<pad> may be chosen",
            """# Task 5: greedy decoding
@torch.no_grad()
def greedy(model, source, max_len):
    with evaluating(model):
        mask = padding_mask(source, PAD)
        memory = model.encode(source, mask)
        ids = torch.full((len(source), 1), BOS)
        ended = torch.zeros(len(source), dtype=torch.bool)
        while ids.size(1) <= max_len and not ended.all():
            logits = model.project(model.decode(ids, memory, mask)[:, -1])
            token = logits.argmax(-1).masked_fill(ended, PAD)
            ids = torch.cat([ids, token[:, None]], dim=1)
            ended |= token == EOS
    return ids[:, 1:]
""",
            (0, 0, 0),
        ),
        (
            "dropout left on",
            """# Task 5: greedy decoding
@torch.no_grad()
def greedy(model, source, max_len):
    mask = padding_mask(source, PAD)
    memory = model.encode(source, mask)
    ids = torch.full((len(source), 1), BOS)
    ended = torch.zeros(len(source), dtype=torch.bool)
    while ids.size(1) <= max_len and not ended.all():
        logits = model.project(model.decode(ids, memory, mask)[:, -1])
        logits[:, PAD] = -math.inf
        token = logits.argmax(-1).masked_fill(ended, PAD)
        ids = torch.cat([ids, token[:, None]], dim=1)
        ended |= token == EOS
    return ids[:, 1:]
""",
            (1, 0, 0),
        ),
        (
            "evaluation mode never undone",
            """# Task 5: greedy decoding
@torch.no_grad()
def greedy(model, source, max_len):
    model.eval()
    mask = padding_mask(source, PAD)
    memory = model.encode(source, mask)
    ids = torch.full((len(source), 1), BOS)
    ended = torch.zeros(len(source), dtype=torch.bool)
    while ids.size(1) <= max_len and not ended.all():
        logits = model.project(model.decode(ids, memory, mask)[:, -1])
        logits[:, PAD] = -math.inf
        token = logits.argmax(-1).masked_fill(ended, PAD)
        ids = torch.cat([ids, token[:, None]], dim=1)
        ended |= token == EOS
    return ids[:, 1:]
""",
            (1, 1, 0),
        ),
    ],
    "beam": [
        (
            "greedy, whatever the beam size",
            """# Task 6: beam search
def beam_search(next_log_probs, beam_size, max_len, length_penalty=1.0):
    ids, total = [], 0.0
    while len(ids) < max_len and EOS not in ids:
        log_p = next_log_probs(ids)
        ids = [*ids, int(log_p.argmax())]
        total += log_p.max().item()
    return ids, total / len(ids) ** length_penalty
""",
            (0, 0, 0),
        ),
        (
            "returns the first hypothesis that finishes",
            """# Task 6: beam search
def beam_search(next_log_probs, beam_size, max_len, length_penalty=1.0):
    live = [([], 0.0)]
    for length in range(1, max_len + 1):
        candidates = [
            ([*ids, token], total + log_p)
            for ids, total in live
            for token, log_p in enumerate(next_log_probs(ids).tolist())
        ]
        candidates.sort(key=lambda candidate: candidate[1], reverse=True)
        for ids, total in candidates[:beam_size]:
            if ids[-1] == EOS or length == max_len:
                return ids, total / length**length_penalty
        live = candidates[:beam_size]
""",
            (0, 0, 0),
        ),
        (
            "finished hypotheses are extended",
            """# Task 6: beam search
def beam_search(next_log_probs, beam_size, max_len, length_penalty=1.0):
    live = [([], 0.0)]
    for length in range(1, max_len + 1):
        candidates = [
            ([*ids, token], total + log_p)
            for ids, total in live
            for token, log_p in enumerate(next_log_probs(ids).tolist())
        ]
        candidates.sort(key=lambda candidate: candidate[1], reverse=True)
        live = candidates[:beam_size]
    ids, total = live[0]
    return ids, total / len(ids) ** length_penalty
""",
            (0, 0, 0),
        ),
        (
            "no length penalty",
            """# Task 6: beam search
def beam_search(next_log_probs, beam_size, max_len, length_penalty=1.0):
    live, finished = [([], 0.0)], []
    for length in range(1, max_len + 1):
        candidates = [
            ([*ids, token], total + log_p)
            for ids, total in live
            for token, log_p in enumerate(next_log_probs(ids).tolist())
        ]
        candidates.sort(key=lambda candidate: candidate[1], reverse=True)
        for ids, total in candidates[:beam_size]:
            if ids[-1] == EOS or length == max_len:
                finished.append((ids, total))
        if len(finished) >= beam_size:
            break
        live = [c for c in candidates if c[0][-1] != EOS][:beam_size]
    return max(finished, key=lambda hypothesis: hypothesis[1])
""",
            (0, 0, 0),
        ),
        (
            "hypotheses that have not ended at max_len are lost",
            """# Task 6: beam search
def beam_search(next_log_probs, beam_size, max_len, length_penalty=1.0):
    live, finished = [([], 0.0)], []
    for length in range(1, max_len + 1):
        candidates = [
            ([*ids, token], total + log_p)
            for ids, total in live
            for token, log_p in enumerate(next_log_probs(ids).tolist())
        ]
        candidates.sort(key=lambda candidate: candidate[1], reverse=True)
        for ids, total in candidates[:beam_size]:
            if ids[-1] == EOS:
                finished.append((ids, total / length**length_penalty))
        if len(finished) >= beam_size:
            break
        live = [c for c in candidates if c[0][-1] != EOS][:beam_size]
    return max(finished, key=lambda hypothesis: hypothesis[1])
""",
            (1, 0, 0),
        ),
    ],
}
