"""Attention to a fixed number of mixtures of tokens: the Linformer (Wang et al. 2020)."""

from torch import Tensor

from transformer_lib.attention import scaled_dot_product_attention


def linformer_attention(q: Tensor, k: Tensor, v: Tensor, mix_k: Tensor, mix_v: Tensor) -> Tensor:
    """Attention to R mixtures of the T keys and values. q, k, v, result: (B, H, T, K).

    mix_k, mix_v: (R, T), learned, one row for each mixture. The scores are (T, R) instead of
    (T, T). With R = T and the identity this is full attention. A mixture has no position, so you
    can't use a mask over positions, and T is fixed.
    """
    return scaled_dot_product_attention(q, mix_k @ k, mix_v @ v)[0]  # (T, K) x (R, K)
