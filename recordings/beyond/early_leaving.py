"""Leaving early: exits for the shipped translator, solved or trained.

    make record ONLY=early_leaving        # about ten minutes on one core; resumable

solved: least squares, and the translator stays as it is. trained: its decoder learns together with
its exits; at other learning rates only the control is decoded, everybody out after the same layer.
"""

import torch
from safetensors.torch import save_file

from recordings.gate import MARGIN, Gate
from recordings.record import ROOT, cell
from transformer_lib import load_pretrained
from transformer_lib.beyond import adaptive_depth
from transformer_lib.config import PAD
from transformer_lib.data import load_parallel
from transformer_lib.decoding import greedy_decode, in_batches
from transformer_lib.evaluation import score
from transformer_lib.runs.files import make_folder
from transformer_lib.tokenization import encode_pairs
from transformer_lib.training import translation_batches

OUT = ROOT / "results" / "beyond" / "early-leaving.json"
PAGE = "24a_less_depth"
SOLVE_ON, TOKENS, UPDATES, RATE, AGREE_STEPS = 2500, 1536, 280, 4e-4, 150
GAPS, QUANTILES = (0.97, 0.9, 0.8, 0.65, 0.45, 0.25), (0.8, 0.5, 0.25)


def began(record: dict) -> bool:
    """No loss falls from chance here: both begin from a trained translator, and the loss is at an
    exit drawn again for each batch. So the first exit's share of errors is compared with its start.
    """
    start, end = (1 - record[name][0] for name in ("start", "agreement"))
    return end < (1 - MARGIN) * start


GATE = Gate(began=began, edge={"rate": (RATE, RATE)})


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


def shares(said) -> list[float]:
    """How often each exit says what the last layer says."""
    return (said == said[-1]).float().mean(1).tolist()


def solved(seed: int) -> dict:
    """Exits by least squares for the translator as it is."""
    return leaves(None, seed)


def trained(rate: float, seed: int) -> dict:
    """Exits that the translator's decoder learned together with."""
    return leaves(rate, seed)


def leaves(rate: float | None, seed: int) -> dict:
    """Give the translator exits, train them if there is a rate, and decode with each measure."""
    torch.manual_seed(seed)
    translator, pairs = load_pretrained("multi30k-de-en"), load_parallel("multi30k")
    model, tokenizer = translator.model.eval(), translator.tokenizer
    out = adaptive_depth.Exits(model.config.d_model, model.config.n_decoder_layers)
    some = encode_pairs(tokenizer, pairs["train"][:SOLVE_ON])
    some = translation_batches(*some, 4096, 0)
    states = layer_states(model, some)
    found = {"start": shares(words_said(model, out, states))}
    adaptive_depth.solve_maps(out, states)
    if rate:
        found["start"] = shares(words_said(model, out, states))
        train_exits(model, out, tokenizer, pairs, rate, seed)
        states = layer_states(model, some)
    said = words_said(model, out, states)
    found["agreement"] = shares(said)
    optimizer = torch.optim.Adam(out.agree.parameters(), lr=0.02)
    for _ in range(AGREE_STEPS):
        optimizer.zero_grad()
        adaptive_depth.agreement_loss(out, states, said).backward()
        optimizer.step()
    if not rate:  # the chapter's figure leaves by these
        make_folder(OUT.with_suffix(""))
        state = {f"exits.{k}": v.half().contiguous() for k, v in out.state_dict().items()}
        save_file(state, OUT.with_suffix("") / "solved.safetensors")

    sources = {s: encode_pairs(tokenizer, pairs[s])[0] for s in ("validation", "test")}
    references = {s: [b for _, b in pairs[s]] for s in sources}

    def write(decoder, split):
        return in_batches(
            lambda ids: tokenizer.decode_batch(greedy_decode(decoder, ids).tolist()),
            sources[split], 4096,
        )

    full = {s: write(model, s) for s in sources}
    found["full"] = {s: score(full[s], references[s]).bleu for s in sources}
    found["sentences"] = {s: len(sources[s]) for s in sources}
    found["points"] = []
    for measure, threshold in points(model, out, states, rate in (None, RATE)):
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
            if measure == "gap":
                point[split]["losses"] = [round(x, 2) for x in changed]
        found["points"].append(point)
    return found


def points(model, out, states, every: bool) -> list[tuple[str, float]]:
    """(measure, threshold) of what is decoded: every measure, or the control alone."""
    found = [("depth", float(d)) for d in range(model.config.n_decoder_layers - 1, 0, -1)]
    if not every:
        return found
    found = [("gap", x) for x in GAPS] + found
    for measure in ("agree", "stillness"):
        leaving = adaptive_depth.EarlyLeaving(model, out, measure, 2.0)
        first = 1 if measure == "agree" else 2
        sure = torch.cat([leaving.sureness(states[max(0, d - 2)], states[d - 1], d).detach()
                          for d in range(first, len(states))])
        found += [(measure, round(sure.quantile(q).item(), 4)) for q in QUANTILES]
    return found


def train_exits(model, out, tokenizer, pairs, rate, seed) -> None:
    """Train the decoder and the maps together; encoder and embeddings stay as they are."""
    batches = encode_pairs(tokenizer, pairs["train"])
    batches = translation_batches(*batches, TOKENS, seed)
    stream, n = iter(batches), UPDATES
    model.requires_grad_(False)
    model.decoder.requires_grad_(True).train()
    parameters = [*model.decoder.parameters(), *out.maps.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=rate, betas=(0.9, 0.98))
    for step in range(n):
        optimizer.param_groups[0]["lr"] = rate * min(1, step / 30, 2 * (1 - step / n))
        batch = batches.tensors(next(stream), torch.device("cpu"))
        optimizer.zero_grad()
        adaptive_depth.random_exit_loss(model, out, batch).backward()
        optimizer.step()
    model.eval()


def grid():
    """(settings, function) of every cell; one seed."""
    return [
        cell("solved", solved, seed=0),
        *(cell("trained", trained, rate=rate, seed=0) for rate in (RATE, RATE / 2, 2 * RATE)),
    ]
