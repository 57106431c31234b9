"""Where sentence pairs come from, for `data.load_parallel`: each module reads one kind of place.

mini        this project's own small corpus, made by a grammar
multi30k    MULTI30K_DIR, the hub or a mirror, whichever has it first
folder      a folder of JSON lines, or of another format that `datasets` reads
hub         a data set of the Hugging Face hub
cache       what was fetched, corpora and trained runs
rows        one row, in either layout, to a pair of strings
"""
