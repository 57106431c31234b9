"""The command translate."""

import sys

from transformer_lib.cli.options import load


def run(options) -> int:
    """Translate, and name what cannot be translated: such an argument stops the command; such a
    line of standard input becomes an empty line, and the others are translated.
    """
    if hasattr(sys.stdout, "reconfigure") and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")  # a pipe on Windows is not UTF-8
    translator, number, left_out, nothing = None, 0, 0, True
    groups = [[text.encode(errors="surrogateescape") for text in options.text]]
    for group in groups if options.text else _lines(sys.stdin):
        texts = [line.decode(errors="surrogateescape").strip("\ufeff\r\n\t ") for line in group]
        if translator is None and any(texts):
            translator, nothing = load(options), False
        for i, text in enumerate(texts):
            number += 1
            if problem := _not_text(text) or (text and translator.problem(text)):
                if options.text:
                    raise ValueError(problem)
                print(f"error: line {number}: {problem}", file=sys.stderr, flush=True)
                texts[i], left_out = "", left_out + 1
        settings = options.beam_size, options.length_penalty
        found = [text for text in texts if text]
        if found:
            found = translator.translate(found, *settings, attention=False)
        results = iter(found)
        for text in texts:  # an empty line stays empty, so that input and output stay in step
            print(next(results).text if text else "")
        if sys.stdout is not None:
            sys.stdout.flush()
    if nothing:
        raise ValueError("nothing to translate: give sentences as arguments or on standard input.")
    return 1 if left_out else 0


def _lines(stream):
    """Lists of lines, in bytes: each time those that have come, so that a pipe gets its answers."""
    if stream is None:  # closed
        return
    binary = getattr(stream, "buffer", None)
    if binary is None:
        yield [line.encode(errors="surrogateescape") for line in stream]
        return
    rest = b""
    while chunk := binary.read1(2**16):
        *lines, rest = (rest + chunk).split(b"\n")
        for start in range(0, len(lines), 128):
            yield lines[start : start + 128]
    if rest:
        yield [rest]


def _not_text(text: str) -> str:
    """What is wrong with a text that isn't valid UTF-8; empty if it is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text)
        return (f"{shown[:60]!r} is not valid UTF-8 text (it may be Latin-1 or Windows-1252): "
                "convert it to UTF-8 (one way: iconv -f WINDOWS-1252 -t UTF-8).")
    return ""
