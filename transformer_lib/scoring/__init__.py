"""What `evaluation` stands on: checks of its input, and the counts that sacrebleu keeps.

texts      lists of sentences that fit together; one sentence as tokens
sacre      sacrebleu's metrics and their statistics
verdict    is one arm of an experiment better than another, or can they not be told apart?
ablations  what the recorded short runs say of one change to the recipe
"""
