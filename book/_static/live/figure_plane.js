// One query among keys, in the plane: drag it, and the weights and the weighted value follow.
// A query, a key and a value have two numbers each, so an arrow shows all of them.
// data-tokens, data-queries, data-keys, data-values: lists as JSON, from the cell of the notebook.
import { h, svg, percent } from "./shared.js";

const SIZE = 340, MIDDLE = SIZE / 2;  // pixels of the drawing
const digits = (x) => x.toFixed(2).replace("-0.00", "0.00").replace("-", "−");
const EXAMPLE = {  // where a page gives no numbers
  tokens: ["one", "two", "three"], queries: [[1, 0.5], [0, 1], [-1, -1]],
  keys: [[1, 0], [0, 1], [-1, -1]], values: [[1, 1], [0, 1], [-1, 0]],
};

export async function mount(root) {
  const given = (name) => (root.dataset[name] ? JSON.parse(root.dataset[name]) : EXAMPLE[name]);
  const [tokens, queries, keys, values] = ["tokens", "queries", "keys", "values"].map(given);
  const reach = 1.12 * Math.max(1, ...[...queries, ...keys].flat().map(Math.abs));
  let query = [...queries[0]], name = tokens[0];
  const x = (number) => MIDDLE + (number / reach) * MIDDLE, y = (number) => MIDDLE - (number / reach) * MIDDLE;

  const arrow = (kind, [a, b], text) => {
    const length = Math.hypot(x(a) - MIDDLE, y(b) - MIDDLE) || 1;
    const out = [(x(a) - MIDDLE) / length, (y(b) - MIDDLE) / length];
    return svg("g", { class: `live-plane-${kind}` },
      svg("line", { x1: MIDDLE, y1: MIDDLE, x2: x(a), y2: y(b) }), svg("circle", { cx: x(a), cy: y(b), r: kind === "query" ? 11 : 5 }),
      svg("text", { x: x(a) + 14 * out[0], y: y(b) + 16 * out[1] + 4, "text-anchor": Math.abs(out[0]) < 0.35 ? "middle" : out[0] > 0 ? "start" : "end" }, text));
  };
  const plane = svg("svg", { viewBox: `-46 -8 ${SIZE + 92} ${SIZE + 16}`, class: "live-plane", role: "application", tabindex: 0,
    "aria-label": "The plane of queries and keys. Drag the query, or move it with the arrow keys" });
  const bars = h("ul", { class: "live-shares live-plane-shares" });
  const says = h("p", { class: "live-says", role: "status", "aria-live": "polite" });
  const buttons = tokens.map((token, i) => h("button", { type: "button", class: "live-button", lang: token.startsWith("<") ? null : "de",
    onclick: () => { query = [...queries[i]]; name = token; draw(); } }, token));

  function draw() {
    const scores = keys.map((key) => (key[0] * query[0] + key[1] * query[1]) / Math.sqrt(2));
    const largest = Math.max(...scores), raw = scores.map((s) => Math.exp(s - largest)), total = raw.reduce((a, b) => a + b);
    const weights = raw.map((w) => w / total), best = weights.indexOf(Math.max(...weights));
    const value = [0, 1].map((i) => weights.reduce((sum, w, k) => sum + w * values[k][i], 0));
    // Each key's foot on the query's line: its distance from the middle, times the query's length, is q · k.
    const length = Math.hypot(...query), along = length > 0.05 ? query.map((one) => one / length) : null;
    const feet = along ? keys.map((key) => key[0] * along[0] + key[1] * along[1]).map((far) => [far * along[0], far * along[1]]) : [];
    const line = along ? [-1.5, 1.5].map((end) => [end * reach * along[0], end * reach * along[1]]) : null;
    plane.replaceChildren(
      svg("path", { class: "live-plane-axes", d: `M0 ${MIDDLE}H${SIZE}M${MIDDLE} 0V${SIZE}` }),
      line ? svg("path", { class: "live-plane-line", d: `M${x(line[0][0])} ${y(line[0][1])}L${x(line[1][0])} ${y(line[1][1])}` }) : "",
      ...feet.map((foot, k) => svg("g", { class: "live-plane-foot" },
        svg("path", { d: `M${x(keys[k][0])} ${y(keys[k][1])}L${x(foot[0])} ${y(foot[1])}` }), svg("circle", { cx: x(foot[0]), cy: y(foot[1]), r: 4.5 }))),
      ...keys.map((key, k) => {
        const drawn = arrow("key", key, tokens[k]);
        drawn.style.setProperty("--p", weights[k]);
        return drawn;
      }),
      arrow("query", query, name === null ? "your query" : `query of ${name}`));
    bars.replaceChildren(...tokens.map((token, k) => h("li", { class: k === best ? "live-this" : "" }, h("span", {}, token),
      h("span", { class: "live-bar" }, h("b", { style: `width:${(100 * weights[k]).toFixed(1)}%` })), h("span", { class: "live-p", "data-weight": weights[k] }, percent(weights[k])))),
      h("li", {}, h("span", {}, "value"), h("span", {}, `(${value.map(digits).join(", ")})`)));
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(tokens[i] === name)));
    const level = weights[best] - Math.min(...weights) < 0.15;
    says.textContent = `The query (${query.map(digits).join(", ")}) takes ${percent(weights[best])} from ${tokens[best]}, `
      + (level ? "hardly more than from the others." : "whose foot on the query’s line lies furthest out in the query’s direction.");
  }

  function move(a, b) {
    const inside = (number) => Math.max(-reach, Math.min(reach, number));
    [query, name] = [[inside(a), inside(b)], null];
    draw();
  }
  const drag = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(plane.getScreenCTM().inverse());
    move((at.x - MIDDLE) / MIDDLE * reach, (MIDDLE - at.y) / MIDDLE * reach);
  };
  plane.addEventListener("pointerdown", (event) => { plane.setPointerCapture(event.pointerId); drag(event); });
  plane.addEventListener("pointermove", (event) => { if (plane.hasPointerCapture(event.pointerId)) drag(event); });
  plane.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    move(query[0] + step[0] * reach / 20, query[1] + step[1] * reach / 20);
  });

  const box = h("div", { class: "live-box live" }, h("div", { class: "live-bar-row" }, h("span", {}, "The query of"), buttons),
    h("div", { class: "live-plane-parts" }, h("div", {}, plane, h("p", { class: "live-note" }, "Drag the blue point. A dotted line drops each key onto the query’s line: how far out its foot lies, times the query’s length, is q · k.")), bars), says);
  const still = root.querySelector(".live-still");
  if (still) still.replaceWith(box); else root.prepend(box);
  draw();
}
