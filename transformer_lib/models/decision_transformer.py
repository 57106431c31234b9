"""A decoder that acts: it reads returns still to come, states and actions, and predicts actions."""

import torch
from torch import Tensor, nn

from transformer_lib.blocks import init_weights
from transformer_lib.config import BlockConfig
from transformer_lib.decoder import Decoder
from transformer_lib.masks import causal_mask
from transformer_lib.normalization import make_norm


class DecisionTransformer(nn.Module):
    """Predicts actions from the past and a target return (Chen et al. 2021).

    Each step of an episode is three tokens: the return still to come, the state, the action. A
    learned vector for the step's number is added to all three. config.n_decoder_layers: the depth;
    config.max_len: the longest episode.
    """

    def __init__(self, config: BlockConfig, n_state: int, n_actions: int):
        super().__init__()
        self.config = config
        self.embed_return = nn.Linear(1, config.d_model)
        self.embed_state = nn.Linear(n_state, config.d_model)
        self.embed_action = nn.Embedding(n_actions, config.d_model)
        self.embed_step = nn.Embedding(config.max_len, config.d_model)
        self.norm = make_norm(config.norm, config.d_model, config.eps)
        self.decoder = Decoder(config, cross_attention=False)
        self.output = nn.Linear(config.d_model, n_actions)
        init_weights(self.decoder)
        for table in (self.embed_action, self.embed_step):
            nn.init.normal_(table.weight, std=0.1)

    def tokens(self, returns: Tensor, states: Tensor, actions: Tensor, steps: Tensor) -> Tensor:
        """returns: (B, T), states: (B, T, n_state), actions: (B, T) ids, steps: (B, T) ids, 0 for
        the first of an episode -> (B, 3T, D): return, state, action of each step in turn.
        """
        if steps.numel() and steps.max() >= self.config.max_len:
            raise ValueError(
                f"step {int(steps.max())} of an episode has no row: the model was built for "
                f"max_len {self.config.max_len} steps; build it with a larger one."
            )
        three = self.embed_return(returns[..., None]), self.embed_state(states)
        three = torch.stack([*three, self.embed_action(actions)], 2)  # (B, T, 3, D)
        return self.norm((three + self.embed_step(steps)[:, :, None]).flatten(1, 2))

    def forward(self, returns: Tensor, states: Tensor, actions: Tensor, steps: Tensor) -> Tensor:
        """Arguments as for `tokens` -> logits (B, T, n_actions), the action to take in each state.
        They come from the state's token, which sees the past and the return, not the step's action.
        """
        x = self.tokens(returns, states, actions, steps)  # (B, 3T, D)
        x = self.decoder(x, tgt_mask=causal_mask(x.size(1), device=x.device))
        return self.output(x[:, 1::3])
