"""What came after the Transformer, built from its blocks: the code of Part V.

`encoders` is what encoders alone learn from, and what was changed in them (chapter "Encoder-only").
`sparse`, `lsh`, `routing`, `low_rank`, `linear` and `flash` are kinds of attention that cost less
than T * T on long texts, `reversible` saves the memory of the layers, and `far_links` is the task
that tells cheap and right from cheap and wrong (chapter "Cheaper attention").

`one_stream` writes source and target as one text, for models without an encoder, and `families`
gives the weights of GPT-2 and Llama the names of ours (chapter "Decoder-only").

`denoising` damages texts that a model then restores, `relative_bias` holds T5's positions, and
`layer_memory` lets a decoder read other encoder layers than the last (chapter "Encoder–decoders").

`memory` keeps what was read between segments, `neighbours` finds it again by search, `distance` is
what heads learn about far and near, `exchange` puts another attention into a finished stack, and
`recall` is the task that tells whether it helps (chapter "Longer memory"). `adaptive_depth` spends
layers where they are needed, `arrows` is a task with a known need (chapter "Less depth").

`gates` closes and opens the residual of a layer, `corridor` is the task that needs memory, and
`acting` holds recorded episodes, what they returned and what is asked for (chapter "Acting").

`states` puts a table of fixed size in the place of all keys and values, with a gate (chapter
"States"), and `experts` many feed-forward networks in the place of one (page "Experts").

`speculative` lets something cheap guess the next tokens (page "Speculative decoding"), and
`choosing` picks one of several translations (page "Search errors and model errors").

`caption_grammar` tells whether a caption is one, `preferences` goes for what a judge likes (chapter
"Preferences"), and `diffusion` writes with a masked model (page "Writing by filling in").

`learning` is the training loop that all these tasks share.
"""
