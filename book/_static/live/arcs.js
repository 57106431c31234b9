// Two rows of words and the lines of attention between them, in the manner of the cover.
// Wide: German above, English below. Narrow: two columns. Words are buttons, lines are drawn behind.
import { h, svg, model, plain, languageName, startsWord, percent, roving, sides, newPlaces } from "./shared.js";

const FAINTEST = 0.05;  // weights below this are not drawn, as on the cover
let count = 0;

// onword(position), onsource(position): a word was chosen; onpeek({row} | null): pointed at.
export function makeArcs({ onword, onsource = null, lang = { src: "de", tgt: "en" }, columns = null, labels = {} }) {
  const lines = svg("svg", { class: "live-lines", "aria-hidden": "true" });
  const source = h("div", { class: "live-words live-source", role: "group", "aria-label": labels.source ?? "" });
  const target = h("div", { class: "live-words live-target", role: "group", "aria-label": labels.target ?? "" });
  const element = h("div", { class: "live-arcs" }, lines, source, target);
  const id = `live-gradient-${count++}`;
  let shown = null, peek = null;
  roving(source, ".live-word");
  roving(target, ".live-word");

  function words(box, pieces, side, result, before) {
    const old = [...box.children].map((child) => child.dataset.key).join("|");
    const fresh = before ? newPlaces(before, pieces) : new Set();
    const keys = pieces.map((piece, i) => `${piece}${fresh.has(i) ? "*" : ""}`);
    if (old === keys.join("|") && box.children.length) return;
    const focused = [...box.children].indexOf(document.activeElement);
    box.classList.toggle("live-many", pieces.length > 13 || pieces.join("").length > 64);
    box.replaceChildren(...pieces.map((piece, i) => {
      const end = piece === "<eos>";
      const word = h("button", {
        type: "button", class: "live-word" + (startsWord(piece) || i === 0 ? "" : " live-joined")
          + (end ? " live-end" : "") + (fresh.has(i) ? " live-changed" : ""),
        lang: end ? null : side === "source" ? lang.src : lang.tgt, tabindex: i === 0 ? 0 : -1,
        "data-key": keys[i],
      }, h("span", {}, plain(piece)), h("small", { class: "live-share" }));
      const choose = side === "source" ? onsource : onword;
      if (choose) word.addEventListener("click", () => choose(i));
      word.addEventListener("pointerenter", () => { peek = { side, i }; paint(); });
      word.addEventListener("pointerleave", () => { peek = null; paint(); });
      return word;
    }));
    if (focused >= 0) (box.children[focused] ?? box.lastChild)?.focus();
  }

  // view: {result, before, kind, weights (rows x columns), at, from}
  function draw(view) {
    shown = view;
    source.setAttribute("aria-label", labels.source ?? `${languageName(model.src)} pieces, as the model reads them`);
    target.setAttribute("aria-label", labels.target ?? `${languageName(model.tgt)} pieces, as the model writes them: choose one to see its probabilities and its lines`);
    words(source, view.result.source.pieces, "source", view.result, null);
    words(target, view.result.target.pieces, "target", view.result,
      view.before && view.before !== view.result ? view.before.target.pieces : null);
    [...target.children].forEach((word, i) => {
      if (onword) word.setAttribute("aria-pressed", String(i === view.at));
    });
    if (onsource) [...source.children].forEach((word, i) => word.setAttribute("aria-pressed", String(i === view.from)));
    paint();
  }

  function paint() {
    if (!shown || !element.isConnected) return;
    const { result, kind, weights, at, from } = shown;
    const { queries, keys } = sides(result, kind);
    const columnsNow = columns ?? element.clientWidth < 560;
    element.classList.toggle("live-columns", columnsNow);
    const frame = element.getBoundingClientRect();
    const place = (box, i) => {
      const r = box.children[i]?.getBoundingClientRect();
      return r?.width && { x: r.left - frame.left, y: r.top - frame.top, w: r.width, h: r.height };
    };
    const queryBox = kind === "encoder" ? source : target, keyBox = kind === "cross" || kind === "encoder" ? source : target;
    const shift = kind === "decoder" ? -1 : 0;   // the decoder's keys are <bos> and the words before
    // One row of lines is strong: of the word that is pointed at, else of the chosen one.
    let row = null, column = null;
    const points = peek && (peek.side === (queryBox === source ? "source" : "target") ? "row"
      : peek.side === (keyBox === source ? "source" : "target") ? "column" : null);
    if (points === "row") row = peek.i;
    else if (points === "column") column = peek.i;
    else if (kind === "encoder") row = from ?? null;
    else row = at ?? null;
    lines.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
    const s = source.getBoundingClientRect(), t = target.getBoundingClientRect();
    const drawn = [svg("defs", {}, svg("linearGradient", { id, gradientUnits: "userSpaceOnUse", x1: columnsNow ? s.right - frame.left : 0,
      x2: columnsNow ? t.left - frame.left : 0, y1: columnsNow ? 0 : s.bottom - frame.top, y2: columnsNow ? 0 : t.top - frame.top },
      svg("stop", { offset: 0, class: "live-key-stop" }), svg("stop", { offset: 1, class: "live-query-stop" })))];
    const shares = new Map();
    for (let q = 0; q < queries.length; q++) {
      const a = place(queryBox, q);
      if (!a) continue;
      let best = 0;
      for (let k = 0; k < keys.length; k++) if (weights[q * keys.length + k] > weights[q * keys.length + best]) best = k;
      for (let k = 0; k < keys.length; k++) {
        const w = weights[q * keys.length + k];
        const strong = q === row || k + shift === column;
        if (strong && (row !== null || column !== null)) {
          const seat = row !== null ? `${keyBox === source ? "s" : "t"}${k + shift}` : `${queryBox === source ? "s" : "t"}${q}`;
          shares.set(seat, w);
        }
        if (w < FAINTEST) continue;
        const b = place(keyBox, k + shift);
        if (!b) continue;
        const faint = (row !== null || column !== null) && !strong;
        drawn.push(svg("path", {
          d: curve(a, b, kind, columnsNow), class: k === best ? "live-strongest" : "live-weak",
          stroke: kind === "cross" ? `url(#${id})` : k === best ? "var(--live-key)" : "var(--live-query)",
          "stroke-width": (1 + 9 * w).toFixed(1), "stroke-opacity": (faint ? 0.06 + 0.08 * w : 0.4 + 0.55 * w).toFixed(2),
          "data-weight": w.toFixed(3),
        }));
      }
    }
    lines.replaceChildren(...drawn);
    const numbers = (box, prefix) => [...box.children].forEach((word, i) => {
      const w = shares.get(prefix + i);
      word.querySelector(".live-share").textContent = w !== undefined && w >= 0.005 ? percent(w) : "";
      word.style.setProperty("--weight", w === undefined ? 0 : w.toFixed(3));
    });
    numbers(source, "s");
    numbers(target, "t");
    const first = kind === "decoder" && row !== null ? weights[row * keys.length] : null;
    element.dataset.note = first !== null && first >= 0.005 ? `${percent(first)} on <bos>, where the sentence begins` : "";
  }

  // From the asking word a to the asked word b.
  function curve(a, b, kind, columnsNow) {
    const round = (...numbers) => numbers.map((n) => n.toFixed(1)).join(" ");
    if (kind === "cross") {
      if (columnsNow) {
        const [x0, y0, x1, y1] = [a.x, a.y + a.h / 2, b.x + b.w, b.y + b.h / 2];
        return `M${round(x0, y0)}C${round(x0 - (x0 - x1) / 2, y0, x1 + (x0 - x1) / 2, y1, x1, y1)}`;
      }
      const [x0, y0, x1, y1] = [a.x + a.w / 2, a.y, b.x + b.w / 2, b.y + b.h];
      return `M${round(x0, y0)}C${round(x0, y0 - (y0 - y1) * 0.55, x1, y1 + (y0 - y1) * 0.55, x1, y1)}`;
    }
    // Within one row: an arch into the space between the rows; onto itself: a small loop.
    const up = kind === "decoder" ? -1 : 1;
    if (columnsNow) {
      const side = kind === "decoder" ? a.x : a.x + a.w, [y0, y1] = [a.y + a.h / 2, b.y + b.h / 2];
      const reach = side + up * Math.min(90, 16 + Math.abs(y1 - y0) * 0.35);
      return `M${round(side, y0 + (y0 === y1 ? 8 : 0))}C${round(reach, y0, reach, y1, side, y1 - (y0 === y1 ? 8 : 0))}`;
    }
    const edge = (word) => (up > 0 ? word.y + word.h : word.y);
    const [x0, x1, y0, y1] = [a.x + a.w / 2, b.x + b.w / 2, edge(a), edge(b)];
    const reach = up * Math.min(110, 30 + Math.abs(x1 - x0) * 0.3), same = x0 === x1 ? 9 : 0;
    return `M${round(x0 + same, y0)}C${round(x0 + same * 2, y0 + reach, x1 - same * 2, y1 + reach, x1 - same, y1)}`;
  }

  new ResizeObserver(paint).observe(element);
  document.fonts?.ready.then(paint);
  return { element, draw };
}
