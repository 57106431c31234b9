"""Leaving early: exits for the shipped translator, solved or trained.

    make record ONLY=early_leaving

Each point of a run is written to results/beyond/early-leaving.json as soon as it is measured, and
is not measured again where it stands there with today's settings.
"""

import datetime
import json
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

from transformer_lib import load_pretrained
from transformer_lib.beyond import adaptive_depth
from transformer_lib.config import PAD
from transformer_lib.data import load_parallel
from transformer_lib.decoding import greedy_decode, in_batches
from transformer_lib.evaluation import score
from transformer_lib.runs.device import environment
from transformer_lib.runs.files import write_json
from transformer_lib.tokenization import (
    encode_pairs,
)
from transformer_lib.training import translation_batches

ROOT = Path(__file__).resolve().parents[2]


RESULTS = ROOT / "results" / "beyond"


def rounded(numbers, digits=4):
    """Short numbers for a file."""
    return [round(x, digits) for x in torch.as_tensor(numbers).tolist()]


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
    begun = recorded(arm, seed)
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
        collect(result | signature())
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


ARMS = ["solved", "trained"]
EXIT_POINTS = len(EXITS["gaps"]) + 3 + 2 * len(EXITS["quantiles"])  # 3: depths 3, 2 and 1


def signature() -> dict:
    """Where and when a run was made."""
    where = environment(torch.device("cpu"))
    return {"device": where["device"], "commit": where["commit"],
            "date": datetime.date.today().isoformat()}


def runs_of() -> list[dict]:
    """The recorded runs that were made with today's settings."""
    path = RESULTS / "early-leaving.json"
    runs = json.loads(path.read_text(encoding="utf8"))["runs"] if path.exists() else []
    return [run for run in runs if run["settings"] == EXITS]


def recorded(arm: str, seed: int) -> dict | None:
    """A run, whole or begun, or None."""
    return next((run for run in runs_of() if (run["arm"], run["seed"]) == (arm, seed)), None)


def collect(result: dict) -> None:
    """Write a run to the file, in the place of what stood there of it."""
    key = result["arm"], result["seed"]
    runs = [run for run in runs_of() if (run["arm"], run["seed"]) != key] + [result]
    runs.sort(key=lambda run: (ARMS.index(run["arm"]), run["seed"]))
    RESULTS.mkdir(parents=True, exist_ok=True)
    write_json(RESULTS / "early-leaving.json", {"runs": runs})


def record_all():
    """Both arms, seed 0."""
    torch.set_num_threads(1)
    for arm in ARMS:
        stands = recorded(arm, 0)
        if not stands or len(stands["points"]) < EXIT_POINTS:
            collect(exits(arm, 0) | signature())
