"""Record the sentences that the translator page shows before its model is loaded.

    python -m tools.make_live_examples

Writes book/_static/live/examples.json from the weights of the shipped model: for each sentence what
`LiveModel.translate` answers, greedy, with every head's attention in bytes (base64, 255 = 1).
The page is usable with them at once, also where the weights cannot be loaded. Run it again when
other weights are shipped; a test compares the two. It also records how sure the model is of
captions that it has not been trained on, and of sentences that are about other things: from that
the page knows which sentence to call strange. This needs Multi30k.
"""

import base64
import json
from pathlib import Path
from statistics import median

import torch

from transformer_lib import load_pretrained
from transformer_lib.attention import record_attention
from transformer_lib.data import load_parallel
from transformer_lib.decoding import greedy_decode
from transformer_lib.tokenization import BOS, PAD, encode_source

ROOT = Path(__file__).resolve().parents[1]


OUT = ROOT / "book" / "_static" / "live" / "examples.json"
RUN = "multi30k-de-en"
REVERSED = "multi30k-en-de"  # the other direction, which the page offers to those who type English
SENTENCES = {  # German, and whether it is like what the model has read
    "Zwei Hunde spielen im Schnee.": True,
    "Eine Frau, die einen roten Hut trägt, liest ein Buch.": True,
    "Ein Junge in einem blauen T-Shirt springt ins Wasser.": True,
    "Ein alter Mann schläft auf einer Bank im Park.": True,
    "Ein Quokka fährt Einrad.": True,
    "Gestern habe ich meine Schlüssel verloren.": False,
}
PAGES = {  # with which a chapter opens
    "Ein Mann repariert das Dach seines Hauses.": True,
    "Ein Kind malt ein buntes Bild.": True,
}
ELSEWHERE = """Bitte senden Sie uns die Rechnung bis Freitag.
Die Liebe ist ein seltsames Spiel.
Gestern habe ich meine Schlüssel verloren.
Ich denke, also bin ich.
Wie viel kostet eine Fahrkarte nach Berlin?
Die Zinsen werden im nächsten Jahr wieder steigen.
Warum hast du mir das nicht früher gesagt?
Das Parlament hat das Gesetz gestern abgelehnt.
Er glaubt nicht mehr an die große Liebe.
Mein Konto ist schon wieder überzogen.
Der Mietvertrag endet zum Ende des Monats.
Ohne Hoffnung kann niemand lange leben.
Wir müssen über unsere Zukunft reden.
Die Wissenschaft hat darauf noch keine Antwort.
Könnten Sie mir bitte helfen?
Freiheit ist immer die Freiheit der Andersdenkenden.
Der Arzt verschrieb ihr ein neues Medikament.
Ich habe Hunger und will nach Hause.
Die Aktie verlor zehn Prozent ihres Wertes.
Es war einmal ein König, der hatte drei Töchter.
Alle Menschen sind frei und gleich an Würde geboren.
Was du heute kannst besorgen, das verschiebe nicht auf morgen.
Die Quadratwurzel aus zwei ist keine rationale Zahl.
Sie vermisst ihn seit dem Tag, an dem er ging.""".splitlines()  # about no photograph
ELSEWHERE_IN_ENGLISH = """Please send us the invoice by Friday.
Love is a strange game.
I lost my keys yesterday.
I think, therefore I am.
How much is a ticket to Berlin?
Interest rates will rise again next year.
Why didn't you tell me that earlier?
Parliament rejected the bill yesterday.
He no longer believes in true love.
My account is overdrawn again.
The lease ends at the end of the month.
Nobody can live long without hope.
We need to talk about our future.
Science has no answer to that yet.
Could you help me, please?
Freedom is always the freedom of those who disagree.
The doctor prescribed her a new medicine.
I am hungry and I want to go home.
The share lost ten percent of its value.
Once upon a time there was a king who had three daughters.
All people are born free and equal in dignity.
Never put off until tomorrow what you can do today.
The square root of two is not a rational number.
I love you and I miss you.""".splitlines()
CAPTIONS = 400  # of the validation set
KEEP = 12  # pieces for each position
KINDS = {"encoder": "encoder.layers.{}.self_attention",
         "decoder": "decoder.layers.{}.self_attention",
         "cross": "decoder.layers.{}.cross_attention"}


