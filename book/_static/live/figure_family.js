// The family tree: each model stands in its year, a line leads to it from the model that it changed.
// Wide, it is a tree; on a phone, a list by year. The data is family.json, read by the page, too.
import { h, svg } from "./shared.js";

const ROW = 32, INDENT = 14, LAST = 196, NARROW = 640;
// On a phone the list opens with these; the others come with a choice, a search or a button.
const SPINE = ["Transformer", "Transformer decoder", "GPT", "BERT", "Transformer-XL", "GPT-2", "T5", "BART", "GPT-3", "ViT"];
const MARKS = { encoder: "E", decoder: "D", "encoder-decoder": "ED", vision: "V", other: "∗" };
const roomOf = (name) => 44 + 7.4 * name.length;   // pixels that a model's button may need

// Rows and columns of the shown models: a child in a later year continues its parent's row if there
// is room, every other child gets a row of its own below. So no line crosses a name.
function arrange(models, width) {
  const shown = new Set(models), years = [...new Set(models.map((model) => model.year))].sort();
  const step = (width - LAST) / Math.max(1, years.length - 1);
  const left = (year) => years.indexOf(year) * step;
  const places = new Map();
  let rows = 0;
  function put(model, row, indent) {
    const place = { x: left(model.year) + indent, row };
    places.set(model, place);
    rows = Math.max(rows, row + 1);
    let inline = true;
    for (const child of model.children.filter((one) => shown.has(one))) {
      const same = child.year === model.year;
      const beside = inline && !same && left(child.year) - place.x > roomOf(model.name);
      put(child, beside ? row : rows, same ? indent + INDENT : 0);
      inline = inline && !beside;
    }
  }
  models.filter((model) => !shown.has(model.from)).forEach((root) => put(root, rows, 0));
  return { places, rows, years: years.map((year) => [year, left(year)]) };
}

function edge(from, to) {
  const y = (row) => row * ROW + ROW / 2, x = from.x + 8;
  if (from.row === to.row) return `M ${from.x + 12} ${y(from.row)} H ${to.x}`;
  return `M ${x} ${y(from.row)} V ${y(to.row) - 6} q 0 6 6 6 H ${to.x}`;
}

