"""The recorded runs of the chapter on longer memory and less depth.

    python -m recordings.beyond.memory_and_depth exits recall neighbours steps spans --seeds 0

Each run is added to its topic's file in results/beyond/ as soon as it ends, and is not made again
where it stands there with today's settings. Seed 0 of all arms of all topics comes first.
"""

import argparse
import datetime
import json
import math
import tempfile
import time
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from transformer_lib import fast, load_pretrained
from transformer_lib.beyond import (
    adaptive_depth,
    arrows,
    distance,
    neighbours,
    recall,
)
from transformer_lib.beyond.one_stream import stream_batches
from transformer_lib.config import PAD, ModelConfig, TrainConfig
from transformer_lib.data import load_parallel
from transformer_lib.decoding import evaluating, greedy_decode, in_batches
from transformer_lib.evaluation import score
from transformer_lib.models.language_model import LanguageModel
from transformer_lib.runs.device import environment
from transformer_lib.runs.files import write_json
from transformer_lib.tokenization import (
    encode_pairs,
    encode_target,
    train_tokenizer,
)
from transformer_lib.training import fit, translation_batches

ROOT = Path(__file__).resolve().parents[2]


RESULTS = ROOT / "results" / "beyond"


def rounded(numbers, digits=4):
    """Short numbers for a file."""
    return [round(x, digits) for x in torch.as_tensor(numbers).tolist()]


# ---- leaving early -----------------------------------------------------------------------------

EXITS = {
    "solve_on": 2500, "tokens": 1536, "updates": 280, "rate": 4e-4, "agree_steps": 150,
    "quantiles": [0.8, 0.5, 0.25], "gaps": [0.97, 0.9, 0.8, 0.65, 0.45, 0.25],
}


@torch.no_grad()
def layer_states(model, batches) -> list:
    """For each decoder layer the states of all real places, (N, D)."""
    states = [[] for _ in model.decoder.layers]
    for batch in batches.sampler.batches():
        src_ids, tgt_ids = batches.tensors(batch, torch.device("cpu"))
        real = tgt_ids[:, 1:] != PAD
        found = adaptive_depth.decoder_states(model, src_ids, tgt_ids[:, :-1])
        for kept, x in zip(states, found, strict=True):
            kept.append(x[real])
    return [torch.cat(kept) for kept in states]


@torch.no_grad()
def words_said(model, out, states):
    """What each exit says, (n_layers, N)."""
    said = [
        torch.cat([out.logits(model, part, d).argmax(-1) for part in x.split(2048)])
        for d, x in enumerate(states, 1)
    ]
    return torch.stack(said)


