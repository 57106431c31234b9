"""What came after the Transformer, built from its blocks: the code of Parts V and VI.

`encoders` holds the training tasks of encoder-only models and what BERT's successors changed
(chapter "Encoder-only"). `sparse`, `lsh`, `routing`, `low_rank`, `linear` and `flash` are kinds of
attention that save time or memory on long texts, `reversible` saves the memory of the layers, and
`far_links` is the task that shows which of them still learn (chapter "Cheaper attention").

`one_stream` writes source and target as one text, for models without an encoder, and `families`
gives the weights of GPT-2 and Llama the names of ours (chapter "Decoder-only").

`denoising` damages texts that a model then restores, `relative_bias` holds T5's positions, and
`layer_memory` lets a decoder read earlier encoder layers, too (chapter "Encoder–decoders").

`memory` carries what was read over from one segment to the next, `neighbours` finds it again by
search, `distance` lets heads learn how far they look, `exchange` puts another attention into a
finished stack, and `recall` is the task that shows whether it helps (chapter "Longer memory").
`adaptive_depth` spends layers only where they are needed, and `arrows` is a task in which the
number of layers needed is known (chapter "Less depth").

`gates` puts a gate in each layer's residual connection, `corridor` is a task that needs memory, and
`acting` holds recorded episodes and models that play for a given return (chapter "Acting").

`states` replaces all keys and values by a table of fixed size with a gate (chapter "States"), and
`experts` replaces one feed-forward network by many (page "Experts").

`speculative` lets something cheap guess the next tokens (page "Speculative decoding"), and
`choosing` picks one of several translations (page "Search errors and model errors").

`caption_grammar` tells whether a caption is grammatical, `preferences` trains a model to write what
a judge prefers (chapter "Preferences"), and `diffusion` writes with a masked model (page "Writing
by filling in").

`learning` is the training loop that all these tasks share.
"""
