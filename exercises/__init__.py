"""What judges a reader's code: the checks of the exercises, the bug museum, one's own Transformer.

- `checks` says of an answer whether it is right, and if not, what is wrong with it.
- `museum` keeps real bugs of Transformer code, each with how it looks and the law that it breaks.
- `own` puts a reader's parts in the place of the library's, and trains the model they make.
- `mystery` holds trained models with something wrong in each, to be examined from outside.
- `guesses` keeps a reader's guesses and scores how sure they were.
- `race` times a student's code against the book's own.

All of them use `transformer_lib`, which does not know them.
"""