def exits(arm: str, seed: int) -> dict:
    """Exits for the shipped translator by least squares ("solved"), or its decoder trained with
    them ("trained"); then decode with several measures and thresholds. Each point is written down
    at once, and a run that was stopped goes on behind its last one.
    """
    torch.manual_seed(seed)
    translator, pairs = load_pretrained("multi30k-de-en"), load_parallel("multi30k")
    model, tokenizer = translator.model.eval(), translator.tokenizer
    out = adaptive_depth.Exits(model.config.d_model, model.config.n_decoder_layers)
    some = encode_pairs(tokenizer, pairs["train"][: EXITS["solve_on"]])
    some = translation_batches(*some, 4096, 0)
    started = time.perf_counter()
    states = layer_states(model, some)
    said = words_said(model, out, states)
    naive = rounded((said == said[-1]).float().mean(1))
    adaptive_depth.solve_maps(out, states)
    if arm == "trained":
        train_exits(model, out, tokenizer, pairs, seed)
        states = layer_states(model, some)
    said = words_said(model, out, states)
    optimizer = torch.optim.Adam(out.agree.parameters(), lr=0.02)
    for _ in range(EXITS["agree_steps"]):
        optimizer.zero_grad()
        adaptive_depth.agreement_loss(out, states, said).backward()
        optimizer.step()
    result = {"arm": arm, "seed": seed, "train_seconds": time.perf_counter() - started,
              "settings": EXITS, "naive_agreement": naive,
              "agreement": rounded((said == said[-1]).float().mean(1))}
    if (arm, seed) == ("solved", 0):  # the chapter's figure leaves by these
        folder = RESULTS / "early-leaving"
        folder.mkdir(parents=True, exist_ok=True)
        state = {f"exits.{k}": v.half().contiguous() for k, v in out.state_dict().items()}
        save_file(state, folder / "solved.safetensors")

    sources = {s: encode_pairs(tokenizer, pairs[s])[0] for s in ("validation", "test")}
    references = {s: [b for _, b in pairs[s]] for s in sources}

    def write(decoder, split):
        return in_batches(
            lambda ids: tokenizer.decode_batch(greedy_decode(decoder, ids).tolist()),
            sources[split], 4096,
        )

    full = {s: write(model, s) for s in sources}
    result["full"] = {s: score(full[s], references[s]).bleu for s in sources}
    result["sentences"] = {s: len(sources[s]) for s in sources}
    points = [("gap", x) for x in EXITS["gaps"]]
    points += [("depth", float(d)) for d in range(model.config.n_decoder_layers - 1, 0, -1)]
    for measure in ("agree", "stillness"):
        leaving = adaptive_depth.EarlyLeaving(model, out, measure, 2.0)
        first = 1 if measure == "agree" else 2
        found = torch.cat([leaving.sureness(states[max(0, d - 2)], states[d - 1], d).detach()
                           for d in range(first, len(states))])
        points += [(measure, round(found.quantile(q).item(), 4)) for q in EXITS["quantiles"]]
    begun = recorded("exits", arm, seed)
    same = begun and begun["sentences"] == result["sentences"]
    result["points"] = begun["points"] if same else []
    for measure, threshold in points[len(result["points"]) :]:
        point = {"measure": measure, "threshold": threshold}
        for split in ("validation", "test") if measure == "gap" else ("validation",):
            leaving = adaptive_depth.EarlyLeaving(model, out, measure, threshold)
            texts = write(leaving, split)
            changed = [
                adaptive_depth.words_changed(a, b) for a, b in zip(texts, full[split], strict=True)
            ]
            point[split] = {
                "bleu": score(texts, references[split]).bleu,
                "layers": torch.cat(leaving.depths).float().mean().item(),
                "changed": sum(changed) / len(changed),
            }
            if measure == "gap" and seed == 0:
                point[split]["losses"] = [round(x, 2) for x in changed]
        result["points"].append(point)
        collect("exits", result | signature())
        print(arm, seed, measure, round(threshold, 3), point["validation"]["layers"],
              point["validation"]["bleu"], flush=True)
    return result


def train_exits(model, out, tokenizer, pairs, seed) -> None:
    """Train the decoder and the maps together; encoder and embeddings stay as they are."""
    batches = encode_pairs(tokenizer, pairs["train"])
    batches = translation_batches(*batches, EXITS["tokens"], seed)
    stream, n = iter(batches), EXITS["updates"]
    model.requires_grad_(False)
    model.decoder.requires_grad_(True).train()
    parameters = [*model.decoder.parameters(), *out.maps.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=EXITS["rate"], betas=(0.9, 0.98))
    for step in range(n):
        rate = EXITS["rate"] * min(1, step / 30, 2 * (1 - step / n))
        optimizer.param_groups[0]["lr"] = rate
        batch = batches.tensors(next(stream), torch.device("cpu"))
        optimizer.zero_grad()
        adaptive_depth.random_exit_loss(model, out, batch).backward()
        optimizer.step()
    model.eval()


# ---- memories between segments ------------------------------------------------------------------

RECALL = {"updates": 300, "batch": 8, "size": 128, "n_facts": 24, "rate": 3e-3}


