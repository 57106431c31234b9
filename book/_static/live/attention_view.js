// Attention that a cell of the notebook has computed: keys above, queries below, lines between them,
// and every layer and head as a small picture. In a notebook BertViz shows the same numbers.
// The numbers are in the page as JSON, as transformer_lib/visualize/bertviz_views.py writes them:
// {view, layer, head, parts: [{name, weights[layer][head][query][key], queries, keys}], vectors, causal}
import { h, svg, percent, plain, roving } from "./shared.js";
import { makeArcs } from "./arcs.js";
import { picture } from "./heads.js";

const NAMES = {
  weights: "Attention", encoder: "Encoder: source looks at source",
  decoder: "Decoder: target looks at target", cross: "Cross: target looks at source",
};
const THUMBNAIL = 56;  // pixels
const digits = (x) => x.toFixed(2).replace("-0.00", "0.00").replace("-", "−");

// Where a row of tokens marks its words, a token without a mark continues one. Else each is a word.
const spelled = (tokens) => (tokens.some((token) => token.startsWith("▁")) ? tokens
  : tokens.map((token) => (token === "<eos>" ? token : `▁${token}`)));

export async function mount(root) {
  const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const state = { part: 0, layer: data.layer ?? 0, head: data.head ?? null, query: null };
  // A head when there is a choice of heads that the cell has not made: the mean hides what differs.
  if (state.head === null && data.view !== "head") state.head = 0;
  let peek = null;  // {layer, head} under the pointer

  const part = () => data.parts[state.part];
  const shown = () => peek ?? state;
  function weights({ layer, head } = shown()) {   // (Tq, Tk), of one head or of the layer's mean
    const heads = part().weights[layer];
    if (head !== null) return heads[head];
    return heads[0].map((row, q) => row.map((_, k) => heads.reduce((sum, one) => sum + one[q][k], 0) / heads.length));
  }

  const arcs = makeArcs({
    onword: (i) => { state.query = state.query === i ? null : i; draw(); },
    lang: { src: null, tgt: null },
    labels: { source: "Keys: the tokens that are looked at", target: "Queries: the tokens that look. Choose one to keep its lines" },
  });
  const menu = data.parts.length > 1 && h("label", { class: "live-menu" }, h("span", {}, "Attention"), h("select", {
    class: "live-select", onchange: (event) => { Object.assign(state, { part: +event.target.value, query: null }); build(); draw(); },
  }, data.parts.map(({ name }, i) => h("option", { value: i }, NAMES[name] ?? name))));
  const grid = h("div", { class: "live-grid live-attention-grid", role: "group" });
  const says = h("p", { class: "live-says", role: "status", "aria-live": "polite" });
  const made = data.vectors && h("div", { class: "live-made live-scroll" });
  const table = h("div", { class: "live-scroll" });
  const numbers = h("details", {}, h("summary", {}, "The weights as a table"), table);
  numbers.addEventListener("toggle", () => tabulate());
  const side = (name) => h("small", { class: "live-attention-side" }, name);
  const box = h("div", { class: `live-box live-attention live-attention-${data.view}` },
    menu ? h("div", { class: "live-bar-row" }, menu) : null,
    h("div", { class: "live-attention-parts" }, grid,
      h("div", {}, side("keys"), arcs.element, side("queries"))),
    says, made || null, numbers);
  const still = root.querySelector(".live-still");
  if (still) still.replaceWith(box); else root.prepend(box);

  const cells = [];
  function build() {
    const layers = part().weights, heads = layers[0].length;
    cells.length = 0;
    state.layer = Math.min(state.layer, layers.length - 1);
    grid.hidden = layers.length * heads === 1;
    grid.style.setProperty("--heads", heads);
    grid.setAttribute("aria-label", "Heads: a row is a layer. Arrows move, Enter chooses");
    grid.replaceChildren(...layers.flatMap((layer, l) => [
      heads > 1 ? cell(l, null, h("span", {}, `${l} mean`)) : h("span", { class: "live-row" }, String(l)),
      ...layer.map((_, n) => cell(l, n, h("canvas", { width: 2 * THUMBNAIL, height: 2 * THUMBNAIL, "aria-hidden": "true" }))),
    ]));
  }

  function cell(layer, head, inside) {
    const choose = { layer, head };
    const button = h("button", {
      type: "button", class: head === null ? "live-row live-mean" : "live-head", title: name(choose),
      onclick: () => { Object.assign(state, choose); peek = null; draw(); },
      onpointerenter: (event) => { if (event.pointerType !== "touch") { peek = choose; draw(); } },
      onpointerleave: () => { if (peek) { peek = null; draw(); } },
    }, inside);
    cells.push({ ...choose, button });
    return button;
  }
  roving(grid, "button", part().weights[0].length > 1 ? part().weights[0].length + 1 : 1);

  const several = () => part().weights.length * part().weights[0].length > 1;
  const name = ({ layer, head }) => (head === null ? `layer ${layer}, mean of its heads` : `layer ${layer}, head ${head}`);
  const strongest = (row) => row.reduce((best, w, k) => (w > row[best] ? k : best), 0);

  function draw() {
    const { queries, keys } = part(), now = weights();
    const result = { source: { pieces: spelled(keys) }, target: { pieces: spelled(queries) } };
    arcs.draw({ result, kind: "cross", weights: Float32Array.from(now.flat()), at: state.query });
    const ink = getComputedStyle(box).getPropertyValue("--live-ink").trim();
    for (const { layer, head, button } of cells) {
      const on = layer === state.layer && head === state.head, own = weights({ layer, head });
      button.setAttribute("aria-pressed", String(on));
      button.tabIndex = on ? 0 : -1;
      const q = strongest(own.map((row) => Math.max(...row))), k = strongest(own[q]);
      button.setAttribute("aria-label", `${name({ layer, head })}: ${plain(queries[q])} looks at ${plain(keys[k])} with ${percent(own[q][k])}`);
      if (head !== null) picture(button.firstChild, own.flat(), queries.length, keys.length, ink);
    }
    const q = state.query ?? strongest(now.map((row) => Math.max(...row))), k = strongest(now[q]);
    const where = several() ? `${name(shown())}: ` : "";
    const text = `${where}“${plain(queries[q])}” looks at “${plain(keys[k])}” with ${percent(now[q][k])}${state.query === null ? ", the largest weight" : ""}.`;
    says.textContent = text[0].toUpperCase() + text.slice(1);
    if (made) explain(q);
    tabulate();
  }

  // How the weights of one query are made: its products with each key, their scaled sum, the softmax.
  function explain(q) {
    const { layer, head } = state, { queries, keys } = part();
    const query = data.vectors.queries[layer][head][q], all = data.vectors.keys[layer][head];
    const products = all.map((key) => key.map((x, i) => x * query[i]));
    const largest = Math.max(...products.flat().map(Math.abs), 1e-9);
    const row = weights(state)[q];
    made.replaceChildren(h("table", { class: "live-made-table" },
      h("caption", {}, `The query “${plain(queries[q])}”${several() ? ` in ${name(state)}` : ""}: its numbers times those of each key, one by one (blue up: positive, orange down: negative), their sum over √${query.length}, and the weight`),
      h("thead", {}, h("tr", {}, ["key", "query × key", `sum ⁄ √${query.length}`, "weight"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, keys.map((key, k) => (data.causal && k > q ? null : h("tr", {},
        h("th", { scope: "row" }, plain(key)),
        h("td", {}, strip(products[k], largest)),
        h("td", {}, digits(products[k].reduce((sum, x) => sum + x, 0) / Math.sqrt(query.length))),
        h("td", { style: `--p:${row[k]}` }, percent(row[k]))))).filter(Boolean))));
  }

  // The table is long: it is written when it is open.
  function tabulate() {
    if (!numbers.open) return;
    const { queries, keys } = part(), now = weights(state);
    table.replaceChildren(h("table", { class: "live-numbers" },
      h("caption", {}, `${several() ? name(state) : "weights"}: a row for each query, a column for each key`),
      h("thead", {}, h("tr", {}, h("td", {}), keys.map((key) => h("th", { scope: "col" }, plain(key))))),
      h("tbody", {}, now.map((row, q) => h("tr", {}, h("th", { scope: "row" }, plain(queries[q])),
        row.map((w) => h("td", { style: `--p:${w}`, "data-weight": w }, digits(w))))))));
  }

  build();
  draw();
  new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}

// Numbers as bars up (positive) and down (negative) from a line.
function strip(numbers, largest) {
  const wide = Math.max(3, Math.min(34, 200 / numbers.length)), high = 32;
  const drawing = svg("svg", { class: "live-made-strip", width: wide * numbers.length, height: high, role: "img", "aria-label": numbers.map(digits).join(", ") });
  numbers.forEach((x, i) => {
    const size = Math.max(0.5, (Math.abs(x) / largest) * (high / 2 - 1));
    drawing.append(svg("rect", { x: i * wide, width: wide - 1, y: x > 0 ? high / 2 - size : high / 2, height: size, class: x > 0 ? "live-fill-query" : "live-fill-loss" }));
  });
  return drawing;
}
