// One head, one pair of words: q and k, their product, the root, the softmax, the weighted values.
// The steps of scaled dot-product attention, with the numbers of the real model.
import { h, svg, plain, percent, sides, KIND_NAMES, headName } from "./shared.js";

const STRIP = 560, CELL = 26;

export function makeInsideHead({ ask, lang }) {
  const queryMenu = h("select", { class: "live-select", onchange: () => { choice.query = Number(queryMenu.value); choice.key = null; redraw(); } });
  const keyMenu = h("select", { class: "live-select", onchange: () => { choice.key = Number(keyMenu.value); redraw(); } });
  const heading = h("p", { class: "live-note" });
  const body = h("div", { class: "live-inside-body" });
  const element = h("div", { class: "live-inside" }, heading, h("div", { class: "live-knobs live-open" },
    h("label", {}, h("span", { class: "live-role-query" }, "asks (query) "), queryMenu), h("label", {}, h("span", { class: "live-role-key" }, "is asked (key) "), keyMenu)), body);
  const choice = { query: null, key: null };
  let view = null, asked = 0;

  async function draw(next) { view = next; if (choice.at !== view.at || choice.head !== head()) Object.assign(choice, { at: view.at, head: head(), query: null, key: null }); await redraw(); }
  const head = () => view.state.pin ?? `cross.${Math.min(1, view.result.attention.cross.length - 1)}.0`;

  async function redraw() {
    const name = head(), kind = name.split(".")[0], { result, text } = view;
    const { queries, keys } = sides(result, kind);
    const query = Math.min(choice.query ?? (kind === "encoder" ? view.state.from ?? 0 : view.at), queries.length - 1);
    const [, layer, number] = name.split(".").map(Number);
    const weights = result.attention[kind][layer][number].slice(query * keys.length, (query + 1) * keys.length);
    const key = Math.min(choice.key ?? weights.indexOf(Math.max(...weights)), keys.length - 1);
    const options = (pieces, at, language) => pieces.map((piece, i) => h("option", { value: i, selected: i === at, lang: language }, `${i}  ${plain(piece)}`));
    queryMenu.replaceChildren(...options(queries, query, kind === "encoder" ? lang.src : lang.tgt));
    keyMenu.replaceChildren(...options(keys, key, kind === "decoder" ? lang.tgt : lang.src));
    heading.textContent = `Head ${headName(name)} of “${KIND_NAMES[kind]}”${view.state.pin ? "" : " (pin another in the grids)"}. How much does “${plain(queries[query])}” look at “${plain(keys[key])}”?`;
    const turn = ++asked;
    const asking = { targetIds: result.target.ids, switches: view.switches };
    const inside = await ask("insideHead", text, { ...asking, head: name, query, key });
    const all = `${kind === "encoder" ? "encoder" : "decoder"}.${layer}.${kind === "cross" ? "cross" : "attention"}.v`;
    const { shape: [, rows, width], data } = (await ask("tensors", text, { ...asking, names: [all] }))[all];  // (H, S, K)
    if (turn !== asked) return;
    const values = Array.from({ length: rows }, (_, i) => [...data.slice((number * rows + i) * width, (number * rows + i + 1) * width)]);
    const largest = Math.max(...[...inside.q, ...inside.k].map(Math.abs));
    const product = Math.max(...inside.products.map(Math.abs)), value = Math.max(...values.map((row) => Math.max(...row.map(Math.abs))), ...inside.output.map(Math.abs));
    const dk = inside.q.length, sum = inside.score;
    body.replaceChildren(
      line("q", `the query of “${plain(queries[query])}”, ${dk} numbers`, strip(inside.q, largest, "query")),
      line("k", `the key of “${plain(keys[key])}”`, strip(inside.k, largest, "key")),
      line("q × k", "number by number: above the line they agree, below they do not", strip(inside.products, product, "score", true)),
      line("sum", null, h("p", {}, `q · k = `, h("b", {}, sum.toFixed(2)), `,  divided by √${dk} = ${Math.sqrt(dk).toFixed(2)}:  `, h("b", {}, inside.scaled.toFixed(2)))),
      line("softmax", "over all keys: the scores become shares of 100 %", bars(keys, inside.weights, key, kind === "decoder" ? lang.tgt : lang.src)),
      line("v", "each key's value: the smaller its share, the fainter", h("div", { class: "live-values" },
        [...inside.weights].map((w, i) => w >= 0.03 ? h("div", { style: `--faint:${Math.max(0.25, Math.sqrt(w)).toFixed(2)}` }, h("small", {}, `${percent(w)} of ${plain(keys[i])}`), strip(values[i], value, "value")) : null))),
      line("output", "their weighted sum, which this head passes on", strip(inside.output, value, "value")));
  }

  const line = (name, what, content) => h("div", { class: "live-line" }, h("div", {}, h("strong", {}, name), what ? h("small", {}, what) : null), content);
  function strip(numbers, largest, role, signed = false) {
    const w = STRIP / numbers.length, list = [...numbers];
    const shapes = list.map((number, i) => {
      const size = Math.abs(number) / (largest || 1);
      return signed
        ? svg("rect", { x: (i * w + 0.5).toFixed(1), width: (w - 1).toFixed(1), y: (number > 0 ? CELL / 2 * (1 - size) : CELL / 2).toFixed(1), height: Math.max(0.5, size * CELL / 2).toFixed(1), class: number > 0 ? "live-fill-value" : "live-fill-loss" }, svg("title", {}, number.toFixed(3)))
        : svg("rect", { x: (i * w + 0.5).toFixed(1), width: (w - 1).toFixed(1), y: number > 0 ? 0 : CELL / 2, height: CELL / 2, class: `live-fill-${role}`, "fill-opacity": (0.06 + 0.94 * size).toFixed(2) }, svg("title", {}, number.toFixed(3)));
    });
    return svg("svg", { viewBox: `0 0 ${STRIP} ${CELL}`, class: "live-strip", role: "img", "aria-label": `numbers from ${Math.min(...list).toFixed(2)} to ${Math.max(...list).toFixed(2)}` },
      svg("line", { x1: 0, x2: STRIP, y1: CELL / 2, y2: CELL / 2, stroke: "currentColor", "stroke-opacity": 0.35 }), shapes);
  }
  const bars = (keys, weights, at, language) => h("ol", { class: "live-shares" }, keys.map((piece, i) => h("li", { class: i === at ? "live-this" : "" },
    h("span", { lang: language }, plain(piece)), h("span", { class: "live-bar", "aria-hidden": "true" }, h("b", { style: `width:${100 * weights[i]}%` })), h("span", { class: "live-p" }, percent(weights[i])))));
  return { element, draw };
}

