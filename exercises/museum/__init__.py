"""The bug museum: one healthy program, its laws, and what becomes of it when a line is wrong.

The healthy program is `transformer_lib.one_file`.

- `laws` says what every right program does; a law is a function that a broken program fails.
- `specimens` are real bugs, each as a change of one to three lines.
- `symptoms` records how a specimen looks from outside, `key` leads from there to the suspects.
- `wings` has three more small programs, with specimens and laws of their own.
- `gallery` draws the page.
"""
