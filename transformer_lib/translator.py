"""A trained model with its tokenizer: text in, text out, and a look inside."""

from dataclasses import dataclass

import torch
from tokenizers import Tokenizer
from torch import Tensor

from transformer_lib import fast
from transformer_lib.attention import record_attention
from transformer_lib.decoding import beam_search, evaluating, in_batches
from transformer_lib.guards import has_visible_text
from transformer_lib.models.transformer import Transformer
from transformer_lib.tokenization import (
    BOS,
    PAD,
    encode_source,
    require_fit,
)


@dataclass(frozen=True)
class Translation:
    """One translated sentence.

    text: the translation. tokens, source_tokens: the tokens that the decoder wrote and the encoder
    read, both with <eos>. cross_attention: (n_decoder_layers, n_heads, len(tokens),
    len(source_tokens)), the attention weights behind each token. score: log-probability /
    length ** length_penalty.
    """

    text: str
    tokens: list[str]
    source_tokens: list[str]
    cross_attention: Tensor
    score: float


class Translator:
    """Translate sentences with a trained Transformer.

    length_penalty: the exponent of beam_search that `translate` uses unless you give it another.
    """

    def __init__(self, model: Transformer, tokenizer: Tokenizer, length_penalty: float = 1.0):
        require_fit(tokenizer, model.config.vocab_size)
        self.model, self.tokenizer = model.eval(), tokenizer
        self.length_penalty = length_penalty

    @property
    def device(self) -> torch.device:
        """The device that the model is on."""
        return next(self.model.parameters()).device

    def translate(
        self,
        texts: list[str],
        beam_size: int = 5,
        length_penalty: float | None = None,
        max_tokens: int = 2048,
        attention: bool = True,
    ) -> list[Translation]:
        """Translate each text by beam search, in batches of at most max_tokens source tokens.

        length_penalty: None means self.length_penalty; a recorded run comes with its own.
        attention=False leaves cross_attention empty and saves one pass over each sentence.
        An empty text, or a text without visible characters, stays empty.
        Raises TypeError for a bare string, ValueError for a sentence longer than the model reads.
        """
        if isinstance(texts, str):
            raise TypeError("translate expects a list of sentences, got one string: put it in [ ].")
        if not texts:
            return []
        if length_penalty is None:
            length_penalty = self.length_penalty
        if empty := [i for i, text in enumerate(texts) if not has_visible_text(text)]:
            rest = [text for text in texts if has_visible_text(text)]
            found = iter(self.translate(rest, beam_size, length_penalty, max_tokens, attention))
            nothing = Translation("", [], [], torch.empty(0), 0.0)
            return [nothing if i in set(empty) else next(found) for i in range(len(texts))]
        sources = encode_source(self.tokenizer, list(texts))
        longest = max(range(len(sources)), key=lambda i: len(sources[i]))
        if problem := self.problem(texts[longest]):
            raise ValueError(problem)

        model = fast.for_decoding(self.model, len(sources))  # the same ids in less time

        def search(src_ids: Tensor):
            """The ids, score and cross-attention of each sentence."""
            ids, scores = beam_search(model, src_ids, beam_size, None, length_penalty)
            weights = self.cross_attention(src_ids, ids) if attention else [None] * len(ids)
            return zip(ids, scores, weights, strict=True)

        # Attention is recorded in the one model that all threads share, so use a single thread.
        each = map if attention else fast.parallel_map
        found = in_batches(search, sources, max_tokens, self.device, each)
        return [self._translation(ids, *it) for ids, it in zip(sources, found, strict=True)]

    def problem(self, text: str) -> str:
        """Why a text cannot be translated; empty if it can."""
        n, limit = len(encode_source(self.tokenizer, [text])[0]), self.model.config.max_len
        if n <= limit:
            return ""
        return (
            f"a sentence of {n} tokens is longer than the model's {limit} ({text[:40]!r}...): "
            "split it into shorter ones."
        )

    def _translation(self, source: list[int], ids: Tensor, score: Tensor, weights) -> Translation:
        written = ids[ids != PAD].tolist()
        token = self.tokenizer.id_to_token
        return Translation(
            text=self.tokenizer.decode(written),
            tokens=[token(i) for i in written],
            source_tokens=[token(i) for i in source],
            cross_attention=torch.empty(0)
            if weights is None
            else weights[:, :, : len(written), : len(source)],
            score=float(score),
        )

    @torch.inference_mode()
    def cross_attention(self, src_ids: Tensor, ids: Tensor) -> Tensor:
        """The attention weights behind each id of a translation: (B, layers, H, T, S).

        src_ids: (B, S); ids: (B, T), as a decoder returns them. One pass, teacher-forced.
        """
        bos = torch.full((len(ids), 1), BOS, device=ids.device)
        read = torch.cat([bos, ids[:, :-1]], dim=1)  # (B, T): what came before each token
        with evaluating(self.model), record_attention(self.model) as weights:
            self.model(src_ids, read)
        layers = range(self.model.config.n_decoder_layers)
        maps = [weights[f"decoder.layers.{i}.cross_attention"] for i in layers]
        return torch.stack(maps, dim=1).cpu()
