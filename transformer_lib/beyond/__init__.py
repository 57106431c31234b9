"""What came after the Transformer, built from its blocks: the code of Part V.

`encoders` is what encoders alone learn from, and what was changed in them (chapter "Encoder-only").
"""
