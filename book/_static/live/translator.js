// The translator page: its state, its address, its layout. The parts draw; this file decides.
import { h, model, KINDS, KIND_NAMES, headName, megabytes, percent, plain, letters, startsWord, weightsOf,
  difference, surprise, roving, steady, newPlaces } from "./shared.js";
import { makeArcs } from "./arcs.js";
import { makeHeads } from "./heads.js";
import { makeBets } from "./bets.js";
import { makeBeamTree } from "./beam_tree.js";
import { makeInsideHead, makeDepth, makeTable } from "./inside_head.js";
import { makeStory } from "./story.js";

const FIRST = "Zwei Hunde spielen im Schnee.";
const SIZE = 2.9e6;  // bytes of the shipped file, told before it is loaded
const fresh = () => ({ text: FIRST, heads: new Set(), blocks: new Set(), positions: false, causal: false,
  pin: null, at: null, from: null, prefix: [], method: "greedy", beamSize: 5, penalty: null,
  temperature: 1, topK: 0, topP: 1, seed: 1, tab: null, story: 0, view: "look" });

// ---- the address: everything that is not as at first stands behind "#" -------------------

export function write(state) {
  const address = new URLSearchParams(), plainState = fresh();
  const put = (name, value, usual) => { if (value !== usual && value !== "" && value !== null) address.set(name, value); };
  put("de", state.text, plainState.text);
  put("off", [...state.blocks, ...state.heads].join(","), "");
  put("without", ["positions", "causal"].filter((name) => state[name]).join(","), "");
  for (const [short, name] of SHORT) put(short, state[name], plainState[name]);
  put("force", state.prefix.join("."), "");
  return address.toString();
}

const SHORT = [["pin", "pin"], ["at", "at"], ["from", "from"], ["by", "method"], ["beam", "beamSize"], ["lp", "penalty"],
  ["t", "temperature"], ["k", "topK"], ["p", "topP"], ["seed", "seed"], ["tab", "tab"], ["step", "story"]];

