"""What a seed may change in each lab (variants.py). <name> is a number, as the master has it."""

from .variants import Code, Drawn, Numbers

LABS = {}


def named(letters: str, numbers) -> dict[str, int]:
    return dict(zip(letters, numbers, strict=True))


def three_prices(rng) -> dict[str, int]:
    """Not evenly spaced: tea alone, the plain mean and the right price would then be the same."""
    while True:
        a, b, c = sorted(rng.sample(range(8, 96, 4), 3))
        if 2 * b != a + c:
            return {"a": a, "b": b, "c": c}


LABS["lab1_attention"] = Drawn(
    names={
        "soft_lookup": "blended_lookup weighted_lookup lookup_by_fit",
        "scaled_scores": "divided_scores scores_by_root scaled_fits",
        "mended_attention": "corrected_attention repaired_attention right_attention",
        "spread_and_slope": "width_and_slope keys_and_slope spread_with_slope",
    },
    orders={"soft_lookup": 3, "mended_attention": 3},
    texts=[
        Numbers(
            draw=three_prices,
            master={"a": 10, "b": 20, "c": 40},
            also=lambda n: {"right": n["a"] / 4 + n["b"] / 2 + n["c"] / 4,
                            "sum": n["a"] + 2 * n["b"] + n["c"],
                            "all": n["a"] + n["b"] + n["c"]},
            texts=[
                r"| lemonade | $(0, 1)$ | <a> |",
                r"| tea | $(\ln 2, 0)$ | <b> |",
                r"| water | $(0, -1)$ | <c> |",
                r"$\tfrac{<a>}{4} + \tfrac{<b>}{2} + \tfrac{<c>}{4} = <right>$",
                "torch.tensor([[<a>.0], [<b>.0], [<c>.0]])",
                '"<b> is the price of tea alone. A soft look-up averages all values": <b>.0',
                '"your weights sum to 4: divide the exponentials by their sum": <sum>.0',
                "does the query take part?\": <all> / 3",
                "price, <right>, \"the price of something warm",
            ]),
        Code([
            """\
    scores = q @ k.transpose(-2, -1)
    weights = torch.softmax(scores / math.sqrt(k.size(1)), dim=1)
    return weights @ v


batch =""",
            """\
    scores = q @ k.transpose(-2, -1) / math.sqrt(len(q[0]))
    powers = (scores - scores.amax(1, keepdim=True)).exp()
    return powers / powers.sum(1, keepdim=True) @ v


batch =""",
            """\
    weights = (q @ k.mT / k.shape[1] ** 0.5).softmax(dim=1)
    return torch.matmul(weights, v)


batch ="""]),
    ],
)

LABS["lab2_masks_and_heads"] = Drawn(
    names={
        "make_mask": "visible_keys attention_mask may_attend",
        "masked_attention": "attention_with_mask careful_attention safe_attention",
        "split_heads": "cut_heads into_heads heads_of",
        "join_heads": "merge_heads from_heads without_heads",
        "mended_attention": "corrected_attention repaired_attention padded_attention",
        "leaks": "future_leaks leaking_positions sees_future",
    },
    orders={"make_mask": 2, "leaks": 2},
    texts=[
        Numbers(
            draw=lambda rng: {"s": rng.randrange(2, 60)},
            master={"s": 1},
            also=lambda n: {f"s{i}": n["s"] + i for i in range(9)},
            texts=[
                "features $<s0>, <s1>, <s2>, <s3>$ and $<s4>, <s5>, <s6>, <s7>$",
                "head 0 holds $<s0>, <s1>$ and $<s4>, <s5>$, while head 1 holds "
                "$<s2>, <s3>$ and $<s6>, <s7>$",
                "torch.arange(<s0>.0, <s8>)",
                "[[[[<s0>.0, <s1>], [<s4>, <s5>]], [[<s2>, <s3>], [<s6>, <s7>]]]]",
            ]),
        Code(["    scores.masked_fill(~real[:, None, :, None], -math.inf)\n    return",
              "    scores.masked_fill(real[:, None, None, :], -math.inf)\n    return",
              "    torch.where(real[:, None, :, None], scores, -math.inf)\n    return"]),
    ],
)

