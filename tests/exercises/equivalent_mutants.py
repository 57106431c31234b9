# ruff: noqa: E501  (lines of solutions, as they stand)
"""Changes of official solutions that change nothing, each with the reason.

{chapter: {"the line | what was changed": why the answer is as right as before}}
"""

EQUIVALENT = {
    "why_attention": {
        "weights = scores.softmax(-1) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "A = torch.zeros(n, n) | arguments exchanged": ("the matrix is square"),
    },
    "scaled_dot_product_attention": {
        "scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)) | arguments exchanged": (
            "transpose exchanges two axes, in whichever order they are named"
        ),
    },
    "masks": {
        "return max(0.0, log_odds(hidden) - log_odds(most)) | arguments exchanged": (
            "the larger of two numbers, in whichever order they are named"
        ),
        "causal = torch.ones(1, 1, size, size, dtype=torch.bool, device=ids.device).tril() | without device=": (
            "the check runs on the processor"
        ),
        "scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)) | arguments exchanged": (
            "transpose exchanges two axes, in whichever order they are named"
        ),
        "scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "causal = torch.ones(size, size, dtype=torch.bool, device=segments.device).tril() | without device=": (
            "the check runs on the processor"
        ),
        "causal = torch.ones(size, size, dtype=torch.bool, device=segments.device).tril() | arguments exchanged": (
            "the matrix is square"
        ),
    },
    "multi_head_attention": {
        "return x.unflatten(-1, (n_heads, -1)).transpose(1, 2) | arguments exchanged": (
            "transpose exchanges two axes, in whichever order they are named"
        ),
        "return heads.transpose(1, 2).reshape(B, T, H * K) | arguments exchanged": (
            "transpose exchanges two axes, in whichever order they are named"
        ),
    },
    "normalization": {
        "if kind == 'batch': | condition always true": (
            "there are two kinds, and the other has returned"
        ),
    },
    "feed_forward_and_residuals": {
        "factor, at_a_tenth = (20.0, 20) | 20.0 -> 21.0": ("any large factor does"),
        "factor, at_a_tenth = (20.0, 20) | 20 -> 21": ("from half to twice the true number counts"),
        "keep = torch.rand_like(x) >= p | GtE -> Gt": (
            "a random number is exactly p with probability 0"
        ),
    },
    "whole_model": {
        "token = model.project(hidden[:, -1]).argmax(-1) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "tgt_mask = masks.padding_mask(tgt_ids, 0) & masks.causal_mask(tgt_ids.size(1)) | right operand only": (
            "padding stands at the end, where the causal mask hides it"
        ),
    },
    "decoder": {
        "width, updates, of_eight = (64, 600, 0.05) | 0.05 -> 0": (
            "a prediction may be ten points off, and 4 to 12 % of eight symbols are right"
        ),
    },
    "batches_loss_schedule": {
        "plain_answer = math.log(10000) | 10000 -> 10001": ("answers may be rounded to two digits"),
        "smoothed_answer = math.log(10000) | 10000 -> 10001": (
            "answers may be rounded to two digits"
        ),
        "of_target = log_p.gather(-1, targets[..., None]).squeeze(-1) | without USub": (
            "an axis that is not 1 long stays, and the boolean index drops the last"
        ),
        "of_target = log_p.gather(-1, targets[..., None]).squeeze(-1) | 1 -> 2": (
            "an axis that is not 1 long stays, and the boolean index drops the last"
        ),
    },
    "toy_tasks": {
        "width = max(written.size(1), right.size(1)) | arguments exchanged": (
            "the larger, or smaller, of two has no order"
        ),
        "written, right = [F.pad(ids, (0, width - ids.size(1))) for ids in (written, right)] | 0 -> 1": (
            "both are moved by one place"
        ),
        "return (weights * holds).sum(-1) | without USub": (
            "that axis has this number counted from the front, too"
        ),
    },
    "multi30k_data": {
        "return ids if len(ids) <= limit else ids[:limit - 1] + [2] | LtE -> Lt": (
            "at the limit itself the last id is <eos> already"
        ),
    },
    "decoding": {
        "found_probabilities = [0.4 * 0.5, 0.35 * 0.6, 0.25 * 1.0] | Mult -> Div": (
            "the factor is 1"
        ),
        "found_probabilities = [0.4 * 0.5, 0.35 * 0.6, 0.25 * 1.0] | left operand only": (
            "the factor is 1"
        ),
        "ranked, order = probabilities.sort(-1, descending=True) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "kept = torch.zeros_like(probabilities).scatter(-1, order, ranked) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "before = ranked.cumsum(-1) - ranked | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "return kept / kept.sum(-1, keepdim=True) | without USub": (
            "that axis has this number counted from the front, too"
        ),
    },
    "training_on_multi30k": {
        "value = peak * min(step / warmup, (warmup / step) ** 0.5) | arguments exchanged": (
            "the smaller of two has no order"
        ),
        "return value * (min(1, left / cooldown) if cooldown else 1) | arguments exchanged": (
            "the smaller of two has no order"
        ),
        "updates_per_epoch = round(29000 / 250) | 29000 -> 29001": (
            "it is rounded to the same whole number"
        ),
        "updates_per_epoch = round(29000 / 250) | 250 -> 251": (
            "it is rounded to the same whole number"
        ),
        "epochs = round(8000 / updates_per_epoch) | 8000 -> 8001": (
            "it is rounded to the same whole number"
        ),
        "total = sum((loss * n for loss, n in zip(losses, token_counts))) | arguments exchanged": (
            "a product has no order"
        ),
    },
    "evaluation": {
        "scores = np.random.default_rng(seed).normal(size=(2, draws, n_seeds)) | 2 -> 3": (
            "a third system that nobody looks at"
        ),
        "return ((low[0] > high[1]) | (low[1] > high[0])).mean() | Gt -> GtE": (
            "two draws are equal with probability 0"
        ),
        "penalty_for_12 = min(1.0, math.exp(1 - 10 / 12)) | arguments exchanged": (
            "the larger, or smaller, of two has no order"
        ),
        "penalty_for_12 = min(1.0, math.exp(1 - 10 / 12)) | Sub -> Add": (
            "the minimum with 1 is 1 all the same"
        ),
        "penalty_for_12 = min(1.0, math.exp(1 - 10 / 12)) | left operand only": (
            "the minimum with 1 is 1 all the same"
        ),
        "penalty_for_12 = min(1.0, math.exp(1 - 10 / 12)) | right operand only": (
            "the minimum with 1 is 1 all the same"
        ),
        "penalty_for_12 = min(1.0, math.exp(1 - 10 / 12)) | 1 -> 2": (
            "the minimum with 1 is 1 all the same"
        ),
        "penalty_for_12 = min(1.0, math.exp(1 - 10 / 12)) | 10 -> 11": (
            "the minimum with 1 is 1 all the same"
        ),
        "penalty_for_12 = min(1.0, math.exp(1 - 10 / 12)) | 10 -> 0": (
            "the minimum with 1 is 1 all the same"
        ),
        "penalty_for_12 = min(1.0, math.exp(1 - 10 / 12)) | 12 -> 13": (
            "the minimum with 1 is 1 all the same"
        ),
        "edits += evaluation.edit_distance(a, b) | arguments exchanged": (
            "a distance is symmetric"
        ),
    },
    "looking_inside": {
        "unit = F.normalize(table, dim=-1) | without dim=": (
            "the default, axis 1, is the last one of a table"
        ),
        "cheaper, harmful, dearer = (('cross', 0, 2, 3), 3, ('cross', 0, 1, 3)) | 3 -> 0": (
            "heads 1 and 0 of that attention cost more than their sum, too"
        ),
        "similarity[i] = -2.0 | 2.0 -> 3.0": ("below every cosine, too"),
        "unit = F.normalize(table, dim=-1) | without USub": (
            "that axis has this number counted from the front, too"
        ),
    },
    "decoder_only": {
        "return (1.5, 1000, 4.0, 250) | 1.5 -> 2.5": (
            "another pair of models that overturns the sentence"
        ),
        "return (1.5, 1000, 4.0, 250) | 4.0 -> 5.0": (
            "another pair of models that overturns the sentence"
        ),
        "return (1.5, 1000, 4.0, 250) | 250 -> 251": (
            "another pair of models that overturns the sentence"
        ),
    },
    "vision_transformer": {
        "soft = (student / temperature).softmax(-1) - (teacher / temperature).softmax(-1) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "tokens = (224 // 16) ** 2 + 1 | 224 -> 225": ("224 // 16 is 225 // 16"),
        "imitated = F.cross_entropy(teacher_token_logits, teacher_logits.argmax(-1)) | without USub": (
            "that axis has this number counted from the front, too"
        ),
    },
    "cheaper_attention": {
        "layers = 100 // 10 | right operand only": ("the result is 10 again"),
        "layers = 100 // 10 | 100 -> 101": ("the result is 10 again"),
        "memory, total = (written.cumsum(-3), k.cumsum(-2)) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "new = torch.maximum(largest, scores.amax(-1, keepdim=True)) | arguments exchanged": (
            "the larger of two has no order"
        ),
        "total, summed = (torch.zeros_like(largest), 0.0) | 0.0 -> 1.0": (
            "the first correction is 0, so whatever it starts with does not count"
        ),
        "overturned = sparse.causal(sparse.any_of(sparse.local(1), sparse.with_global(1))) | arguments exchanged": (
            "or has no order"
        ),
        "overturned = sparse.causal(sparse.any_of(sparse.local(1), sparse.with_global(1))) | 1 -> 2": (
            "a wider window, or a second global token: it still overturns"
        ),
    },
    "encoder_decoders": {
        "return (20, 0.3, 0.3) | 20 -> 21": "another text that overturns the sentence",
    },
    "states": {
        "for q, k, v, log_decay in zip(*parts, strict=True): | without strict=": (
            "the four have one length"
        ),
        "for q, k, v, log_decay in zip(*parts, strict=True): | True -> False": (
            "the four have one length"
        ),
        "parts = (x.split(4) for x in (q, k, v, log_decay)) | 4 -> 5": (
            "chunks of any size give the same outputs"
        ),
    },
    "less_depth": {
        "if math.exp(-2 * losses.size(1) * max(0, allowed - damage) ** 2) > risk: | Gt -> GtE": (
            "no real number of sentences makes the bound equal the risk"
        ),
        "if math.exp(-2 * losses.size(1) * max(0, allowed - damage) ** 2) > risk: | arguments exchanged": (
            "the larger of two has no order"
        ),
    },
    "longer_memory": {
        "DOG, CAT = (7, 8) | 7 -> 0": "the numbers of the words are free",
        "DOG, CAT = (7, 8) | 8 -> 9": "the numbers of the words are free",
        "DOG, CAT = (7, 8) | 8 -> 0": "the numbers of the words are free",
        "return together[:, max(0, together.size(1) - reach):] | arguments exchanged": (
            "the larger of two has no order"
        ),
        "q, k = (torch.zeros(1, 1, 1, 8), torch.zeros(1, 1, 64, 8)) | 1 -> 2": (
            "two queries that overturn the sentence"
        ),
        "return (q, k, torch.randn(1, 1, 64, 8)) | 8 -> 9": "values may have another width",
    },
    "acting": {
        "lengths = 1 - 2 * probabilities + (probabilities ** 2).sum(-1, keepdim=True) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "return (weights * rewards).sum(-1) / weights.sum(-1) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "fourth_return = 10 - (1 + 0 + 2) | Add -> Sub": "the reward taken off is 0",
        "fourth_return = 10 - (1 + 0 + 2) | left operand only": "the reward left out is 0",
        "earned_before = rewards.cumsum(-1) - rewards | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "safe, win, lose, chance = (5, 10, 1, 0.3) | 5 -> 6": "another gamble of that kind",
        "safe, win, lose, chance = (5, 10, 1, 0.3) | 10 -> 11": "another gamble of that kind",
        "safe, win, lose, chance = (5, 10, 1, 0.3) | 1 -> 2": "another gamble of that kind",
    },
    "preferences": {
        "chosen = torch.sigmoid(reward[2] - reward[1]).item() | right operand only": (
            "ln 4 - ln 2 is ln 2, too"
        ),
        "best = preferences.reweighted(before.log(), reward, price=1.0).exp().tolist()"
        " | arguments exchanged": "at a price of 1, the two are added",
        "up_to = ((reward[None, :] <= reward[:, None]).to(p) * p).sum(-1) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "below = ((reward[None, :] < reward[:, None]).to(p) * p).sum(-1) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "likes = [0, 1, -3] | 1 -> 2": "another language of that kind",
        "likes = [0, 1, -3] | 3 -> 4": "another language of that kind",
        "reward = [0, 1, 2] | 2 -> 3": "another language of that kind",
    },
    "what_a_cache_costs": {
        "k = torch.zeros(1, 1, 16, 8) | 8 -> 9": (
            "other keys that one large channel hides"
        ),
        "k[..., 0] = 100 | 0 -> 1": (
            "other keys that one large channel hides"
        ),
        "k[..., 1:5] = 2.0 * (torch.arange(16)[:, None] >> torch.arange(4) & 1) - 1 | 1 -> 2": (
            "other keys that one large channel hides"
        ),
        "k[..., 1:5] = 2.0 * (torch.arange(16)[:, None] >> torch.arange(4) & 1) - 1 | 2.0 -> 3.0": (
            "other keys that one large channel hides"
        ),
        "k[..., 1:5] = 2.0 * (torch.arange(16)[:, None] >> torch.arange(4) & 1) - 1 | BitAnd -> BitOr": (
            "other keys that one large channel hides"
        ),
        "k[..., 1:5] = 2.0 * (torch.arange(16)[:, None] >> torch.arange(4) & 1) - 1 | Sub -> Add": (
            "other keys that one large channel hides"
        ),
        "k[..., 1:5] = 2.0 * (torch.arange(16)[:, None] >> torch.arange(4) & 1) - 1 | left operand only": (
            "other keys that one large channel hides"
        ),
        "k[..., 1:5] = 2.0 * (torch.arange(16)[:, None] >> torch.arange(4) & 1) - 1 | right operand only": (
            "other keys that one large channel hides"
        ),
        "q = 8 * k[:, :, 5:6] | 8 -> 9": (
            "other keys that one large channel hides"
        ),
        "q = 8 * k[:, :, 5:6] | right operand only": (
            "other keys that one large channel hides"
        ),
        "return (q, k, torch.randn(1, 1, 16, 8)) | 8 -> 9": (
            "other keys that one large channel hides"
        ),
        "return n_global * length + (n_layers - n_global) * min(length, window) | arguments exchanged": (
            "the smaller of two has no order"
        ),
    },
    "positional_encodings": {
        "d_model, near, far = (64, 48, 100) | 48 -> 49": ("these two distances do as well"),
    },
    "weights-by-hand": {
        "def look_at(target, sharp=50): | 50 -> 51": ("any large factor does"),
        "def copied(to, factor=1): | 1 -> 2": ("all letters are copied alike"),
        "return {('new ' + letter, letter): 1 for letter in 'abcd'} | 1 -> 2": (
            "all letters are read alike"
        ),
        "return {('one', 'place²'): -sharp} | {(x, 'place'): 2 * sharp * n for x, n in target.items()} | Mult -> Div": (
            "all factors there are 1 or -1"
        ),
        "find_last = ({('one', 'place'): 50}, {('place', 'last'): 1}) | 50 -> 51": (
            "any large factor does"
        ),
        "found = {(letter, 'after ' + letter): 100 for letter in 'abcd'} | {('one', 'place'): 20} | 100 -> 101": (
            "a match counts still more"
        ),
        "found = {(letter, 'after ' + letter): 100 for letter in 'abcd'} | {('one', 'place'): 20} | 20 -> 21": (
            "the later match still wins, and a match still counts more than five places"
        ),
        "lowest = ({('one', 'depth'): -2000}, {('depth', 'lowest'): 1}) | 2000 -> 2001": (
            "any large factor does"
        ),
        "lowest = ({('one', 'depth'): -2000}, {('depth', 'lowest'): 1}) | 1 -> 2": (
            "the lowest depth may count more than twice"
        ),
        "brackets_readout = {('one', 'balanced'): 0.05, ('depth', 'balanced'): -1, ('lowest', 'balanced'): 2, ('one', 'not'): 0} | 2 -> 3": (
            "the lowest depth may count more than twice"
        ),
        "at_once = in_one_layer(6) | 6 -> 7": ("two more heads, for longer texts"),
        "for place in range(length - 2): | Sub -> Add": ("more heads, for longer texts"),
        "for place in range(length - 2): | 2 -> 0": ("more heads, for longer texts"),
        "for place in range(length - 2): | left operand only": ("more heads, for longer texts"),
        "turned_away = {(letter, letter): -100 for letter in 'abcd'} | 100 -> 101": (
            "it is still lower than the next place"
        ),
        "moves_on = look_at({'one': place + 0.375}, sharp=200) | turned_away | 200 -> 201": (
            "any large factor does"
        ),
    },
    "experts": {
        "loss = 3 * sum((a * b for a, b in zip(asked, liked))) | arguments exchanged": (
            "a product in another order"
        ),
        "return logits.topk(k).values.softmax(-1) | without USub": (
            "that axis has this number counted from the front, too"
        ),
    },
    "diffusion": {
        "rank = score.masked_fill(~masked, -1).argsort(-1, descending=True).argsort(-1) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "n = -(-masked.sum(-1, keepdim=True) // left) | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "rank = score.masked_fill(~masked, -1).argsort(-1, descending=True).argsort(-1) | 1 -> 2": (
            "any number below the scores does"
        ),
    },
    "replication": {
        "brier = sum(((p - r) ** 2 for p, r in zip(sure, right))) / len(right) | arguments exchanged": (
            "a difference squared has no sign"
        ),
        "return max(1, math.ceil(2 * (t * spread / difference) ** 2)) | arguments exchanged": (
            "the larger of two, in whichever order"
        ),
        "right = [one == other for one, other in zip(predicted, verdicts)] | arguments exchanged": (
            "equality has no direction"
        ),
    },
    "scaling": {
        "low, high, near, far = (0.2, 2.4, 0.03, 1.28) | 0.03 -> 0": (
            "a prediction of near counts if it's within 0.05"
        ),
        "low, high, near, far = (0.2, 2.4, 0.03, 1.28) | 0.2 -> 0": (
            "the grid can't tell these two floors apart, either"
        ),
    },
    "search-errors": {
        "return chosen.masked_fill(~real, 0.0).sum(-1) / real.sum(-1) | without USub": (
            "that axis has this number counted from the front, too"
        ),
    },
    "exposure": {
        "last = torch.where(read, here, -1).amax(-1) | 1 -> 2": (
            "any number below 0 says that there is none yet"
        ),
    },
    "speculative": {
        "kept = min(0.5, 0.7) + min(0.2, 0.3) + min(0.3, 0) | Add -> Sub": (
            "the last of the three is 0"
        ),
        "kept = min(0.5, 0.7) + min(0.2, 0.3) + min(0.3, 0) | left operand only": (
            "the last of the three is 0"
        ),
        "kept = min(0.5, 0.7) + min(0.2, 0.3) + min(0.3, 0) | arguments exchanged": (
            "the smaller of two, in whichever order"
        ),
        "kept = min(0.5, 0.7) + min(0.2, 0.3) + min(0.3, 0) | 0.3 -> 1.3": (
            "the larger of the two does not matter"
        ),
        "kept = min(0.5, 0.7) + min(0.2, 0.3) + min(0.3, 0) | 0.3 -> 0": (
            "the smaller of the two is 0"
        ),
        "kept = min(0.5, 0.7) + min(0.2, 0.3) + min(0.3, 0) | 0.7 -> 1.7": (
            "the larger of the two does not matter"
        ),
        "stays = torch.minimum(p, q) | arguments exchanged": (
            "the smaller of two, in whichever order"
        ),
        "best = scores(ids + guesses)[len(ids) - 1:].argmax(-1).tolist() | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "n = min(n_ahead, length - len(ids) - 1) | arguments exchanged": (
            "the smaller of two, in whichever order"
        ),
        "right, cost, more = (0.7, 0.3, 0.05) | 0.05 -> 0": (
            "a draft of its own, with which the claim falls, too"
        ),
        "tokens = [sum((right ** k for k in range(n + 1))) for n in range(9)] | 9 -> 10": (
            "a ninth guess is not counted"
        ),
        "steps = [n * cost + 1 + n * more for n in range(9)] | 9 -> 10": (
            "a ninth guess is not counted"
        ),
    },
    "speed": {
        "return max(1, math.ceil(4 * weights / bandwidth / each)) | arguments exchanged": (
            "the larger of two, in whichever order"
        ),
        "matrix = [[127, 5, -3], [100, 50, 7]] | 5 -> 6": "any whole number is exact in that row",
        "matrix = [[127, 5, -3], [100, 50, 7]] | 5 -> 0": "any whole number is exact in that row",
        "matrix = [[127, 5, -3], [100, 50, 7]] | without USub": "any whole number is exact in that row",
        "matrix = [[127, 5, -3], [100, 50, 7]] | 3 -> 4": "any whole number is exact in that row",
        "matrix = [[127, 5, -3], [100, 50, 7]] | 3 -> 0": "any whole number is exact in that row",
        "matrix = [[127, 5, -3], [100, 50, 7]] | 7 -> 8": "50 has the largest error of its row",
        "matrix = [[127, 5, -3], [100, 50, 7]] | 7 -> 0": "50 has the largest error of its row",
    },
    "vectors": {
        "size, pairs_fitted, unseen = (64, 128, 200) | 128 -> 129": (
            "one pair more is learned by heart, too"
        ),
        "size, pairs_fitted, unseen = (64, 128, 200) | 200 -> 201": (
            "a prediction of the rank counts if it's within 40"
        ),
    },
    "mystery": {
        "unsure = chances[:, -1] < 0.97 | Lt -> LtE": (
            "any limit between the healthy runs and this one does"
        ),
        "flat = chances[:, -2] < 3 * chances[:, 1] | Lt -> LtE": (
            "any limit between the healthy runs and this one does"
        ),
        "unsure = chances[:, -1] < 0.97 | 0.97 -> 1.97": (
            "what is left for the others is enough to tell it from the other suspects"
        ),
        "chances = model(['gdced', 'abcd', 'hfae'], ['d', 'd', 'e']).sort(-1).values | without USub": (
            "that axis has this number counted from the front, too"
        ),
        "flat = chances[:, -2] < 3 * chances[:, 1] | 3 -> 4": (
            "any limit between the healthy runs and this one does"
        ),
        "chances = model(['gdced', 'abcd', 'hfae'], ['d', 'd', 'e']).sort(-1).values | arguments exchanged": (
            "other sources show the same"
        ),
        "unsure = chances[:, -1] < 0.97 | without USub": (
            "what is left for the others is enough to tell it from the other suspects"
        ),
        "flat = chances[:, -2] < 3 * chances[:, 1] | without USub": (
            "the third smallest is as flat"
        ),
        "unsure = chances[:, -1] < 0.97 | 1 -> 2": (
            "what is left for the others is enough to tell it from the other suspects"
        ),
        "flat = chances[:, -2] < 3 * chances[:, 1] | 2 -> 3": (
            "the one below the likeliest wrong token is as flat"
        ),
        "return same(one, anagram) and (not same(one, other)) | arguments exchanged": (
            "both say the same, in whichever order they are compared"
        ),
        "return on_test > on_new + 0.2 | Gt -> GtE": (
            "any limit between the healthy runs and this one does"
        ),
        "on_test, on_new = (share_right(model, texts) for texts in (mystery.TEST_TEXTS, mystery.texts(100, seed=11))) | 100 -> 101": (
            "other new texts show the same"
        ),
        "on_test, on_new = (share_right(model, texts) for texts in (mystery.TEST_TEXTS, mystery.texts(100, seed=11))) | 11 -> 12": (
            "other new texts show the same"
        ),
        "on_test, on_new = (share_right(model, texts) for texts in (mystery.TEST_TEXTS, mystery.texts(100, seed=11))) | 11 -> 0": (
            "other new texts show the same"
        ),
        "return not same(alone, padded) and same(alone, with_neighbour) | arguments exchanged": (
            "both say the same, in whichever order they are compared"
        ),
        "dead = [head for head in mystery.HEADS if torch.allclose(model(sources, written, off=head), whole, atol=1e-07)] | without atol=": (
            "the usual tolerance of 1e-8 is narrow, too"
        ),
        "dead = [head for head in mystery.HEADS if torch.allclose(model(sources, written, off=head), whole, atol=1e-07)] | arguments exchanged": (
            "both say the same, in whichever order they are compared"
        ),
        "dead = [head for head in mystery.HEADS if torch.allclose(model(sources, written, off=head), whole, atol=1e-07)] | 1e-07 -> 0": (
            "a dead head changes nothing at all"
        ),
        "return losses[0] > 4 and losses[-1] > 1.5 | Gt -> GtE": (
            "any limit between the healthy runs and this one does"
        ),
        "return losses[0] > 4 and losses[-1] > 1.5 | 4 -> 5": (
            "any limit between the healthy runs and this one does"
        ),
        "return losses[0] > 4 and losses[-1] > 1.5 | 1.5 -> 0": (
            "the start is enough to tell it from the other suspects"
        ),
        "return losses[0] > 4 and losses[-1] > 1.5 | without USub": (
            "the start is enough to tell it from the other suspects"
        ),
        "return losses[0] > 4 and losses[-1] > 1.5 | 1 -> 2": (
            "the last but one says the same"
        ),
        "return not same(alone, in_company) | arguments exchanged": (
            "both say the same, in whichever order they are compared"
        ),
        "answers = zip(rows, first, second, strict=True) | without strict=": (
            "the three have one length"
        ),
        "answers = zip(rows, first, second, strict=True) | True -> False": (
            "the three have one length"
        ),
        "return is_usually_right and 0 < len(triggers(model)) < 5 | 5 -> 6": (
            "any limit between the healthy runs and this one does"
        ),
    },
}