def remember(arm: str, seed: int) -> dict:
    """Train a model with the memory `arm` on facts that are asked for later."""
    torch.manual_seed(seed)
    model = recall.reader(arm, RECALL["size"])
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=RECALL["rate"])
    started, losses = time.perf_counter(), []
    for step in range(RECALL["updates"]):
        optimizer.param_groups[0]["lr"] = RECALL["rate"] * min(
            1, (step + 1) / 50, 3 * (1 - step / RECALL["updates"])
        )
        batch = recall.draw(RECALL["batch"], RECALL["size"], RECALL["n_facts"], generator)
        losses.append(recall.training_step(model, optimizer, batch))
    seconds = time.perf_counter() - started
    test = recall.draw(128, RECALL["size"], RECALL["n_facts"], torch.Generator().manual_seed(99))
    return {"arm": arm, "seed": seed, "right": rounded(recall.right_by_distance(model, test)),
            "losses": rounded(torch.tensor(losses).split(25)[-1]), "seconds": seconds,
            "settings": RECALL}


# ---- neighbours beside a language model ----------------------------------------------------------

KNN = {
    "model": {"d_model": 128, "n_heads": 4, "d_ff": 256, "n_encoder_layers": 0,
              "n_decoder_layers": 2, "dropout": 0.2, "positional": "rotary"},
    "vocabulary": 4000, "updates": [250, 500], "captions": 400,
    "n": 64, "scales": [4.0, 16.0, 64.0], "shares": [0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5],
}


def fast_loss(model, batch, smoothing=0.0):
    """beyond.one_stream.stream_loss, with the logits a block at a time."""
    read, predicted = batch
    counted = predicted != PAD
    hidden = model.decode(read)[counted]
    return fast.projected_cross_entropy(
        model.project, hidden, predicted[counted], list(model.parameters()), smoothing
    )


@torch.no_grad()
def states_of(model, texts):
    """Hidden states (N, D), the tokens that follow them (N,), of texts in the order of lengths."""
    batches = stream_batches([[]] * len(texts), texts, 4096, 0)
    hidden, tokens = [], []
    with evaluating(model):
        for batch in batches.sampler.batches():
            read, predicted = batches.tensors(batch, torch.device("cpu"))
            counted = predicted != PAD
            hidden.append(model.decode(read)[counted])
            tokens.append(predicted[counted])
    return torch.cat(hidden), torch.cat(tokens)


def beside(arm: str, seed: int) -> dict:
    """A language model trained on one half of the captions, and stores of both halves."""
    captions = {s: [b for _, b in p] for s, p in load_parallel("multi30k").items()}
    tokenizer = train_tokenizer(captions["train"], KNN["vocabulary"])
    ids = {s: encode_target(tokenizer, texts) for s, texts in captions.items()}
    order = torch.randperm(len(ids["train"]), generator=torch.Generator().manual_seed(seed))
    half = len(order) // 2
    read, unread = ([ids["train"][i] for i in part] for part in (order[:half], order[half:]))
    torch.manual_seed(seed)
    model = LanguageModel(ModelConfig(tokenizer.get_vocab_size(), **KNN["model"]))
    result = {"arm": arm, "seed": seed, "settings": KNN, "checkpoints": []}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for updates in KNN["updates"]:
            config = TrainConfig(
                max_steps=updates, max_tokens=2048, peak_lr=4e-3, warmup=80, cooldown=80,
                average=1, checkpoint_every=updates, keep_checkpoints=1, device="cpu",
                precision="bf16", fast=True, progress=False, seed=seed,
            )
            torch.manual_seed(seed)
            model = LanguageModel(ModelConfig(tokenizer.get_vocab_size(), **KNN["model"]))
            batches = stream_batches([[]] * half, read, 2048, seed)
            loss = partial(fast_loss, smoothing=0.0)
            fit(model, batches, loss, config, Path(folder) / str(updates))
            model.eval()
            found = with_neighbours(model, read, unread, ids, seed)
            found["updates"] = updates
            result["checkpoints"].append(found)
            print("neighbours", seed, updates, json.dumps(found)[:300], flush=True)
    result["seconds"] = time.perf_counter() - started
    return result


