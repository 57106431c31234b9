// A game: switch off as few heads as you can until less than half of the sentence is left.
import { h, KINDS } from "./shared.js";

const STORE = "attention-step-by-step.ruin";
const HALF = 0.5;

// How much of the untouched sentence is left, as a share of its pieces (<eos> apart).
export function left(before, now) {
  const pieces = before.target.pieces.filter((piece) => piece !== "<eos>");
  const kept = now.target.pieces.filter((piece) => piece !== "<eos>");
  return pieces.length ? longestCommon(pieces, kept) / pieces.length : 0;
}

function longestCommon(a, b) {
  const row = new Uint16Array(b.length + 1);
  for (const one of a) for (let j = 0, corner = 0; j < b.length; j++) {
    const above = row[j + 1];
    row[j + 1] = one === b[j] ? corner + 1 : Math.max(above, row[j]);
    corner = above;
  }
  return row[b.length];
}

export function makeRuin({ set, ask, lang }) {
  const score = h("p", { class: "live-ruin-score" }), note = h("p", { class: "live-note" });
  const hint = h("button", { type: "button", class: "live-button", onclick: suggest }, "Give me a hint");
  const fresh = h("button", { type: "button", class: "live-button", onclick: () => set({ heads: new Set(), blocks: new Set(), positions: false, causal: false, prefix: [] }) }, "All on again");
  const element = h("div", { class: "live-ruin" }, h("p", {}, "Switch off as few heads as you can until less than half of the sentence’s pieces are left. Click a head, then “Switch off”, or press ", h("kbd", {}, "x"), " on it."), score, note, h("div", { class: "live-bar-row" }, hint, fresh));
  let view = null;
  const records = () => { try { return JSON.parse(localStorage.getItem(STORE)) ?? {}; } catch { return {}; } };

  function off(state, result) {
    return KINDS.flatMap((kind) => result.attention[kind].flatMap((layer, l) => layer.map((_, n) => [kind, l, n])))
      .filter(([kind, l, n]) => state.heads.has(`${kind}.${l}.${n}`) || state.blocks.has(kind) || state.blocks.has(`${kind}.${l}`)).length;
  }
  function draw(next) {
    view = next;
    const { state, result, before, text } = view, heads = off(state, result), share = left(before, result);
    const ruined = heads > 0 && share < HALF && !state.positions && !state.causal && !state.prefix.length;
    const key = `${lang.src}:${text}`, all = records();
    if (ruined && !(all[key] <= heads)) {
      all[key] = heads;
      try { localStorage.setItem(STORE, JSON.stringify(all)); } catch { /* private window */ }
    }
    score.textContent = `${heads} ${heads === 1 ? "head" : "heads"} off, ${Math.round(100 * share)} % of the sentence left. ${ruined ? "Ruined!" : heads ? "It still stands." : ""}`;
    note.textContent = all[key] ? `Your best for this sentence: ${all[key]} ${all[key] === 1 ? "head" : "heads"}.` : "Nobody has ruined this sentence in this browser yet.";
  }
  // The head whose loss moves the sentence most, given those that are off already.
  async function suggest() {
    hint.disabled = true;
    try {
      const { text, state, before } = view;
      const found = await ask("headScan", text, { targetIds: before.target.ids, switches: { heads: [...state.heads], blocks: [...state.blocks] }, slot: "ruin" });
      const all = KINDS.flatMap((kind) => found[kind].flatMap((layer, l) => layer.map((one, n) => ({ ...one, name: `${kind}.${l}.${n}` })))).filter(({ name }) => !state.heads.has(name));
      const chance = (one) => one.p.reduce((sum, p) => sum + Math.log(Math.max(p, 1e-9)), 0);
      const best = all.reduce((a, b) => (chance(b) < chance(a) ? b : a));
      set({ heads: new Set([...state.heads, best.name]), pin: best.name });
    } catch (error) { if (error.name !== "Superseded") note.textContent = error.message; }
    hint.disabled = false;
  }
  return { element, draw };
}