def packed(weights: torch.Tensor) -> list[str]:
    """(1, H, T, S) -> one base64 string of T * S bytes for each head."""
    return [base64.b64encode(bytes((head * 255).round().byte().flatten().tolist())).decode()
            for head in weights[0]]


@torch.inference_mode()
def record(translator, sentence: str, in_domain: bool) -> dict:
    """What LiveModel.translate answers to one sentence."""
    tokenizer, model = translator.tokenizer, translator.model
    src = torch.tensor(encode_source(tokenizer, [sentence]))  # (1, S)
    written = greedy_decode(model, src)  # (1, T)
    ids = written[0].tolist()
    with record_attention(model) as weights:
        logits = model(src, torch.tensor([[BOS, *ids[:-1]]]))  # (1, T, V)
    logits[..., PAD] = -torch.inf
    probabilities = logits[0].softmax(-1)
    chosen = probabilities.gather(1, written[0][:, None]).squeeze(1)  # (T,)
    steps = []
    for position, (row, token) in enumerate(zip(probabilities, ids, strict=True)):
        best = row.topk(KEEP)
        steps.append({
            "position": position, "chosen": token,
            "top": [{"id": i, "piece": tokenizer.id_to_token(i), "p": round(p, 5)}
                    for p, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)],
        })
    layers = {"encoder": model.config.n_encoder_layers, "decoder": model.config.n_decoder_layers,
              "cross": model.config.n_decoder_layers}

    def named(tokens):
        return {"ids": tokens, "pieces": [tokenizer.id_to_token(i) for i in tokens]}

    return {
        "sentence": sentence, "inDomain": in_domain,
        "source": named(src[0].tolist()), "target": named(ids),
        "text": tokenizer.decode(ids),
        "score": round(float(chosen.log().sum()), 5),
        "confidence": round(float(chosen.mean()), 5),
        "steps": steps,
        "attention": {kind: [packed(weights[name.format(layer)]) for layer in range(layers[kind])]
                      for kind, name in KINDS.items()},
    }


@torch.inference_mode()
def confidences(translator, sentences: list[str]) -> list[float]:
    """The mean probability of the pieces that greedy decoding writes, for each sentence."""
    found = []
    for sentence in sentences:
        src = torch.tensor(encode_source(translator.tokenizer, [sentence]))  # (1, S)
        written = greedy_decode(translator.model, src)  # (1, T)
        logits = translator.model(src, torch.tensor([[BOS, *written[0].tolist()[:-1]]]))
        logits[..., PAD] = -torch.inf  # (1, T, V)
        found.append(logits.softmax(-1).gather(2, written[..., None]).mean().item())
    return found


def how_sure(translator, languages: tuple[str, str], elsewhere: list[str]) -> dict:
    """What 95 of 100 captions reach, and how many sentences about other things do."""
    captions = [pair[0] for pair in load_parallel("multi30k", *languages)["validation"][:CAPTIONS]]
    caption, elsewhere = (sorted(confidences(translator, some)) for some in (captions, elsewhere))
    usual = round(caption[len(caption) // 20], 2)
    return {
        "usual": usual,
        "captions": {"n": len(caption), "median": round(median(caption), 3),
                     "belowHalf": sum(p < 0.5 for p in caption)},
        "elsewhere": {"n": len(elsewhere), "usual": sum(p >= usual for p in elsewhere),
                      "belowHalf": sum(p < 0.5 for p in elsewhere)},
    }


def make() -> dict:
    """The whole file: the run's name, its sizes, and the recorded sentences."""
    translator = load_pretrained(RUN)
    config = translator.model.config
    return {
        "run": RUN,
        "layers": config.n_decoder_layers, "heads": config.n_heads,
        "parameters": translator.model.count_parameters(),
        **how_sure(translator, ("de", "en"), ELSEWHERE),
        "english": how_sure(load_pretrained(REVERSED), ("en", "de"), ELSEWHERE_IN_ENGLISH),
        "examples": [record(translator, *item) for item in SENTENCES.items()],
        "pages": [record(translator, *item) for item in PAGES.items()],
    }


if __name__ == "__main__":
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(make(), ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"Wrote {OUT.relative_to(ROOT)}: {OUT.stat().st_size / 1000:.0f} kB")
