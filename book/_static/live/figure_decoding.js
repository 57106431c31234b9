// The bets, random draws and the beam, on the reader's own sentence.
import { h, model, percent, plain } from "./shared.js";
import { makeBets } from "./bets.js";
import { makeBeamTree } from "./beam_tree.js";
import { makeArcs } from "./arcs.js";
import { frame, lang } from "./frame.js";
import { weightsOf } from "./shared.js";

export async function mount(root) {
  const state = { method: "greedy", temperature: 1, topK: 0, topP: 1, seed: 1, beamSize: 5, penalty: null, prefix: [], at: null };
  let found = null;
  const arcs = makeArcs({ lang, onword: (at) => set({ at }) });
  const bets = makeBets({ set, lang, undo: "Undo", force: (at, bet) => set({ prefix: [...found.now.target.ids.slice(0, at), bet.id], at: at + 1, method: state.method === "beam" ? "greedy" : state.method }) });
  const tree = makeBeamTree({ set, lang, ask: (...given) => model.ask(...given) });
  const open = h("details", { class: "live-details", ontoggle: () => open.open && redraw() }, h("summary", {}, "The beam as a tree"), tree.element);
  const undo = h("button", { type: "button", class: "live-button", onclick: () => set({ prefix: [], method: "greedy" }) }, "Undo");
  const figure = frame(root, {
    text: root.dataset.text ?? "Viele Menschen warten auf den Bus.", controls: [undo],
    parts: [h("div", { class: "live-main live-pair" }, h("div", { class: "live-stage" }, arcs.element), h("div", { class: "live-right" }, bets.element)), open],
    async compute(text) {
      if (text !== state.text) Object.assign(state, { text, prefix: [], at: null });
      const options = { method: state.method, beamSize: state.beamSize, lengthPenalty: state.penalty ?? undefined,
        ...(state.method === "sample" ? { temperature: state.temperature, topK: state.topK || undefined, topP: state.topP < 1 ? state.topP : undefined, seed: state.seed } : {}) };
      const before = await model.translate(text, options);
      return { text, before, now: state.prefix.length ? await model.translate(text, { ...options, prefix: state.prefix }) : before };
    },
    draw(answer) {
      found = answer;
      redraw();
      figure.show([[{ greedy: "the likeliest each time", beam: "beam search", sample: "drawn at random" }[state.method], found.now, found.before]]);
      return `On average, the model was ${percent(found.now.confidence)} sure of each piece.`;
    },
  });
  function set(patch) { Object.assign(state, patch); if (Object.keys(patch).join() === "at") redraw(); else figure.update(); }
  function redraw() {
    if (!found) return;
    const { now, before, text } = found;
    let at = state.at;
    if (at === null) { at = 0; now.steps.forEach((step, i) => { if (step.top[0].p < now.steps[at].top[0].p) at = i; }); }
    at = Math.max(0, Math.min(at, now.steps.length - 1));
    arcs.draw({ result: now, before, kind: "cross", weights: weightsOf(now, "cross", 1), at });
    bets.draw({ state: { ...state, at }, result: now, before });
    undo.disabled = !state.prefix.length && state.method === "greedy";
    if (open.open) tree.draw({ state, text, switches: undefined }).catch(() => {});
  }
  await figure.update();
}
