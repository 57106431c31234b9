// Every head of the model as a picture of its attention: three grids, a row for each layer.
// Pointing previews a head, a click pins it, x switches it off.
import { h, model, KINDS, KIND_NAMES, explained, headName, percent, plain, roving, sides } from "./shared.js";

const SIZE = 44;  // pixels of a thumbnail

export function makeHeads({ set, peek, toggle, scan }) {
  const element = h("div", { class: "live-heads" });
  let shape = "", cells = {}, grids = {}, bars = {};

  function build(result) {
    const heads = result.attention.cross[0].length;
    cells = {}, grids = {}, bars = {};
    element.replaceChildren(...KINDS.map((kind) => {
      const grid = h("div", { class: "live-grid", role: "group", style: `--heads:${heads}`,
        "aria-label": `${KIND_NAMES[kind]}: ${explained(kind)}; a row is a layer. Arrows move, Enter pins, x switches off` });
      for (let layer = 0; layer < result.attention[kind].length; layer++) {
        grid.append(h("button", { type: "button", class: "live-row", title: `All heads of layer ${layer}: off or on`,
          "aria-pressed": "false", "data-block": `${kind}.${layer}`, "aria-label": `Switch off layer ${layer} of “${KIND_NAMES[kind]}”`,
          onclick: () => toggle("blocks", `${kind}.${layer}`) }, String(layer)));
        for (let head = 0; head < heads; head++) {
          const name = `${kind}.${layer}.${head}`;
          const canvas = h("canvas", { width: SIZE * 2, height: SIZE * 2, "aria-hidden": "true" });
          cells[name] = h("button", { type: "button", class: "live-head", "data-head": name, "aria-pressed": "false",
            tabindex: layer + head === 0 ? 0 : -1, onclick: () => set({ pin: name === current?.state.pin ? null : name }),
            onpointerenter: (event) => event.pointerType !== "touch" && peek(name), onpointerleave: () => peek(null),
            onkeydown: (event) => {
              if (!["x", "Delete", "Backspace"].includes(event.key) || event.ctrlKey || event.metaKey) return;
              event.preventDefault();
              toggle("heads", name);
            } }, canvas, h("span", { class: "live-shift" }));
          grid.append(cells[name]);
        }
      }
      roving(grid, ".live-head", heads);
      grids[kind] = grid;
      bars[kind] = h("button", { type: "button", class: "live-button live-block", "aria-pressed": "false", "data-block": kind,
        onclick: () => toggle("blocks", kind) }, "All off");
      return h("section", { class: `live-kind live-kind-${kind}`, id: `live-kind-${kind}` },
        h("header", {}, h("h4", {}, KIND_NAMES[kind]), h("span", {}, explained(kind).split(" (")[0]), bars[kind]), grid);
    }));
  }

  let current = null;
  function draw(view) {
    current = view;
    const { state, result, scanned } = view;
    if (!result) return;
    // A reader's own model may have other numbers of layers and heads.
    const sizes = KINDS.map((kind) => result.attention[kind].length).join() + "x" + result.attention.cross[0].length + model.src;
    if (shape !== sizes) build(result);
    shape = sizes;
    const ink = getComputedStyle(element).getPropertyValue("--live-ink").trim() || "0, 96, 154";
    const largest = scanned ? Math.max(0.001, ...KINDS.flatMap((kind) => scanned[kind].flat().map((s) => s.shift))) : 1;
    for (const kind of KINDS) {
      bars[kind].setAttribute("aria-pressed", String(state.blocks.has(kind)));
      bars[kind].textContent = state.blocks.has(kind) ? "All on" : "All off";
      const { queries, keys } = sides(result, kind);
      result.attention[kind].forEach((layer, l) => {
        const row = grids[kind].querySelector(`[data-block="${kind}.${l}"]`);
        row.setAttribute("aria-pressed", String(state.blocks.has(`${kind}.${l}`)));
        layer.forEach((weights, n) => {
          const name = `${kind}.${l}.${n}`, cell = cells[name];
          const off = state.heads.has(name) || state.blocks.has(kind) || state.blocks.has(`${kind}.${l}`);
          cell.classList.toggle("live-off", off);
          cell.setAttribute("aria-pressed", String(state.pin === name));
          const shift = scanned?.[kind][l][n];
          cell.style.setProperty("--shift", shift ? (shift.shift / largest).toFixed(3) : 0);
          cell.querySelector(".live-shift").textContent = shift ? (100 * shift.shift).toFixed(shift.shift < 0.0995 ? 1 : 0) : "";
          cell.classList.toggle("live-decides", Boolean(shift?.changed));
          cell.setAttribute("aria-label", `Head ${headName(name)} of “${KIND_NAMES[kind]}”${off ? ", switched off" : ""}`
            + (shift ? `, shifts the probabilities by ${(100 * shift.shift).toFixed(1)} points${shift.changed ? " and changes the sentence" : ""}` : "")
            + `: ${strongest(weights, queries, keys)}`);
          picture(cell.firstChild, weights, queries.length, keys.length, ink);
        });
      });
    }
  }

  return { element, draw, focus: (name) => cells[name]?.focus() };
}

function strongest(weights, queries, keys) {
  let best = 0;
  weights.forEach((w, i) => { if (w > weights[best]) best = i; });
  const q = Math.floor(best / keys.length);
  return `${plain(queries[q] ?? "")} looks at ${plain(keys[best % keys.length] ?? "")} with ${percent(weights[best])}`;
}

// A row for each asking word, a column for each asked; the darker the more.
export function picture(canvas, weights, rows, columns, ink) {
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  context.clearRect(0, 0, width, height);
  for (let q = 0; q < rows; q++) {
    for (let k = 0; k < columns; k++) {
      const w = weights[q * columns + k];
      if (!(w > 0.01)) continue;
      context.fillStyle = `rgba(${ink}, ${Math.min(1, 0.08 + 0.92 * Math.sqrt(w)).toFixed(3)})`;
      const x = Math.round(k * width / columns), y = Math.round(q * height / rows);
      context.fillRect(x, y, Math.max(1, Math.round((k + 1) * width / columns) - x),
        Math.max(1, Math.round((q + 1) * height / rows) - y));
    }
  }
}
