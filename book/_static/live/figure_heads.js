// Switch off heads, one by one and in groups, and see which the sentence can spare.
import { h, model, KINDS, KIND_NAMES, headName, difference, percent } from "./shared.js";
import { makeHeads } from "./heads.js";
import { frame } from "./frame.js";

export async function mount(root) {
  const state = { heads: new Set(), blocks: new Set(), pin: null };
  let result = null;
  const heads = makeHeads({ peek: () => {}, set: ({ pin }) => toggle("heads", pin ?? state.last), toggle });
  function toggle(which, name) { state.last = name; if (!state[which].delete(name)) state[which].add(name); figure.update(); }
  const group = (text, names) => h("button", { type: "button", class: "live-button", onclick: () => { state.blocks.clear(); state.heads = new Set(names()); figure.update(); } }, text);
  const every = (keep) => () => KINDS.flatMap((kind) => result.attention[kind].flatMap((layer, l) => layer.map((_, n) => [kind, l, n]))).filter(([kind, l, n]) => !keep(kind, l, n)).map((name) => name.join("."));
  const figure = frame(root, {
    text: "Ein alter Mann schläft auf einer Bank im Park.",
    controls: [group("Only head 0 of each layer", every((kind, l, n) => n === 0)), group("Half of each layer", every((kind, l, n) => n < 2)), group("All but the last layer", every((kind, l) => l < model.layers - 1)), group("All on", () => [])],
    parts: [heads.element, h("p", { class: "live-note" }, "Click a head to switch it off, or a number to switch off its layer.")],
    async compute(text) {
      const before = await model.translate(text), some = state.heads.size + state.blocks.size;
      return { before, now: some ? await model.translate(text, { switches: { heads: [...state.heads], blocks: [...state.blocks] } }) : before };
    },
    draw({ before, now }) {
      result = now;
      heads.draw({ state, result, scanned: null });
      figure.show(now === before ? [["with all heads", now]] : [["with all heads", before], ["without these", now, before]]);
      if (now === before) return "All heads are on. How many can the sentence spare?";
      const d = difference(before, now), off = root.querySelectorAll(".live-off").length;
      return `${off} of ${root.querySelectorAll(".live-head").length} heads off: ${d.same ? "the sentence stays the same" : "it writes something else"}; the probability of “${d.word}” goes from ${percent(d.was)} to ${d.unseen ? "almost nothing" : percent(d.is)}.`;
    },
  });
  await figure.update();
}