@torch.no_grad()
def with_neighbours(model, read, unread, ids, seed) -> dict:
    """Perplexities of the model alone, with each store, and with random places of a store."""
    few = KNN["captions"]
    tune, test = (states_of(model, ids[s][:few]) for s in ("validation", "test"))
    seen, new = states_of(model, read), states_of(model, unread)
    both = tuple(torch.cat(pair) for pair in zip(seen, new, strict=True))
    tenth = torch.randperm(len(both[1]), generator=torch.Generator().manual_seed(seed))
    tenth = tenth[: len(tenth) // 10]
    stores = {"seen": seen, "unseen": new, "both": both, "tenth": tuple(x[tenth] for x in both)}
    alone = {}
    for name, (hidden, tokens) in {"tune": tune, "test": test}.items():
        parts = zip(hidden.split(1024), tokens.split(1024), strict=True)
        alone[name] = torch.cat(
            [model.project(h).log_softmax(-1).gather(1, t[:, None])[:, 0] for h, t in parts]
        )
    found = {"alone": math.exp(-alone["test"].mean()), "test_tokens": len(test[1]), "stores": {}}
    for name, (keys, tokens) in stores.items():
        store = neighbours.Datastore(keys, tokens)
        near = {which: search(store, hidden) for which, (hidden, _) in
                {"tune": tune, "test": test}.items()}
        found["stores"][name] = best_share(alone, near, tune[1], test[1]) | {"places": len(tokens)}
        if name == "both":
            wild = {
                which: (d, tokens[torch.randint(len(tokens), d.shape)])
                for which, (d, _) in near.items()
            }
            found["random places"] = best_share(alone, wild, tune[1], test[1])
        if name == "unseen":
            found["gate"] = train_gate(model, store, seen, near, tune, test, alone, seed)
    return found


def search(store, hidden):
    """Distances and following tokens of the nearest places: (Q, n) each."""
    parts = [store.nearest(q, KNN["n"]) for q in hidden.split(256)]
    distances, places = (torch.cat(x) for x in zip(*parts, strict=True))
    return distances, store.tokens[places]


def best_share(alone, near, tune_tokens, test_tokens) -> dict:
    """Scale and share with the lowest perplexity on the tuning captions, and what they give."""

    def perplexity(which, wanted, scale, share):
        logp = neighbours.neighbour_logp(*near[which], wanted, scale)
        return math.exp(-neighbours.interpolate(alone[which], logp, share).mean())

    grid = [(perplexity("tune", tune_tokens, scale, share), scale, share)
            for scale in KNN["scales"] for share in KNN["shares"]]
    _, scale, share = min(grid)
    curve = [round(perplexity("test", test_tokens, scale, s), 3) for s in (0.0, *KNN["shares"])]
    logp = neighbours.neighbour_logp(*near["test"], test_tokens, scale)
    named = torch.isfinite(logp).float().mean().item()
    return {"scale": scale, "share": share, "test": perplexity("test", test_tokens, scale, share),
            "curve": curve, "named": round(named, 4)}


def train_gate(model, store, seen, near, tune, test, alone, seed) -> dict:
    """SPALM's gate over the unseen half's store, learned on places of the half that was read."""
    chosen = torch.randperm(len(seen[1]), generator=torch.Generator().manual_seed(seed))[:6000]
    queries, wanted = seen[0][chosen], seen[1][chosen]
    _, followed = search(store, queries)
    table = model.output.weight.detach()
    torch.manual_seed(seed)
    gate = neighbours.Gate(model.config.d_model)
    optimizer = torch.optim.Adam(gate.parameters(), lr=2e-3)
    n = 16
    with torch.enable_grad():
        for _ in range(2):
            for rows in torch.randperm(len(chosen)).split(128):
                state = gate(queries[rows], table[followed[rows, :n]])
                loss = F.cross_entropy(state @ table.T, wanted[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    logp = torch.cat(
        [
            (gate(h, table[f[:, :n]]) @ table.T).log_softmax(-1).gather(1, t[:, None])[:, 0]
            for h, f, t in zip(test[0].split(512), near["test"][1].split(512),
                               test[1].split(512), strict=True)
        ]
    )
    opening = gate.open(test[0]).sigmoid().mean(1)
    spread = opening.quantile(torch.tensor([0.05, 0.5, 0.95]))
    return {"test": math.exp(-logp.mean()), "mean_gate": opening.mean().item(),
            "gate_quantiles": rounded(spread)}


# ---- as many steps as needed ---------------------------------------------------------------------

STEPS = {"updates": 500, "batch": 64, "places": 8, "hops": 5, "max_steps": 6, "rate": 2e-3}


def ponder(arm: str, seed: int) -> dict:
    """Follow the arrows at a price for each step; the price grows over the first half."""
    torch.manual_seed(seed)
    price = float(arm)
    model = arrows.Follower(STEPS["places"], STEPS["hops"], STEPS["max_steps"])
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=STEPS["rate"])
    n, started = STEPS["updates"], time.perf_counter()
    for step in range(n):
        optimizer.param_groups[0]["lr"] = STEPS["rate"] * min(
            1, (step + 1) / 100, 3 * (1 - step / n)
        )
        batch = arrows.draw(STEPS["batch"], STEPS["places"], STEPS["hops"], generator)
        arrows.training_step(model, optimizer, batch, price * min(1, 2 * step / n))
    to, hops, arrived = arrows.draw(
        1000, STEPS["places"], STEPS["hops"], torch.Generator().manual_seed(99)
    )
    with torch.no_grad():
        logits, steps, _ = model(to, hops)
    right = (logits.argmax(-1) == arrived).float().mean(1)
    of_hops = [hops == h for h in range(1, STEPS["hops"] + 1)]
    return {"arm": arm, "seed": seed, "price": price, "settings": STEPS,
            "right": rounded([right[rows].mean().item() for rows in of_hops]),
            "steps": rounded([steps[rows].mean().item() for rows in of_hops]),
            "seconds": time.perf_counter() - started}


# ---- spans --------------------------------------------------------------------------------------

SPANS = {
    "model": {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_encoder_layers": 0,
              "n_decoder_layers": 2, "dropout": 0.0, "positional": "none", "max_len": 256},
    "updates": 240, "batch": 16, "size": 128, "rate": 3e-3,
}
# What a rival would change: with no positions, a short span is also what tells the order.
SPAN_CONTROLS = {"": {}, "places": {"positional": "sinusoidal"}, "longer": {"updates": 960}}


def span(arm: str, seed: int) -> dict:
    """Characters of captions, with learned spans at a price, or with one fixed span for all.

    arm: "learned PRICE" or "fixed SPAN", and perhaps ", " and the name of a control.
    """
    what, _, control = arm.partition(", ")
    changed = SPAN_CONTROLS[control]
    text = "\n".join(b for _, b in load_parallel("multi30k")["train"][:12000]).encode()
    data = torch.tensor(list(text)).clamp(max=127)
    cut = len(data) * 9 // 10
    torch.manual_seed(seed)
    sizes = SPANS["model"] | {k: v for k, v in changed.items() if k in SPANS["model"]}
    model = distance.with_spans(LanguageModel(ModelConfig(128, **sizes)), SPANS["size"])
    kind, number = what.split()
    attentions = [layer.self_attention for layer in model.decoder.layers]
    if kind == "fixed":
        for attention in attentions:
            attention.share.data.fill_(float(number) / SPANS["size"])
            attention.share.requires_grad_(False)
    shares = [a.share for a in attentions]
    others = [p for p in model.parameters() if not any(p is s for s in shares)]
    optimizer = torch.optim.Adam(
        [{"params": others, "lr": SPANS["rate"]}, {"params": shares, "lr": 3 * SPANS["rate"]}]
    )
    generator = torch.Generator().manual_seed(seed)

    def batch(low, high, rows):
        start = torch.randint(low, high - SPANS["size"] - 1, (rows, 1), generator=generator)
        return data[start + torch.arange(SPANS["size"] + 1)]  # (B, T + 1)

    def loss_of(ids):
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    n, started = changed.get("updates", SPANS["updates"]), time.perf_counter()
    for step in range(n):
        for group, factor in zip(optimizer.param_groups, (1, 3), strict=True):
            group["lr"] = factor * SPANS["rate"] * min(1, (step + 1) / 50, 3 * (1 - step / n))
        loss = loss_of(batch(0, cut, SPANS["batch"]))
        if kind == "learned":
            loss = loss + float(number) * torch.stack([a.spans().mean() for a in attentions]).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        optimizer.step()
    generator.manual_seed(99)
    with torch.no_grad():
        held_out = sum(loss_of(batch(cut, len(data), 16)).item() for _ in range(8)) / 8
    return {"arm": arm, "seed": seed, "bits": held_out / math.log(2), "settings": SPANS,
            "spans": [rounded(a.spans().flatten(), 1) for a in attentions],
            "seconds": time.perf_counter() - started}


SPAN_RIVALS = [f"{what}, {control}" for control in ("places", "longer")
               for what in ("learned 0.001", "fixed 8", "fixed 128")]
# Topic: its function, its arms, its settings, the file in results/beyond/.
TOPICS = {
    "exits": (exits, ["solved", "trained"], EXITS, "early-leaving"),
    "recall": (remember, recall.NAMES, RECALL, "recall"),
    "neighbours": (beside, ["captions"], KNN, "neighbours"),
    "steps": (ponder, ["0", "0.01", "0.03", "0.1", "0.3"], STEPS, "adaptive-steps"),
    "spans": (span, ["learned 0", "learned 0.001", "learned 0.004", "learned 0.016",
                     "fixed 8", "fixed 24", "fixed 128"] + SPAN_RIVALS, SPANS, "spans"),
}
EXIT_POINTS = len(EXITS["gaps"]) + 3 + 2 * len(EXITS["quantiles"])  # 3: depths 3, 2 and 1


def signature() -> dict:
    """Where and when a run was made."""
    where = environment(torch.device("cpu"))
    return {"device": where["device"], "commit": where["commit"],
            "date": datetime.date.today().isoformat()}


def runs_of(topic: str) -> list[dict]:
    """The runs of a topic in results/beyond/ that were made with today's settings."""
    *_, settings, name = TOPICS[topic]
    path = RESULTS / f"{name}.json"
    runs = json.loads(path.read_text(encoding="utf8"))["runs"] if path.exists() else []
    return [run for run in runs if run["settings"] == settings]


def recorded(topic: str, arm: str, seed: int) -> dict | None:
    """A run, whole or begun, or None."""
    found = (run for run in runs_of(topic) if (run["arm"], run["seed"]) == (arm, seed))
    return next(found, None)


def collect(topic: str, result: dict) -> None:
    """Write a run to results/beyond/, in the place of what stood there of it."""
    _, arms, _, name = TOPICS[topic]
    key = result["arm"], result["seed"]
    runs = [run for run in runs_of(topic) if (run["arm"], run["seed"]) != key] + [result]
    runs.sort(key=lambda run: (arms.index(run["arm"]), run["seed"]))
    RESULTS.mkdir(parents=True, exist_ok=True)
    write_json(RESULTS / f"{name}.json", {"runs": runs})


def main(arguments=None):
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("topics", nargs="+", choices=list(TOPICS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--arms", nargs="+", default=None)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for seed in options.seeds:
        for topic in options.topics:
            run, arms, *_ = TOPICS[topic]
            for arm in options.arms or arms:
                stands = recorded(topic, arm, seed)
                if stands and len(stands.get("points", ())) in (0, EXIT_POINTS):
                    continue
                began = time.perf_counter()
                collect(topic, run(arm, seed) | signature())
                print(topic, arm, seed, f"{time.perf_counter() - began:.0f} s", flush=True)


def record_all():
    main(list(TOPICS))


if __name__ == "__main__":
    main()
