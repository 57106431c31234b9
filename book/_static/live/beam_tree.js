// The beam as a tree, step by step: prefixes that are kept, those that lost (grey), the winner (bold).
import { h, svg, model, plain, listed, percent, calm, unescaped } from "./shared.js";

const COLUMN = 132, ROW = 30;

export function makeBeamTree({ ask, set, lang }) {
  const width = slider("Beam width", 1, 8, 1, "beamSize");
  const penalty = slider("Length penalty", 0, 2, 0.1, "penalty");
  const steps = h("input", { type: "range", min: 1, max: 1, value: 1, oninput: () => { stop(); paint(); } });
  const stepText = h("output", {});
  const play = h("button", { type: "button", class: "live-button", onclick: () => (timer ? stop() : start()) }, "▶ Play");
  const canvas = h("div", { class: "live-tree-scroll", tabindex: 0, role: "group", "aria-label": "The tree of prefixes; scroll it sideways" });
  const note = h("p", { class: "live-note" });
  const table = h("details", { class: "live-details" }, h("summary", {}, "As a table"));
  const element = h("div", { class: "live-tree" }, h("div", { class: "live-knobs live-open" }, width.element, penalty.element,
    h("label", {}, h("span", {}, "Steps shown"), steps, stepText), play), note, canvas, table);
  let result = null, timer = null, asked = "", penaltyNow = 1;

  function slider(label, min, max, step, name) {
    const output = h("output", {});
    const input = h("input", { type: "range", min, max, step, oninput: () => { output.textContent = input.value; set({ [name]: Number(input.value) }); } });
    return { element: h("label", {}, h("span", {}, label), input, output), show: (value) => { input.value = value; output.textContent = value; } };
  }
  function stop() { clearInterval(timer); timer = null; play.textContent = "▶ Play"; }
  function start() {
    if (Number(steps.value) >= Number(steps.max)) steps.value = 1;
    play.textContent = "❚❚ Pause";
    paint();
    timer = setInterval(() => {
      steps.value = Number(steps.value) + 1;
      paint();
      if (Number(steps.value) >= Number(steps.max)) stop();
    }, 900);
  }

  async function draw({ state, text, switches }) {
    width.show(state.beamSize);
    penalty.show(state.penalty ?? model.info?.lengthPenalty ?? 1);
    penaltyNow = state.penalty ?? model.info?.lengthPenalty ?? 1;
    const question = JSON.stringify([model.src, text, state.beamSize, state.penalty, switches]);
    if (asked === question) return;
    asked = question;
    note.textContent = "Searching …";
    const answer = await ask("translate", text, { method: "beam", beamSize: state.beamSize, lengthPenalty: state.penalty ?? undefined,
      switches, tree: true, attention: false, keep: 1 });
    if (asked !== question) return;
    result = answer;
    // A parent is named by its number; in the drawing it is a row of the step before.
    result.tree = answer.tree.map((level, step) => ({ ...level, hypotheses: level.hypotheses.map((one) => ({ ...one,
      parent: step ? answer.tree[step - 1].hypotheses.findIndex((other) => other.id === one.parent) : 0 })) }));
    const last = Math.max(...result.tree.map((level) => level.step)) + 1;
    steps.max = last;
    stop();
    steps.value = last;
    paint();
  }

  function paint() {
    if (!result) return;
    const shown = Number(steps.value), levels = result.tree.slice(0, shown);
    stepText.textContent = `${shown} of ${steps.max}`;
    // The winner, from its end to its beginning.
    const winner = new Set();
    if (shown === Number(steps.max)) {
      let best = null;
      for (const level of result.tree) for (const [i, one] of level.hypotheses.entries()) {
        if (one.finished && (!best || one.score > best.score)) best = { score: one.score, step: level.step, i };
      }
      for (let at = best; at && at.step >= 0; at = { step: at.step - 1, i: result.tree[at.step].hypotheses[at.i].parent }) winner.add(`${at.step}.${at.i}`);
    }
    const rows = Math.max(...result.tree.map((level) => level.hypotheses.length));
    const place = (step, i) => (step < 0 ? { x: 4, y: 20 + ROW * ((result.tree[0].hypotheses.length - 1) / 2) } : { x: 4 + COLUMN * (step + 1), y: 20 + ROW * i });
    const drawn = [], labels = [svg("text", { x: 4, y: place(-1).y + 4, class: "live-tree-root" }, "<bos>")];
    for (const level of levels) level.hypotheses.forEach((one, i) => {
      const a = place(level.step - 1, one.parent), b = place(level.step, i), key = `${level.step}.${i}`;
      const fate = winner.has(key) ? "winner" : one.finished ? "finished" : one.kept ? "kept" : "lost";
      const x0 = a.x + (level.step ? COLUMN - 34 : 44);
      drawn.push(svg("path", { d: `M${x0} ${a.y}C${x0 + 18} ${a.y} ${b.x - 22} ${b.y} ${b.x - 4} ${b.y}`, class: `live-branch live-${fate}`,
        "stroke-width": (1 + 5 * Math.exp(one.logp)).toFixed(1) }));
      labels.push(svg("g", { class: `live-leaf live-${fate}` },
        svg("title", {}, `${plain(one.piece)}: ${percent(Math.exp(one.logp))}, so far ${one.total.toFixed(2)}${one.finished ? `, score ${one.score.toFixed(3)}` : ""}`),
        svg("text", { x: b.x, y: b.y + 4, lang: lang.tgt }, (fate === "winner" ? "★ " : one.finished ? "■ " : "") + clip(listed(one.piece))),
        svg("text", { x: b.x + COLUMN - 38, y: b.y + 4, class: "live-tree-number" }, one.finished ? `${one.total.toFixed(1)} → ${one.score.toFixed(2)}` : one.total.toFixed(1))));
    });
    const w = COLUMN * (levels.length + 1) + 8, height = 34 + ROW * rows;
    canvas.replaceChildren(svg("svg", { width: w, height, viewBox: `0 0 ${w} ${height}`, role: "img", "aria-label": note.textContent }, drawn, labels));
    // Whole, it shows where it begins; step by step, what has just come.
    canvas.scrollTo({ left: shown === Number(steps.max) ? 0 : w, behavior: calm() ? "auto" : "smooth" });
    const level = levels.at(-1), alive = level.hypotheses.filter((one) => one.kept && !one.finished);
    note.textContent = shown < Number(steps.max)
      ? `Step ${shown}: ${alive.length} of ${level.hypotheses.length} candidates kept. A number is the sum of log-probabilities so far.`
      : `The winner (★): “${unescaped(result.text)}” A number is the sum of log-probabilities so far. ■ marks the others that ended; after each end comes the score that decides, the sum divided by the length to the power ${penaltyNow}. Those in grey lost.`;
    canvas.firstChild.setAttribute("aria-label", note.textContent);
    table.replaceChildren(table.querySelector("summary"), h("table", {}, h("thead", {}, h("tr", {}, ["step", "piece", "sum", "fate"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, levels.flatMap((one) => one.hypotheses.map((leaf, i) => h("tr", {}, h("td", {}, String(one.step + 1)), h("td", { lang: lang.tgt }, plain(leaf.piece)),
        h("td", {}, leaf.total.toFixed(2)), h("td", {}, winner.has(`${one.step}.${i}`) ? "winner" : leaf.finished ? "ended" : leaf.kept ? "kept" : "lost")))))));
  }
  const clip = (text) => (text.length > 8 ? text.slice(0, 7) + "…" : text);
  return { element, draw };
}