LABS["lab3_positions_and_normalization"] = Drawn(
    names={
        "order_gap": "shuffle_gap order_effect place_gap",
        "position_table": "sine_table encoding_table table_of_places",
        "shift_matrix": "move_matrix offset_matrix moving_matrix",
        "rotary_score": "turned_score score_of_turned rotated_score",
        "mended_layer_norm": "corrected_layer_norm repaired_layer_norm right_layer_norm",
        "company_gap": "neighbour_gap batch_effect gap_by_company",
    },
    orders={"position_table": 2, "shift_matrix": 2, "rotary_score": 5, "company_gap": 3},
    texts=[
        Numbers(
            draw=lambda rng: named("abc", sorted(rng.sample(range(10, 90, 10), 3))),
            master={"a": 10, "b": 20, "c": 30},
            also=lambda n: {"b0": n["b"], "c1": n["c"] + 1, "a2": n["a"] + 2,
                            "b1": n["b"] + 1, "c2": n["c"] + 2},
            texts=["of one feature, <a>, <b> and <c>, and the order",
                   "it gives <b0>, <c1>, <a2>; if you shuffle after, it gives <b1>, <c2>, <a>,",
                   "torch.tensor([<a>.0, <b>.0, <c>.0])[:, None]"]),
        Code(["""\
    std = x.std(-1, keepdim=True)  # (..., 1)
    return gain * (x - mean) / (std + eps) + bias


def compare""",
              """\
    squares = (x - mean).pow(2).sum(-1, keepdim=True)  # (..., 1)
    width = (squares / (x.size(-1) - 1)).sqrt() + eps
    return gain * ((x - mean) / width) + bias


def compare"""]),
    ],
)


def residual_numbers(rng) -> dict[str, int]:
    """Drawn until each slip gives a number of its own, or the check would name the wrong one."""
    while True:
        n = {"x": rng.choice([20, 40, 60, 80]), "d": rng.choice([5, 10, 20]),
             "s": rng.choice([1, 3, 5, 7]), "m": rng.choice([2, 3, 4])}
        results = [round(value, 6) for name, value in residual_slips(n).items()
                   if name not in ("normed", "read")]  # which the example by hand passes through
        if len(set(results)) == len(results):
            return n


def residual_slips(n: dict) -> dict:
    """What a residual makes of x: norm divides by d, sublayer adds s, drop multiplies by m."""
    x, d, s, m = n["x"], n["d"], n["s"], n["m"]
    normed = x / d
    return {"normed": normed, "read": normed + s, "dropped": m * (normed + s),
            "right": x + m * (normed + s), "none": m * (2 * normed + s),
            "slip_normed": normed + m * (normed + s), "slip_sum": m * (x + normed + s),
            "slip_nodrop": x + normed + s, "slip_reads": x + m * normed + s,
            "slip_nonorm": x + m * (x + s), "slip_post": (x + m * (x + s)) / d,
            "slip_after": x + m * (x + s) / d}


LABS["lab4_encoder_and_decoder"] = Drawn(
    names={
        "feed_forward": "expand_and_contract two_maps network_of_tokens",
        "encoder_layer": "one_encoder_layer encoder_step read_layer",
        "decoder_layer": "one_decoder_layer decoder_step write_layer",
        "layer_parameters": "count_parameters parameters_of_layer layer_size",
        "silence": "mute quieten make_silent",
        "leak": "leakage largest_leak leaking",
    },
    orders={"layer_parameters": 3, "leak": 3},
    texts=[
        Numbers(
            draw=residual_numbers,
            master={"x": 20, "d": 10, "s": 1, "m": 2},
            also=lambda n: residual_slips(n) | {"times": {2: "double", 3: "triple",
                                                          4: "multiply by 4"}[n["m"]]},
            texts=[
                "let `norm` divide by <d>, let `sublayer` add <s>, and let `drop` <times>. "
                "Starting from <x>, the norm gives <normed>, the sublayer <read> and the dropout "
                "<dropped>, so the result is <right>.",
                "torch.tensor([[[<x>.0]]]), lambda y: y + <s>, lambda y: y / <d>, "
                "lambda y: <m> * y",
                "    <none>.0: \"nothing is fixed yet", "    <slip_normed>.0: \"you add the",
                "    <slip_sum>.0: \"you drop from the sum", "    <slip_nodrop>.0: \"the dropout",
                "    <slip_reads>.0: \"you drop from what", "    <slip_nonorm>.0: \"the norm is",
                "    <slip_post>: \"that's post-norm", "    <slip_after>: \"your norm comes",
                "    <dropped>.0: \"the sum is missing",
                "(result.item() - <right>)", "the example by hand gives <right>, not",
            ]),
        Code(["    x = norm(x)\n    return drop(x + sublayer(x))",
              "    y = norm(x)\n    return drop(sublayer(y) + y)",
              "    for f in (norm, lambda y: y + sublayer(y), drop):\n        x = f(x)\n"
              "    return x"]),
    ],
)