export function read(hash) {
  const state = fresh(), address = new URLSearchParams(hash.replace(/^#/, ""));
  if (address.has("de")) state.text = address.get("de").slice(0, 2000);
  for (const name of (address.get("off") ?? "").split(",")) {
    if (/^(encoder|decoder|cross)\.\d+\.\d+$/.test(name)) state.heads.add(name);
    else if (/^(encoder|decoder|cross)(\.\d+)?$/.test(name)) state.blocks.add(name);
  }
  for (const name of (address.get("without") ?? "").split(",")) if (["positions", "causal"].includes(name)) state[name] = true;
  for (const [short, name] of SHORT) {
    if (!address.has(short)) continue;
    const value = address.get(short);
    if (["pin", "method", "tab"].includes(name)) state[name] = value;
    else if (Number.isFinite(Number(value))) state[name] = Number(value);
  }
  if (!["greedy", "beam", "sample"].includes(state.method)) state.method = "greedy";
  if (!/^(encoder|decoder|cross)\.\d+\.\d+$/.test(state.pin ?? "")) state.pin = null;
  state.beamSize = Math.max(1, Math.min(8, Math.round(state.beamSize)));
  state.temperature = Math.max(0.1, Math.min(3, state.temperature));
  state.prefix = (address.get("force") ?? "").split(".").filter(Boolean).map(Number).filter(Number.isInteger);
  return state;
}

export function switchesOf(state) {
  const switches = { heads: [...state.heads], blocks: [...state.blocks], positions: state.positions, causal: state.causal };
  return switches.heads.length || switches.blocks.length || switches.positions || switches.causal ? switches : null;
}

export function nameOfSwitches({ heads, blocks, positions, causal }) {
  const names = [...blocks].map((block) => (block.includes(".") ? `layer ${headName(block)} of “${KIND_NAMES[block.split(".")[0]]}”` : `every head that ${block === "encoder" ? "reads" : block === "decoder" ? "looks at its own words" : "looks back"}`));
  if (heads.size > 3) names.push(`${heads.size} heads`);
  else names.push(...[...heads].map((head) => `head ${headName(head)} of “${KIND_NAMES[head.split(".")[0]]}”`));
  if (positions) names.push("positions");
  if (causal) names.push("the causal mask");
  return names.join(" and ");
}

// ---- the page ---------------------------------------------------------------------------

export async function mount(root, { base }) {
  const state = read(location.hash);
  let result = null, before = null, scanned = null, peeked = null, busy = false, again = false, dirty = null, waiting = [];
  const lang = { get src() { return model.src; }, get tgt() { return model.tgt; } };
  const cache = new Map();

  // -- parts
  const input = h("textarea", { class: "live-input", rows: 1, lang: "de", spellcheck: "false", autocapitalize: "sentences", autocomplete: "off",
    enterkeyhint: "done", "aria-label": "German sentence", placeholder: "Type a German sentence" });
  const status = h("p", { class: "live-status" });
  const progress = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Loading the model" });
  const retry = h("button", { type: "button", class: "live-button", hidden: true, onclick: () => load().then(compute).catch(() => {}) }, "Try again");
  const spoken = h("p", { class: "live-says", role: "status", "aria-live": "polite" });
  const output = h("p", { class: "live-result" });
  const was = h("p", { class: "live-was" });
  const chips = h("div", { class: "live-examples", role: "group", "aria-label": "Example sentences" });
  const caption = h("p", { class: "live-caption" });
  const arcs = makeArcs({ lang, onword: (at) => set({ at }), onsource: (from) => set({ from: state.from === from ? null : from }) });
  const heads = makeHeads({ set, toggle, peek: (name) => { peeked = name; drawStage(); } });
  const bets = makeBets({ set, lang, force: (at, bet) => set({ prefix: [...result.target.ids.slice(0, at), bet.id], at: Math.min(at + 1, 200), forced: plain(bet.piece), method: state.method === "beam" ? "greedy" : state.method }) });
  const panels = {
    beam: ["Beam tree", makeBeamTree({ ask, set, lang })],
    inside: ["Inside one head", makeInsideHead({ ask, lang })],
    depth: ["Depth", makeDepth({ ask, lang, set })],
    numbers: ["Numbers", makeTable({ lang })],
  };
  const story = makeStory({ apply, remember: (step) => { state.story = step; address(); }, focusInput: () => input.focus(),
    chapterAddress: (name) => new URL(`../../book/${name}.html`, base).href });

  const button = (text, action, properties = {}) => h("button", { type: "button", class: "live-button", onclick: action, ...properties }, text);
  const pinOff = button("Switch off", () => state.pin && toggle("heads", state.pin), { "aria-pressed": "false" });
  const only = button("Only this", onlyThis);
  const unpin = button("Unpin", () => { const name = state.pin; set({ pin: null }); heads.focus(name); });
  const pinned = h("div", { class: "live-pinned", hidden: true }, h("strong", {}), pinOff, only, unpin);
  const matter = button("Which heads matter for my sentence?", scan);
  const positions = button("Positions", () => set({ positions: !state.positions }), { "aria-pressed": "true", title: "Take the positions away: the model no longer knows the order" });
  const causal = button("Causal mask", () => set({ causal: !state.causal }), { "aria-pressed": "true", title: "Let every word look at later ones" });
  const reset = button("Reset", () => set({ heads: new Set(), blocks: new Set(), positions: false, causal: false, prefix: [], method: "greedy", temperature: 1, topK: 0, topP: 1 }), { class: "live-button live-reset" });
  const tabs = h("div", { class: "live-tabs", role: "tablist", "aria-label": "More of the machine" },
    Object.entries(panels).map(([name, [title]], i) => h("button", { type: "button", role: "tab", id: `live-tab-${name}`, "aria-controls": "live-panel", "aria-selected": "false",
      tabindex: i ? -1 : 0, class: "live-tab", onclick: () => set({ tab: state.tab === name ? null : name }) }, title)));
  roving(tabs, ".live-tab");
  const panel = h("div", { class: "live-panel", id: "live-panel", role: "tabpanel", hidden: true });
  const views = h("div", { class: "live-views", role: "group", "aria-label": "Parts of the page" }, [["look", "Look"], ["heads", "Heads"], ["bets", "Bets"], ["beam", "Beam"]].map(([name, title]) =>
    h("button", { type: "button", class: "live-tab", "data-view": name, "aria-pressed": "false", onclick: () => { set({ view: name, tab: name === "beam" ? state.tab ?? "beam" : state.tab }); } }, title)));
  const file = h("input", { type: "file", accept: ".bin", class: "live-file", id: "live-own", onchange: () => file.files[0] && own(file.files[0]) });
  const about = h("p", { class: "live-note live-about" });

  root.replaceChildren(h("div", { class: "live-translator live", "data-view": "look" },
    story.element,
    h("div", { class: "live-top" }, input, h("div", { class: "live-written-line" }, output, was)),
    h("div", { class: "live-actions" }, button("Surprise me", () => { input.value = ""; set({ text: surprise(), prefix: [], at: null, from: null }); input.value = state.text; grow(); }), story.start),
    chips,
    h("div", { class: "live-line-row" }, spoken, status, progress, retry),
    views,
    h("div", { class: "live-main" },
      h("div", { class: "live-stage" }, arcs.element, caption),
        h("div", { class: "live-heads-part" }, h("div", { class: "live-bar-row" }, pinned, h("div", { class: "live-common" }, matter, h("span", { class: "live-toggles" }, positions, causal), reset)), heads.element,
          h("p", { class: "live-note live-hint" }, "A row is a layer, a square a head, counted from 0 as in the code. In a square a row is a word that asks, a column a word that is asked. Point to preview, click to pin, ", h("kbd", {}, "x"), " to switch off.")),
      h("div", { class: "live-right" }, bets.element)),
    h("div", { class: "live-lower" }, tabs, panel),
    h("div", { class: "live-drop" }, h("label", { for: "live-own", class: "live-button" }, "Run a model of your own"), file,
      h("span", { class: "live-note" }, "Choose the file that your notebook exported, or drop it anywhere on this page. It stays in your browser.")),
    about));
  const tool = root.firstChild, stay = steady(tool);

  // -- events
  let typing = null;
  input.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => set({ text: input.value.replace(/\n/g, " "), prefix: [], at: null, from: null }), 40); grow(); });
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); clearTimeout(typing); set({ text: input.value, prefix: [] }); } });
  input.addEventListener("focus", () => load().catch(() => {}));
  tool.addEventListener("keydown", (event) => { if (event.key === "Escape" && state.pin) set({ pin: null }); });
  const grow = () => { input.style.height = "auto"; input.style.height = `${input.scrollHeight + 2}px`; };
  for (const kind of ["dragenter", "dragover"]) window.addEventListener(kind, (event) => { if ([...event.dataTransfer.types].includes("Files")) { event.preventDefault(); tool.classList.add("live-dropping"); } });
  window.addEventListener("dragleave", (event) => { if (!event.relatedTarget) tool.classList.remove("live-dropping"); });
  window.addEventListener("drop", (event) => { tool.classList.remove("live-dropping"); const dropped = event.dataTransfer.files[0]; if (dropped) { event.preventDefault(); own(dropped); } });
  window.addEventListener("hashchange", () => { if (location.hash.slice(1) !== write(state) && location.hash.includes("=")) { Object.assign(state, read(location.hash)); changed(); } });
  new MutationObserver(() => drawAll()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  new ResizeObserver(grow).observe(input);

  model.addEventListener("change", (event) => {
    progress.hidden = model.state !== "loading";
    retry.hidden = model.state !== "failed";
    if (model.state === "loading") {
      const total = event.total || SIZE;
      progress.value = (event.loaded ?? 0) / total;
      status.textContent = `Loading the model: ${megabytes(event.loaded ?? 0)} of ${megabytes(total)}`;
    } else if (model.state === "failed") {
      status.textContent = `The model could not be loaded: ${model.error.message} The examples above still work.`;
    } else {
      status.textContent = "";
      describe();
    }
  });

  function load() { return model.load(); }
  async function own(chosen) {
    try {
      await model.load(chosen);
      cache.clear();
      input.lang = model.src;
      set({ heads: new Set(), blocks: new Set(), pin: null, prefix: [], at: null });
      say(`Your model ${model.info.name} is here: ${model.info.parameters.toLocaleString("en")} numbers.`);
    } catch (error) {
      say(`${chosen.name} is not a model that this page can run: ${error.message}`);
    }
    file.value = "";
  }
  function ask(what, ...given) { return model.ask(what, ...given); }

  // -- state
  function set(patch) {
    const keys = Object.keys(patch);
    dirty = { ...dirty, ...patch };
    Object.assign(state, patch);
    changed(keys.every((key) => ["pin", "at", "from", "tab", "view", "story"].includes(key)));
  }
  function toggle(which, name) {
    const next = new Set(state[which]);
    if (!next.delete(name)) next.add(name);
    set({ [which]: next });
  }
  function onlyThis() {
    if (!state.pin || !result) return;
    const [kind] = state.pin.split(".");
    const others = result.attention[kind].flatMap((layer, l) => layer.map((_, n) => `${kind}.${l}.${n}`)).filter((name) => name !== state.pin);
    const already = others.every((name) => state.heads.has(name));
    set({ heads: new Set(already ? [] : others), blocks: new Set([...state.blocks].filter((block) => !block.startsWith(kind))) });
  }
  function address() { history.replaceState(null, "", `${location.pathname}${location.search}${write(state) ? "#" + write(state) : ""}`); }
  function changed(onlyView = false) {
    address();
    if (input.value !== state.text && document.activeElement !== input) { input.value = state.text; grow(); }
    if (onlyView && result) { redraw(); return; }
    scanned = null;
    compute();
  }

  // One computation at a time; what was asked meanwhile is computed at its end.
  async function compute() {
    if (busy) { again = true; return; }
    busy = true;
    tool.setAttribute("aria-busy", "true");
    do {
      again = false;
      try { await once(); } catch (error) { if (error.name !== "Superseded") fail(error); }
    } while (again);
    busy = false;
    tool.removeAttribute("aria-busy");
    waiting.splice(0).forEach((resolve) => resolve());
  }

  async function once() {
    const text = state.text.trim(), asked = dirty ?? {};
    dirty = null;
    if (!text) { say("Type a German sentence, or choose one of the examples."); output.replaceChildren(); tool.classList.add("live-empty"); return; }
    tool.classList.remove("live-empty");
    if (model.state === "ready") {
      const { unknown } = await model.ask("tokenize", text);
      tool.dataset.unknown = unknown.join("");
    }
    const drawing = { method: state.method, beamSize: state.beamSize, lengthPenalty: state.penalty ?? undefined,
      ...(state.method === "sample" ? { temperature: state.temperature, topK: state.topK || undefined, topP: state.topP < 1 ? state.topP : undefined, seed: state.seed } : {}) };
    const switches = switchesOf(state), prefix = state.prefix;
    const untouched = await remembered(text, drawing);
    const now = switches || prefix.length ? await remembered(text, { ...drawing, switches: switches ?? undefined, prefix: prefix.length ? prefix : undefined }) : untouched;
    result = now;
    before = untouched;
    if (state.pin) { const [kind, layer, head] = state.pin.split("."); if (!now.attention[kind]?.[layer]?.[head]) state.pin = null; }
    redraw();
    speak(text, asked, switches);
  }

  async function remembered(text, options) {
    const key = JSON.stringify([model.state === "ready" ? model.info.name : "", text, options]);
    if (!cache.has(key)) {
      const answer = await model.translate(text, { ...options, keep: 12, attention: true });
      if (cache.size > 60) cache.delete(cache.keys().next().value);
      cache.set(key, answer);
    }
    return cache.get(key);
  }

  function fail(error) {
    tool.classList.add("live-failed");
    if (["WeightsMissing", "Damaged"].includes(error.name) || model.state === "failed") {
      say("Without the model only the examples can be shown.");
    } else say(error.message);
    waiting.splice(0).forEach((resolve) => resolve(error));
  }

  // What happened, in one sentence made of the numbers.
  function say(text) { if (spoken.textContent !== text) spoken.textContent = text; }
  function speak(text, asked, switches) {
    const names = nameOfSwitches(state), records = model.records;
    if (tool.dataset.unknown) say(`The model has never seen ${[...tool.dataset.unknown].map((c) => `“${c}”`).join(", ")}: it reads <unk> there.`);
    else if (asked.forced) say(`With “${asked.forced}” forced it writes: ${result.text}`);
    else if (switches) {
      const d = difference(before, result);
      const shift = `“${d.word}” ${d.is < d.was ? "falls" : "rises"} from ${percent(d.was)} to ${d.unseen ? "almost nothing" : percent(d.is)}`;
      say(`Without ${names} ${d.same ? `the sentence stays; ${shift}.` : `it writes something else: ${shift}.`}`);
    } else if (records && result.confidence < records.usual && !model.own) {
      say(`It is unsure: its bets have ${percent(result.confidence)} on average. This model has only read captions of photographs. 95 of 100 new captions reach ${percent(records.usual)}; of ${records.elsewhere.n} sentences about other things, ${records.elsewhere.usual} did.`);
    } else say(`Its bets have ${percent(result.confidence)} on average.`);
  }

  async function scan() {
    if (scanned) { scanned = null; drawAll(); return; }
    matter.disabled = true;
    matter.textContent = "Trying all heads …";
    try {
      const text = state.text.trim();
      await load();
      const untouched = await remembered(text, { method: "greedy" });
      scanned = await ask("headScan", text, { targetIds: untouched.target.ids });
      const all = KINDS.flatMap((kind) => scanned[kind].flatMap((layer, l) => layer.map((s, n) => ({ ...s, name: `${l}.${n}`, kind }))));
      const most = all.reduce((a, b) => (b.shift > a.shift ? b : a)), decide = all.filter((s) => s.changed).length;
      drawAll();
      say(`Each of ${all.length} heads was switched off alone: ${decide} change the sentence. Most shifts head ${most.name} of “${KIND_NAMES[most.kind]}”, by ${(100 * most.shift).toFixed(1)} points a piece.`);
    } catch (error) { if (error.name !== "Superseded") say(error.message); }
    matter.disabled = false;
    drawAll();
  }

  // -- drawing
  const layerShown = () => Math.min(1, result.attention.cross.length - 1);
  function drawStage() {
    if (!result) return;
    const name = peeked ?? state.pin, [kind, layer, head] = name ? name.split(".") : ["cross", layerShown(), null];
    const weights = weightsOf(result, kind, Number(layer), head === null ? null : Number(head));
    arcs.draw({ result, before, kind, weights, at: atNow(), from: state.from });
    const silent = state.blocks.has(kind) || state.blocks.has(`${kind}.${layer}`) || state.heads.has(name);
    arcs.element.classList.toggle("live-silent", silent);
    caption.textContent = silent ? "Switched off: it looks, but nothing of what it sees is handed on." : name ? `Head ${headName(name)}: ${kind === "encoder" ? "German looks at German" : kind === "decoder" ? "each English word looks at what is written before it" : "English looks at German"}${peeked && peeked !== state.pin ? " (preview)" : ""}. ${arcs.element.dataset.note ?? ""}`
      : `Where each English word looks in the German: layer ${layer}, the mean of its heads. Point at a word; choose one for its bets.`;
    return { kind, weights, name: name ? `Head ${headName(name)} of “${KIND_NAMES[kind]}”` : `Cross-attention of layer ${layer}, mean of its heads` };
  }
  const atNow = () => Math.max(0, Math.min(state.at ?? telling(), result.steps.length - 1));
  // With no word chosen: the one whose bet moved most, else the one that the model is least sure of.
  const telling = () => (before !== result && !state.prefix.length ? difference(before, result).position : leastSure());
  const leastSure = () => { let worst = 0; result.steps.forEach((step, i) => { if (step.top[0].p < result.steps[worst].top[0].p) worst = i; }); return worst; };

  function redraw() {
    const settle = stay();
    drawAll();
    settle();
  }

  function drawAll() {
    if (!result) return;
    tool.dataset.view = state.view;
    output.lang = lang.tgt;
    const fresh = before === result ? new Set() : newPlaces(before.target.pieces, result.target.pieces);
    output.replaceChildren(...result.target.pieces.slice(0, result.target.pieces.at(-1) === "<eos>" ? -1 : undefined).flatMap((piece, i) => {
      return [startsWord(piece) && i ? " " : "", fresh.has(i) ? h("mark", {}, letters(piece)) : letters(piece)];
    }));
    if (!result.target.pieces.length || result.target.pieces[0] === "<eos>") output.textContent = "(it stops at once)";
    const other = before !== result && before.text !== result.text;
    was.style.visibility = other ? "visible" : "hidden";
    was.replaceChildren("before: ", h("span", { lang: lang.tgt }, before.text));
    const stage = drawStage(), text = state.text.trim(), switches = switchesOf(state) ?? undefined;
    heads.draw({ state, result, scanned });
    bets.draw({ state: { ...state, at: atNow() }, result, before });
    pinned.hidden = !state.pin;
    if (state.pin) {
      const off = state.heads.has(state.pin);
      pinned.firstChild.textContent = `${headName(state.pin)} ${KIND_NAMES[state.pin.split(".")[0]]}`;
      pinOff.textContent = off ? "Switch on" : "Switch off";
      pinOff.setAttribute("aria-pressed", String(off));
    }
    matter.textContent = scanned ? "Hide what each head shifts" : "Which heads matter for my sentence?";
    positions.setAttribute("aria-pressed", String(!state.positions));
    positions.textContent = `Positions: ${state.positions ? "off" : "on"}`;
    causal.setAttribute("aria-pressed", String(!state.causal));
    causal.textContent = `Causal mask: ${state.causal ? "off" : "on"}`;
    reset.disabled = !switches && !state.prefix.length && state.method === "greedy";
    for (const tab of views.children) tab.setAttribute("aria-pressed", String(tab.dataset.view === state.view));
    chips.querySelectorAll("button").forEach((chip) => chip.setAttribute("aria-pressed", String(chip.dataset.text === text)));
    const open = panels[state.tab] ? state.tab : null;
    for (const tab of tabs.children) tab.setAttribute("aria-selected", String(tab.id === `live-tab-${open}`));
    panel.hidden = !open;
    if (!open) return;
    const [, part] = panels[open];
    panel.setAttribute("aria-labelledby", `live-tab-${open}`);
    if (panel.firstChild !== part.element) panel.replaceChildren(part.element);
    Promise.resolve(part.draw({ state, text, result, switches, at: atNow(), ...stage })).catch((error) => { if (error.name !== "Superseded") say(error.message); });
  }

  function describe() {
    const info = model.info;
    about.replaceChildren(info ? `${model.own ? "Your model" : "The model of this book"}: ${info.parameters.toLocaleString("en")} numbers, ${megabytes(info.bytes)}, running in this page. Nothing you type leaves it. `
      : `The sentences above are recorded. Typing loads the model of this book (${megabytes(SIZE)}), which then runs in this page. Nothing you type leaves it. `);
    if (lines) about.append(lines.cloneNode(true));
  }
  const lines = root.dataset.lines ? h("span", {}, `The whole Transformer is ${root.dataset.lines} lines of JavaScript.`) : null;

  // -- the story drives the tool through this
  async function apply(patch, plan = null) {
    const next = { ...patch };
    for (const name of ["heads", "blocks"]) if (next[name]) next[name] = new Set(next[name]);
    const forced = next.force;
    delete next.force;
    if (plan && plan !== null && forced) {
      await load();
      const found = result.steps[forced[0]].top.find((bet) => bet.piece === forced[1]) ?? result.steps[forced[0]].top[1];
      next.prefix = [...result.target.ids.slice(0, forced[0]), found.id];
    }
    set(next);
    await settled();
    if (model.state === "failed" && (switchesOf(state) || state.prefix.length || state.method !== "greedy")) throw model.error;
    const greedy = plan ? await remembered(state.text.trim(), { method: "greedy", beamSize: state.beamSize, lengthPenalty: state.penalty ?? undefined }) : null;
    return { now: result, before, greedy };
  }
  const settled = () => (busy ? new Promise((resolve) => { waiting.push(resolve); }) : Promise.resolve());

  // -- begin: the recorded sentences are there at once
  input.value = state.text;
  describe();
  try {
    const examples = await model.examples();
    chips.replaceChildren(...examples.map((example) => h("button", { type: "button", class: "live-chip", lang: "de", "data-text": example.sentence, "aria-pressed": "false",
      title: example.inDomain ? "" : "Unlike anything that it has read", onclick: () => { input.value = example.sentence; grow(); set({ text: example.sentence, prefix: [], at: null, from: null }); } },
      example.sentence, example.inDomain ? null : h("small", { lang: "en" }, "no caption"))));
  } catch { chips.textContent = "The recorded examples could not be loaded."; }
  grow();
  await compute();
  if (state.story) story.go(state.story, false);
  return { set, state };
}