// What the decoder would write if it stopped after each layer.
export function makeDepth({ ask, lang, set }) {
  const table = h("div", { class: "live-scroll", tabindex: 0, role: "group", "aria-label": "The guess after each layer" });
  const note = h("p", { class: "live-note" }, "What the model would write if it stopped after each layer: the last norm and the output map are applied there. Read each column downwards. The first layers often repeat the word just read; the word that it writes in the end is bold.");
  const element = h("div", {}, note, table);
  let turn = 0;
  async function draw({ text, result, switches, at }) {
    const mine = ++turn;
    const layers = await ask("depth", text, { targetIds: result.target.ids, switches });
    if (mine !== turn) return;
    const final = result.target.pieces;
    table.replaceChildren(h("table", { class: "live-depth" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "after"), final.map((piece, i) => h("th", { scope: "col", lang: lang.tgt },
      h("button", { type: "button", class: "live-link", "aria-pressed": String(i === at), onclick: () => set({ at: i }) }, plain(piece)))))),
    h("tbody", {}, layers.map((layer, l) => h("tr", {}, h("th", { scope: "row" }, `layer ${l}`),
      layer.top.map((best, i) => h("td", { lang: lang.tgt, class: best[0].piece === final[i] ? "live-settled" : "", style: `--p:${best[0].p.toFixed(3)}` },
        plain(best[0].piece), h("small", {}, percent(best[0].p)))))))));
  }
  return { element, draw };
}

// The picture of one head, or of the chosen layer's mean, as numbers.
export function makeTable({ lang }) {
  const element = h("div", { class: "live-scroll", tabindex: 0, role: "group", "aria-label": "Attention in numbers" });
  function draw({ result, kind, weights, name }) {
    const { queries, keys } = sides(result, kind);
    element.replaceChildren(h("table", { class: "live-numbers" }, h("caption", {}, `${name}: each row spreads 100 % over the columns`),
      h("thead", {}, h("tr", {}, h("td", {}), keys.map((piece) => h("th", { scope: "col", lang: kind === "decoder" ? lang.tgt : lang.src }, plain(piece))))),
      h("tbody", {}, queries.map((piece, q) => h("tr", {}, h("th", { scope: "row", lang: kind === "encoder" ? lang.src : lang.tgt }, plain(piece)),
        keys.map((_, k) => { const w = weights[q * keys.length + k]; return h("td", { style: `--p:${w.toFixed(3)}` }, w < 0.005 ? "" : Math.round(100 * w)); }))))));
  }
  return { element, draw };
}