LABS["lab5_training_and_decoding"] = Drawn(
    names={
        "shift_targets": "reads_and_predicts shifted targets_of",
        "smoothed_loss": "loss_with_smoothing smooth_loss softened_loss",
        "learning_rate": "rate_of_update rate_at scheduled_rate",
        "train_epoch": "one_epoch epoch_in_groups accumulated_epoch",
        "greedy": "write_greedily most_probable greedy_ids",
        "beam_search": "search_beam best_hypothesis beam_of_one",
    },
    orders={"greedy": 3, "beam_search": 3},
    texts=[
        Numbers(
            draw=lambda rng: {"u": rng.choice([0.001, 0.002, 0.003, 0.004, 0.005, 0.006])},
            master={"u": 0.001},
            also=lambda n: {f"u{i}": i * n["u"] for i in (1, 2, 3, 4)},
            texts=[
                "By hand, for `peak = <u4>` and `warmup = 4`: updates 1, 2, 3, 4 have the rates "
                "<u1>, <u2>, <u3>, <u4>, and update 16 has <u2>.",
                "learning_rate(step, <u4>, 4)", "(rates[4] - <u4>)", "expected the peak, \"\n"
                "    \"<u4>\"", "(rates[16] - <u1>)", "{1: <u1>, 3: <u3>, 16: <u2>, 64: <u1>}",
            ]),
        Numbers(
            draw=lambda rng: {"a": rng.choice([10, 20, 30]), "b": rng.choice([40, 50, 60]),
                              "x": rng.choice([2, 3, 4])},
            master={"a": 10, "b": 30, "x": 2},
            also=lambda n: {"n": n["a"] + n["b"], "half": (n["x"] + 1) / 2,
                            "mean": round((n["a"] * n["x"] + n["b"]) / (n["a"] + n["b"]), 3)},
            texts=["one batch has <a> real tokens and a mean loss of <x>.0, and another has <b> "
                   "and a mean loss of 1.0. Over both batches, the mean loss is "
                   r"$(<a> \cdot <x>.0 + <b> \cdot 1.0) / "
                   "<n> = <mean>$, not <half>."]),
        Code(["""\
        optimizer.zero_grad()
        loss = loss_of(model, source, read, predicted)
        loss.backward()
        if i % every == 0:
            optimizer.step()
            losses.append(loss.item())
    return losses""",
              """\
        loss = loss_of(model, source, read, predicted) / every
        loss.backward()
        if (i + 1) % every == 0:
            optimizer.step()
            losses.append(every * loss.item())
    return losses""",
              """\
        if i % every == 1:
            optimizer.zero_grad()
        loss = loss_of(model, source, read, predicted) / every
        loss.backward()
        if i % every == every - 1:
            optimizer.step()
            losses.append(loss.item())
    return losses"""]),
    ],
)

LABS["lab6_debug_a_transformer"] = Drawn(
    names={
        "past_ignores_future": "future_is_hidden no_look_ahead past_stays",
        "padding_changes_nothing": "padding_is_silent ignores_padding same_with_padding",
        "order_matters": "reads_the_order order_counts sees_order",
        "learns_by_heart": "memorises can_memorise writes_what_it_learned",
        "my_loss": "own_loss mended_loss loss_per_token",
    },
    texts=[
        Numbers(
            draw=lambda rng: named("abcdefgh", rng.sample(range(4, 12), 8)),
            master=named("abcdefgh", (7, 4, 6, 5, 9, 8, 11, 10)),
            texts=["LETTERS = [[<a>, <b>, <c>, <d>], [<e>, <f>], [<d>, <g>, <h>], "
                   "[12, <c>, 13, <b>, <f>]]"]),
        Code(["return q @ k.transpose(-2, -1) / math.sqrt(self.d_model)",
              "return q @ k.transpose(-2, -1) / k.size(-1)",
              "return q @ k.transpose(-2, -1)"]),
        Code(["return x + self.table[: x.size(0)]\n", "return x + self.table[1]\n",
              "return x + self.table[len(x) // 2]\n"]),
        Code(["        x = self.norm(x)\n        return x + self.dropout(sublayer(x))",
              "        y = self.norm(x)\n        return self.dropout(sublayer(y)) + y"]),
    ],
)

