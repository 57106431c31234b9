"""The other implementations, each given our weights, so that all do the same work.

`torch.nn.Transformer` (training), Marian of `transformers` (decoding), and our own model without
its cache. What writes our weights for CTranslate2 is transformer_lib.runs.to_ctranslate2.
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib import ModelConfig, Transformer
from transformer_lib.positional import SinusoidalEncoding
from transformer_lib.tokenization import BOS, PAD

# ------------------------------------------------------------------------- torch.nn.Transformer


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with embeddings, positions, and torch's own cross-entropy as its loss.

    Built as a careful user would: the causal hint, which lets torch take its fast path, and no
    target padding mask, which the causal mask makes superfluous (padding stands at the end).
    same_dropout: drop only where ours does. By itself torch also drops attention weights and
    inside the feed-forward sublayer.
    """

    def __init__(self, ours: Transformer, smoothing: float, same_dropout: bool):
        super().__init__()
        c = ours.config
        self.scale, self.smoothing = c.d_model**0.5, smoothing
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.position = SinusoidalEncoding(c.d_model, c.max_len)
        self.dropout = nn.Dropout(c.dropout)
        self.core = nn.Transformer(
            c.d_model, c.n_heads, c.n_encoder_layers, c.n_decoder_layers, c.d_ff, c.dropout,
            batch_first=True, norm_first=c.norm_first,
        )
        self._copy(ours)
        if same_dropout:
            for part in self.core.modules():
                if isinstance(part, nn.MultiheadAttention):
                    part.dropout = 0.0
                elif isinstance(part, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                    part.dropout.p = 0.0

    @torch.no_grad()
    def _copy(self, ours: Transformer) -> None:
        self.embedding.weight.copy_(ours.src_embedding.lookup.weight)
        for mine, theirs in ((ours.encoder, self.core.encoder), (ours.decoder, self.core.decoder)):
            theirs.norm.load_state_dict(mine.norm.state_dict())
            for a, b in zip(mine.layers, theirs.layers, strict=True):
                attentions = [(a.self_attention, b.self_attn)]
                if hasattr(a, "cross_attention"):
                    attentions.append((a.cross_attention, b.multihead_attn))
                for x, y in attentions:
                    parts = (x.w_q, x.w_k, x.w_v)
                    y.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
                    y.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
                    y.out_proj.load_state_dict(x.w_o.state_dict())
                b.linear1.load_state_dict(a.feed_forward.expand.state_dict())
                b.linear2.load_state_dict(a.feed_forward.contract.state_dict())
                for i, residual in enumerate(a.residuals, start=1):
                    getattr(b, f"norm{i}").load_state_dict(residual.norm.state_dict())

    def embed(self, ids: Tensor) -> Tensor:
        """(B, T) -> (B, T, D)."""
        return self.dropout(self.position(self.embedding(ids) * self.scale))

    def forward(self, src_ids: Tensor, tgt_ids: Tensor) -> Tensor:
        """src_ids: (B, S); tgt_ids: (B, T + 1), <bos> first -> mean loss per real target token."""
        read, predicted = tgt_ids[:, :-1], tgt_ids[:, 1:]  # (B, T) each
        padding = src_ids == PAD  # (B, S); torch's masks say what is hidden
        hidden = self.core(
            self.embed(src_ids), self.embed(read),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(read.size(1)),
            tgt_is_causal=True, src_key_padding_mask=padding, memory_key_padding_mask=padding,
        )
        logits = hidden @ self.embedding.weight.T  # (B, T, V)
        return F.cross_entropy(
            logits.flatten(0, 1), predicted.flatten(), ignore_index=PAD,
            label_smoothing=self.smoothing,
        )


# --------------------------------------------------------------------------------- without a cache


class Uncached:
    """Our model for `beam_search`, but every step computes the whole prefix anew."""

    def __init__(self, model: Transformer):
        self.config, self.training = model.config, False
        self.model, self.eval, self.train, self.step = model, model.eval, model.train, model.step

    def start(self, src_ids, bos_id, use_cache=False):
        """A state without a cache: each step is then given the whole prefix."""
        return self.model.start(src_ids, bos_id, use_cache=False)


# ------------------------------------------------------------------------------------------ Marian


def marian_pair(like: ModelConfig):
    """A Marian model of this size with random weights, and ours with the same: (marian, ours).

    Marian knows post-norm only, so neither is the trained model. No token ends a sentence: every
    output then has the length asked for.
    """
    from transformers import MarianConfig, MarianMTModel

    marian = MarianMTModel(MarianConfig(
        vocab_size=like.vocab_size, d_model=like.d_model, encoder_layers=like.n_encoder_layers,
        decoder_layers=like.n_decoder_layers, encoder_attention_heads=like.n_heads,
        decoder_attention_heads=like.n_heads, encoder_ffn_dim=like.d_ff,
        decoder_ffn_dim=like.d_ff, max_position_embeddings=like.max_len, dropout=0.0,
        activation_function="relu", scale_embedding=True, init_std=0.1, pad_token_id=PAD,
        bos_token_id=BOS, eos_token_id=None, forced_eos_token_id=None, decoder_start_token_id=BOS,
    )).eval()
    marian.final_logits_bias[:, PAD] = -torch.inf  # ours never writes padding
    ours = Transformer(ModelConfig(
        vocab_size=like.vocab_size, d_model=like.d_model, n_heads=like.n_heads, d_ff=like.d_ff,
        n_encoder_layers=like.n_encoder_layers, n_decoder_layers=like.n_decoder_layers,
        max_len=like.max_len, norm_first=False,
    )).eval()
    # Marian puts all sines before all cosines; ours alternate, as the paper writes them.
    table = ours.embed.positions.table
    ours.embed.positions.table = torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)
    ours.src_embedding.lookup.weight.data.copy_(marian.model.shared.weight)
    names = {"w_q": "q_proj", "w_k": "k_proj", "w_v": "v_proj", "w_o": "out_proj"}
    for mine, other in ((ours.encoder, marian.model.encoder), (ours.decoder, marian.model.decoder)):
        for a, b in zip(mine.layers, other.layers, strict=True):
            pairs = [(a.feed_forward.expand, b.fc1), (a.feed_forward.contract, b.fc2)]
            pairs += [(getattr(a.self_attention, x), getattr(b.self_attn, y))
                      for x, y in names.items()]
            norms = [b.self_attn_layer_norm, b.final_layer_norm]
            if hasattr(a, "cross_attention"):
                pairs += [(getattr(a.cross_attention, x), getattr(b.encoder_attn, y))
                          for x, y in names.items()]
                norms.insert(1, b.encoder_attn_layer_norm)
            pairs += zip((residual.norm for residual in a.residuals), norms, strict=True)
            for ours_part, theirs_part in pairs:
                ours_part.load_state_dict(copy.deepcopy(theirs_part.state_dict()))
    return marian, ours
