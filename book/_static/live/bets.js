// What the model would write next: the best pieces as bars, with the bars from before a change
// behind them. Choosing another piece forces it, and the rest is written anew.
import { h, percent, plain, firstDifference } from "./shared.js";

const SHOWN = 8;

export function makeBets({ set, force, lang }) {
  const title = h("h3", {});
  const list = h("ol", { class: "live-bets" });
  const note = h("p", { class: "live-note" });
  const step = (by, label, sign) => h("button", { type: "button", class: "live-button", "aria-label": label,
    onclick: () => current && set({ at: Math.max(0, Math.min(current.result.steps.length - 1, current.at + by)) }) }, sign);
  const knobs = {
    t: knob("temperature", "Temperature", 0.1, 3, 0.1, (v) => v.toFixed(1)),
    k: knob("topK", "Top-k", 0, 12, 1, (v) => (v ? String(v) : "off")),
    p: knob("topP", "Top-p", 0.05, 1, 0.05, (v) => (v < 1 ? v.toFixed(2) : "off")),
  };
  const draws = h("div", { class: "live-knobs" }, Object.values(knobs).map((k) => k.element),
    h("button", { type: "button", class: "live-button live-again", onclick: () => set({ method: "sample", seed: 1 + Math.floor(Math.random() * 1e6) }) }, "Draw again"));
  const method = h("select", { class: "live-select", onchange: () => set({ method: method.value }) },
    h("option", { value: "greedy" }, "the best bet, each time"), h("option", { value: "beam" }, "beam search"),
    h("option", { value: "sample" }, "draw by lot"));
  const element = h("section", { class: "live-bet", "aria-label": "The bets at one position" },
    h("header", {}, step(-1, "The position before", "‹"), title, step(1, "The next position", "›")),
    list, note,
    h("label", { class: "live-method" }, "Choose by ", method), draws);
  let current = null;

  function knob(name, label, min, max, increment, text) {
    const input = h("input", { type: "range", min, max, step: increment, oninput: () => {
      output.textContent = text(Number(input.value));
      set({ [name]: Number(input.value), method: "sample" });
    } });
    const output = h("output", {});
    return { element: h("label", {}, h("span", {}, label), input, output), show(value) {
      if (document.activeElement !== input) input.value = value;
      output.textContent = text(value);
    } };
  }

  function draw(view) {
    const { state, result, before } = view;
    const at = Math.max(0, Math.min(state.at ?? 0, result.steps.length - 1));
    current = { result, at };
    const bets = result.steps[at];
    const text = result.target.pieces.slice(0, at).map((piece, i) => (piece.startsWith("▁") && i ? " " : "") + plain(piece)).join("");
    title.replaceChildren(text ? h("span", {}, "after ", h("q", { lang: lang.tgt }, text.length > 32 ? "…" + text.slice(-30) : text)) : "the first piece");
    if (!bets) { list.replaceChildren(); return; }
    // Bets can be compared while nothing before them has changed.
    const split = before && before !== result ? firstDifference(before, result) : -1;
    const comparable = before && before !== result && before.steps[at] && (split < 0 || at <= split);
    const old = new Map(comparable ? before.steps[at].top.map((bet) => [bet.id, bet.p]) : []);
    const shown = bets.top.slice(0, SHOWN);
    const chosen = bets.top.find((bet) => bet.id === bets.chosen);
    if (chosen && !shown.includes(chosen)) shown[SHOWN - 1] = chosen;
    const bar = new Map(adjusted(bets.top, state).map((bet) => [bet.id, bet]));
    const focused = [...list.querySelectorAll("button")].indexOf(document.activeElement);
    list.replaceChildren(...shown.map((bet) => {
      const p = bar.get(bet.id).p, was = old.get(bet.id), written = bet.id === bets.chosen, cut = bar.get(bet.id).cut;
      return h("li", { class: (written ? "live-written" : "") + (cut ? " live-cut" : "") },
        h("button", { type: "button", "aria-label": `${plain(bet.piece)}, ${percent(p)}${was !== undefined ? `, before ${percent(was)}` : ""}`
            + (written ? ", written" : ": write this instead"), onclick: () => written || force(at, bet) },
          h("span", { class: "live-piece", lang: lang.tgt }, (bet.piece.startsWith("▁") || bet.piece === "<eos>" ? "" : "·") + plain(bet.piece)),
          h("span", { class: "live-bar", "aria-hidden": "true" },
            was !== undefined ? h("i", { class: "live-ghost", style: `width:${100 * was}%` }) : null,
            h("b", { style: `width:${100 * p}%` })),
          h("span", { class: "live-p" }, percent(p), was !== undefined && Math.abs(was - p) >= 0.005 ? h("small", {}, ` was ${percent(was)}`) : null),
          h("span", { class: "live-mark", "aria-hidden": "true" }, written ? "✓" : cut ? "✕" : "")));
    }));
    if (focused >= 0) list.querySelectorAll("button")[focused]?.focus();
    const rest = 1 - bets.top.slice(0, SHOWN).reduce((sum, bet) => sum + bet.p, 0);
    const forced = at < state.prefix.length;
    note.textContent = forced ? "You forced this piece, or one after it. Undo: “Reset”."
      : comparable === false && before && before !== result && split >= 0 ? "What stands before has changed, so there is no bar to compare with."
      : `All other pieces of the vocabulary share ${percent(Math.max(0, rest))}. Choose one: it is written, and the rest anew.`;
    method.value = state.method;
    knobs.t.show(state.temperature);
    knobs.k.show(state.topK);
    knobs.p.show(state.topP);
    element.classList.toggle("live-drawing", state.method === "sample");
  }
  return { element, draw };
}

// The bars when pieces are drawn by lot: temperature first, then top-p, then top-k, as in
// decoding.sample. What is cut keeps a bar of nothing. Normalised over the pieces that are known.
export function adjusted(top, { method, temperature, topK, topP }) {
  if (method !== "sample") return top;
  const known = top.reduce((sum, bet) => sum + bet.p, 0);
  const powers = top.map((bet) => bet.p ** (1 / temperature));
  const total = powers.reduce((sum, p) => sum + p, 0) / (temperature === 1 ? known || 1 : 1);
  let before = 0;
  const kept = top.map((bet, i) => {
    const p = powers[i] / total, cut = (topK && i >= topK) || before >= topP;
    before += p;
    return { ...bet, p: cut ? 0 : p, cut };
  });
  const left = kept.reduce((sum, bet) => sum + bet.p, 0);
  const cutting = topK || topP < 1;
  return kept.map((bet) => ({ ...bet, p: cutting && left ? bet.p / left : bet.p }));
}