export async function mount(root, { base }) {
  const answer = await fetch(new URL("family.json", base));
  if (!answer.ok) throw new Error(`family.json: ${answer.status}`);
  const data = await answer.json(), models = data.models;
  const named = new Map(models.map((model) => [model.name, model]));
  const built = new Set((root.dataset.pages ?? "").split(" "));
  const order = Object.keys(data.branches);
  for (const model of models) Object.assign(model, { from: named.get(model.parent), children: [] });
  for (const model of models) model.from?.children.push(model);
  for (const model of models) model.children.sort((a, b) => order.indexOf(a.branch) - order.indexOf(b.branch));
  for (const model of models) {
    model.text = [model.name, model.authors, model.changed, model.parameters, model.data, model.year].join(" ").toLowerCase();
  }
  const chosen = { branch: "", varies: "" };
  let open = null, at = models[0], whole = false, nodes = new Map(), edges = new Map(), height = "";

  const search = h("input", { type: "search", class: "live-select live-family-search", placeholder: "BERT, mask, 2019 …", "aria-label": "Search the models", autocomplete: "off", spellcheck: "false" });
  const says = h("p", { class: "live-says", role: "status", "aria-live": "polite" });
  const plot = h("div", { class: "live-family" });
  const rows = [["branch", "Branch", data.branches], ["varies", "What changed", data.varies]].map(([key, label, names]) => {
    const used = Object.entries(names).filter(([value]) => models.some((model) => model[key] === value));
    const buttons = [["", "all"], ...used].map(([value, text]) => h("button", { type: "button", class: "live-button", "aria-pressed": String(!value), "data-value": value, onclick: () => choose(key, value) }, key === "branch" && value ? mark(value) : null, text));
    return h("div", { class: "live-family-choice", role: "group", "aria-label": label, "data-key": key }, h("span", {}, label), buttons);
  });
  const more = h("button", { type: "button", class: "live-button", onclick: () => { whole = true; draw(); nodes.get(at)?.focus({ preventScroll: true }); } }, `Show all ${models.length} models`);
  const box = h("div", { class: "live-box live" }, h("div", { class: "live-bar-row" }, search), rows, says, plot, more);
  root.querySelector(".live-still")?.remove();
  root.prepend(box);

  function mark(branch) { return h("i", { class: `live-family-mark live-family-${branch}`, "aria-hidden": "true" }, MARKS[branch]); }

  function choose(key, value) {
    chosen[key] = value;
    box.querySelectorAll(`[data-key="${key}"] button`).forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.value === value)));
    draw();
  }

  const words = () => search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (model) => (!chosen.branch || model.branch === chosen.branch)
    && (!chosen.varies || model.varies === chosen.varies) && words().every((word) => model.text.includes(word));

  function card(model) {
    const jump = (other) => h("button", { type: "button", class: "live-link", onclick: () => go(other) }, other.name);
    const list = (others) => others.flatMap((other, i) => [h("span", {}, jump(other), i < others.length - 1 ? "," : ""), " "]);
    const facts = [["Parameters", model.parameters ?? "none stated"], ["Data", model.data]];
    if (model.from) facts.push(["From", jump(model.from)]);
    if (model.children.length) facts.push(["Led to", list(model.children)]);
    const lines = built.has(model.page) ? h("a", { class: "live-button live-primary", href: `${model.page}.html#${model.anchor}` }, "See the lines") : null;
    const source = h("a", { href: model.source.replace("arXiv:", "https://arxiv.org/abs/") }, model.source.startsWith("arXiv:") ? model.source : "Source");
    return h("section", { class: `live-family-card live-family-${model.branch}`, id: "family-card", "aria-label": model.name },
      h("header", {}, h("strong", {}, `${model.name}, ${model.year}`), h("button", { type: "button", class: "live-button live-close", "aria-label": "Close", onclick: () => go(model, false) }, "×")),
      h("p", { class: "live-note" }, `${model.authors}. ${data.branches[model.branch]}; changes ${data.varies[model.varies]}.`),
      h("p", {}, model.changed),
      h("dl", {}, facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      h("p", { class: "live-card-foot" }, lines, source));
  }

  function node(model, faint) {
    return h("button", { type: "button", class: `live-model live-family-${model.branch}${faint ? " live-faint" : ""}`, "data-name": model.name, "aria-expanded": "false", tabindex: -1, onclick: () => show(open === model ? null : model), onfocus: () => { at = model; trace(); }, onpointerenter: () => trace(model), onpointerleave: () => trace() },
      mark(model.branch), h("span", {}, model.name), h("span", { class: "live-hidden" }, `, ${model.year}, ${data.branches[model.branch]}${model.from ? `, from ${model.from.name}` : ""}`));
  }

  // The lines from a model back to the first one.
  function trace(model = open ?? (plot.contains(document.activeElement) ? at : null)) {
    edges.forEach((line) => line.classList.remove("live-on"));
    for (let one = model; one; one = one.from) edges.get(one)?.classList.add("live-on");
  }

  function show(model) {
    plot.querySelector(".live-family-card")?.remove();
    nodes.forEach((button, one) => { button.setAttribute("aria-expanded", String(one === model)); button.tabIndex = one === (model ?? at) ? 0 : -1; });
    open = model && nodes.has(model) ? model : null;
    plot.style.height = height;
    if (open) {
      at = open;
      const button = nodes.get(open), element = card(open);
      button.setAttribute("aria-controls", "family-card");
      button.after(element);
      if (!plot.classList.contains("live-family-list")) {
        const left = Math.min(parseFloat(button.style.left), plot.clientWidth - element.offsetWidth);
        Object.assign(element.style, { left: `${Math.max(0, left)}px`, top: `${parseFloat(button.style.top) + ROW}px` });
        plot.style.height = `${Math.max(parseFloat(height), element.offsetTop + element.offsetHeight)}px`;
      }
    }
    trace();
  }

  // Move to a model, with its card or without; choices that hide it are taken back.
  function go(model, opened = true) {
    if (!nodes.has(model)) {
      search.value = "";
      whole = true;
      choose("branch", "");
      choose("varies", "");
    }
    at = model;
    show(opened ? model : null);
    nodes.get(model).focus({ preventScroll: true });
    nodes.get(model).scrollIntoView({ block: "nearest", behavior: "instant" });
  }

  function draw() {
    const narrow = box.clientWidth < NARROW, spine = narrow && !whole && !chosen.branch && !chosen.varies && !words().length;
    const found = models.filter((model) => (spine ? SPINE.includes(model.name) : fits(model))), shown = new Set(found);
    more.hidden = !spine;
    if (!narrow) for (const model of found) for (let one = model.from; one; one = one.from) shown.add(one);
    const listed = models.filter((model) => shown.has(model));
    const was = open;
    nodes = new Map();
    edges = new Map();
    plot.className = narrow ? "live-family live-family-list" : "live-family";
    if (narrow) {
      const years = [...new Set(listed.map((model) => model.year))];
      height = "";
      plot.replaceChildren(...years.map((year) => h("section", {}, h("h3", {}, String(year)), h("ul", {}, listed.filter((model) => model.year === year).map((model) => {
        const button = node(model, false);
        button.append(h("small", { "aria-hidden": "true" }, model.from ? `from ${model.from.name}` : ""));
        nodes.set(model, button);
        return h("li", {}, button);
      })))));
    } else {
      const { places, rows: count, years } = arrange(listed, plot.clientWidth);
      const lines = svg("svg", { class: "live-family-lines", "aria-hidden": "true" });
      height = `${(count + 1) * ROW}px`;
      const sorted = [...places].sort(([, a], [, b]) => a.row - b.row || a.x - b.x);
      for (const [model, place] of sorted) {
        const parent = places.get(model.from);
        if (parent) edges.set(model, lines.appendChild(svg("path", { d: edge(parent, place), class: `live-family-${model.branch}` })));
        const button = node(model, !fits(model));
        Object.assign(button.style, { left: `${place.x}px`, top: `${(place.row + 1) * ROW}px` });
        nodes.set(model, button);
      }
      const columns = years.map(([year, x]) => h("div", { class: "live-family-year", style: `left: ${x}px`, "aria-hidden": "true" }, String(year)));
      plot.replaceChildren(h("div", { class: "live-family-years" }, columns), lines, ...nodes.values());
    }
    if (!nodes.has(at)) at = found[0] ?? models[0];
    show(nodes.has(was) && fits(was) ? was : null);
    const parts = Object.entries(data.varies).map(([key, name]) => [found.filter((model) => model.varies === key).length, name]).filter(([n]) => n);
    const many = found.length === models.length ? `${models.length} models` : `${found.length} of ${models.length} models`;
    says.textContent = spine ? `${many}: the spine of the tree.` : found.length ? `${many}. What they change: ${parts.map(([n, name]) => `${name} (${n})`).join(", ")}.` : "No model matches. Choose “all”, or shorten the search.";
  }

  // Arrows walk the tree: up and down in the order of the rows, left to the parent, right to a child.
  plot.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && open) { event.preventDefault(); go(open, false); return; }
    if (!event.target.matches(".live-model")) return;
    const all = [...nodes.keys()], i = all.indexOf(at);
    const to = { ArrowDown: all[i + 1], ArrowUp: all[i - 1], ArrowLeft: at.from, ArrowRight: at.children.find((child) => nodes.has(child)), Home: all[0], End: all.at(-1) };
    if (!(event.key in to)) return;
    event.preventDefault();
    if (nodes.has(to[event.key])) go(to[event.key], Boolean(open));
  });
  search.addEventListener("input", draw);
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();   // else the same key presses the button that gets the focus
    const first = models.find((model) => fits(model) && model.name.toLowerCase().includes(search.value.trim().toLowerCase())) ?? models.find(fits);
    if (first) go(first);
  });
  let width = 0;
  new ResizeObserver(() => {
    if (Math.abs(box.clientWidth - width) < 2) return;
    width = box.clientWidth;
    draw();
  }).observe(box);
  draw();
}
