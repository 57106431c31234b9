// What the model would write next: the best pieces as bars, with the bars from before a change
// behind them. Choosing another piece forces it, and the rest is written anew; `undo` names the
// button that takes that back.
import { h, percent, plain, listed, firstDifference } from "./shared.js";

const SHOWN = 7;

export function makeBets({ set, force, lang, undo }) {
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
    h("option", { value: "greedy" }, "the likeliest each time"), h("option", { value: "beam" }, "beam search"),
    h("option", { value: "sample" }, "drawing at random"));
  const element = h("section", { class: "live-bet", "aria-label": "The likeliest pieces at one position" },
    h("header", {}, step(-1, "The previous position", "‹"), title, step(1, "The next position", "›")),
    list, note,
    h("label", { class: "live-method" }, "Method ", method), draws);
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
    // When pieces are drawn at random, q is the chance after temperature, top-k and top-p.
    const drawn = state.method === "sample" && bets.top[0].q !== undefined;
    const old = new Map(comparable ? before.steps[at].top.map((bet) => [bet.id, drawn ? bet.q : bet.p]) : []);
    const shown = bets.top.slice(0, SHOWN);
    const chosen = bets.top.find((bet) => bet.id === bets.chosen);
    if (chosen && !shown.includes(chosen)) shown[SHOWN - 1] = chosen;
    const focused = [...list.querySelectorAll("button")].indexOf(document.activeElement);
    list.replaceChildren(...shown.map((bet) => {
      const p = drawn ? bet.q : bet.p, was = old.get(bet.id), written = bet.id === bets.chosen, cut = drawn && !bet.q;
      return h("li", { class: (written ? "live-written" : "") + (cut ? " live-cut" : "") },
        h("button", { type: "button", title: written ? "written" : "write this instead", onclick: () => written || force(at, bet) },
          h("span", { class: "live-piece", lang: lang.tgt }, listed(bet.piece)),
          h("span", { class: "live-bar", "aria-hidden": "true" },
            was !== undefined ? h("i", { class: "live-ghost", style: `width:${100 * was}%` }) : null,
            h("b", { style: `width:${100 * p}%` })),
          h("span", { class: "live-p" }, percent(p), was !== undefined && Math.abs(was - p) >= 0.005 ? h("small", {}, ` was ${percent(was)}`) : null),
          h("span", { class: "live-mark", "aria-hidden": "true" }, written ? "✓" : cut ? "✕" : ""), h("span", { class: "live-hidden" }, written ? " written" : cut ? " cut off" : "")));
    }));
    if (focused >= 0) list.querySelectorAll("button")[focused]?.focus();
    const rest = 1 - shown.reduce((sum, bet) => sum + (drawn ? bet.q : bet.p), 0);
    const forced = at < state.prefix.length;
    note.textContent = forced ? `You forced this piece, or one after it. “${undo}” takes that back.`
      : comparable === false && before && before !== result && split >= 0 ? "The pieces before it have changed, so there’s no bar to compare with."
      : `All other pieces of the vocabulary share ${percent(Math.max(0, rest))}. Choose a piece: it’s written here, and the model writes the rest again.`;
    method.value = state.method;
    knobs.t.show(state.temperature);
    knobs.k.show(state.topK);
    knobs.p.show(state.topP);
    element.classList.toggle("live-drawing", state.method === "sample");
  }
  return { element, draw };
}
