"""Replays the lecture demos of course/plan.yml in Chromium: what each address gives."""

import tempfile
from pathlib import Path

from benchmarks.browser import open_page

REPLAY = """
const {LiveModel} = await import("/client.js");
const {read, switchesOf} = await import("/translator.js");
const live = new LiveModel(new URL("/multi30k-de-en.bin", location.href));
await live.load();
const texts = [];
for (const hash of args.addresses) {
  const state = read(hash);
  const drawing = state.method === "sample"
    ? {temperature: state.temperature, topK: state.topK || undefined, seed: state.seed,
       topP: state.topP < 1 ? state.topP : undefined} : {};
  const result = await live.translate(state.text, {
    method: state.method, beamSize: state.beamSize, lengthPenalty: state.penalty ?? undefined,
    ...drawing, switches: switchesOf(state) ?? undefined, prefix: state.prefix, keep: 4});
  texts.push({text: result.text, first: result.steps.slice(0, 3).map((step) =>
    step.top.slice(0, 3).map((bet) => [bet.piece, Math.round(100 * bet.p), bet.id]))});
}
return texts;
"""


def replay(addresses: list[str]) -> list[dict]:
    """For each address (what follows the #): the translation, and the first steps' best pieces."""
    with open_page(Path(tempfile.mkdtemp())) as page:
        return page.run(REPLAY, addresses=addresses)
