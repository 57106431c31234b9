"""How fast the library is, side by side with what a reader would use instead.

    timing     contestants in turn, medians, one row per comparison
    peers      the other implementations, each with our weights
    training   a training step, an epoch, and their cost against length and batch size
    decoding   greedy and beam search on the test set
    startup    the price of `import transformer_lib`

`python -m benchmarks` measures everything in one run and writes results/bench.json and bench.md;
`--quick` is a smoke run on the mini corpus whose numbers mean nothing.
"""