LABS["lab7_language_model"] = Drawn(
    names={
        "blocks": "cut_blocks text_blocks into_blocks",
        "causal_attention": "attention_to_the_past past_attention left_attention",
        "write": "write_text continue_text sample_text",
        "bits_per_byte": "bits_a_byte bits_of_bytes byte_bits",
        "step": "next_step cached_step one_step",
        "sign_flips": "flip_test exact_flips sign_test",
    },
    orders={"blocks": 2, "bits_per_byte": 2},
    texts=[
        Numbers(
            draw=lambda rng: named("abcd", rng.sample(range(4, 30), 4)),
            master={"a": 5, "b": 6, "c": 7, "d": 8},
            texts=["for the text `<a> <b> 2 <c> <d> 2` and",
                   "| reads | `<a> <b> 2` | `<c> <d> 0` |",
                   "| predicts | `<b> 2 <c>` | `<d> 2 0` |",
                   "Block 1 reads `<c>`, which", "predict, `<d>` and `2`",
                   "blocks([[<a>, <b>], [<c>, <d>]], 3)",
                   "== [<b>, 2, <c>, <d>, 2]", "== [[<a>, <b>, 2], [<c>, <d>, 0]]",
                   "== [[<b>, 2, <c>], [<d>, 2, 0]]"]),
        Numbers(
            draw=lambda rng: {"k": rng.randrange(2, 9)},
            master={"k": 1},
            also=lambda n: {f"k{i}": i * n["k"] for i in (1, 2, 3, 4, 6)},
            texts=["the differences <k1>, <k2> and <k3> have a mean of <k2>",
                   "reach <k2> in absolute value (all plus",
                   "sign_flips({0: <k2>.0, 1: <k4>.0, 2: <k6>.0}, {0: <k1>.0, 1: <k2>.0, "
                   "2: <k3>.0})",
                   "abs(mean - <k2>) < 1e-9, f\"the mean of <k1>, <k2>, <k3> is <k2>",
                   "sign choices reach <k2> in absolute value, so"]),
        Code(["""\
    each = [float(loss.sum()) / len(text) for loss, text in zip(losses, texts)]
    return sum(each) / len(each) / math.log(2)""",
              """\
    total = sum(float(loss.mean()) for loss in losses)
    return total / math.log(2) / sum(len(text) for text in texts)""",
              """\
    bits = [loss.sum().item() / math.log(2) for loss in losses]
    return sum(b / len(text) for b, text in zip(bits, texts)) / len(texts)"""]),
    ],
)


def level(share: float) -> dict:
    return {"low": share, "high": 1 - share, "percent": round(100 * (1 - 2 * share))}


LABS["lab8_data_and_evaluation"] = Drawn(
    names={
        "leaked": "count_leaks leaked_pairs known_sources",
        "coverage": "known_share covered covered_share",
        "batches": "budgeted filled_batches by_budget",
        "score": "corpus_score pair_score clipped_score",
        "paired": "paired_interval same_draws interval_of_pairs",
        "choose": "choose_and_report chosen pick_checkpoint",
    },
    orders={"coverage": 3, "batches": 2, "score": 2},
    texts=[
        Numbers(
            draw=lambda rng: level(rng.choice([0.01, 0.025, 0.1])),
            master=level(0.025),
            texts=["the interval that contains <percent> % of", "`int(<low> * draws)`",
                   "`int(<high> * draws) - 1`", "drawn[int(<low> * draws)]",
                   "drawn[int(<high> * draws) - 1]"]),
        Numbers(
            draw=lambda rng: {"v": rng.randrange(20, 50), "t": rng.randrange(20, 50)},
            master={"v": 30, "t": 31},
            also=lambda n: {"v1": n["v"] + 4, "v2": n["v"] + 3, "t1": n["t"] + 2,
                            "t2": n["t"] + 4},
            texts=["{100: <v>.0, 200: <v1>.0, 300: <v2>.0}",
                   "{100: <t>.0, 200: <t1>.0, 300: <t2>.0}",
                   "== (200, <t1>.0)", "expected 200 with <t1>.0", "score is <t2>, 2 above"]),
        Code(["""\
            precisions.append(sum(g in theirs for g in mine) / max(len(mine), 1))
        penalty = min(1, math.exp(1 - len(h) / len(r)))
        scores.append(penalty * math.sqrt(precisions[0] * precisions[1]))""",
              """\
            common = Counter(mine) & Counter(theirs)
            precisions.append(sum(common.values()) / max(len(mine), 1))
        penalty = min(1, math.exp(1 - len(h) / len(r)))
        scores.append(penalty * (precisions[0] + precisions[1]) / 2)"""]),
    ],
)
