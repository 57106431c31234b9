// The translator page: its state, its address, its layout. The parts draw; this file decides.
import { h, model, POINT, KINDS, KIND_NAMES, headName, megabytes, percent, plain, shownLetters, unescaped, spaced, languageName, startsWord,
  weightsOf, difference, surprise, roving, steady, newPlaces } from "./shared.js";
import { advise, loadWords, neverRead, sentences } from "./input.js";
import { makeArcs } from "./arcs.js";
import { makeHeads } from "./heads.js";
import { makeBets } from "./bets.js";
import { makeBeamTree } from "./beam_tree.js";
import { makeInsideHead, makeDepth, makeTable } from "./inside_head.js";
import { makeRuin } from "./ruin.js";
import { makeAskBack } from "./ask_back.js";
import { makeStory } from "./story.js";

const FIRST = "Zwei Hunde spielen im Schnee.";
const SIZE = 2.9e6;  // bytes of the shipped file, told before it is loaded
const FIRST_IN = { de: FIRST, en: "Two dogs play in the snow." };
const ENGLISH = ["Two dogs play in the snow.", "A woman in a red hat is reading a book.", "A boy in a blue T-shirt jumps into the water.",
  "An old man is sleeping on a bench in the park.", "A quokka rides a unicycle.", "Yesterday I lost my keys."];
const fresh = () => ({ src: "de", text: FIRST, heads: new Set(), blocks: new Set(), positions: false, causal: false,
  pin: null, at: null, from: null, prefix: [], method: "greedy", beamSize: 5, penalty: null,
  temperature: 1, topK: 0, topP: 1, seed: 1, weight: 0.1, tab: null, story: 0, view: "look" });

// ---- the address: everything that is not as at first stands behind "#" -------------------

export function write(state) {
  const address = new URLSearchParams(), plainState = fresh();
  const put = (name, value, usual) => { if (value !== usual && value !== "" && value !== null) address.set(name, value); };
  put(state.src, state.text, FIRST_IN[state.src]);
  if (state.src !== "de" && !address.has(state.src)) address.set(state.src, state.text);   // the direction itself
  put("off", [...state.blocks, ...state.heads].join(","), "");
  put("without", ["positions", "causal"].filter((name) => state[name]).join(","), "");
  for (const [short, name] of SHORT) put(short, state[name], plainState[name]);
  put("force", state.prefix.join("."), "");
  return address.toString();
}

const SHORT = [["pin", "pin"], ["at", "at"], ["from", "from"], ["by", "method"], ["beam", "beamSize"], ["lp", "penalty"],
  ["t", "temperature"], ["k", "topK"], ["p", "topP"], ["seed", "seed"], ["back", "weight"], ["tab", "tab"], ["step", "story"]];

export function read(hash) {
  const state = fresh(), address = new URLSearchParams(hash.replace(/^#/, ""));
  for (const src of ["de", "en"]) if (address.has(src)) Object.assign(state, { src, text: address.get(src).slice(0, 2000) });
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
  state.weight = Math.max(0, Math.min(1, state.weight));
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
  const state = read(location.hash || location.search.slice(1)), examples = await model.examples().catch(() => []);
  let result = null, before = null, scanned = null, peeked = null, busy = false, again = false, dirty = null, waiting = [];
  let words = null, advice = null, apart = null;
  const lang = { get src() { return model.src; }, get tgt() { return model.tgt; } };
  const cache = new Map();

  // -- parts
  const input = h("textarea", { class: "live-input", rows: 1, lang: "de", spellcheck: "false", autocapitalize: "sentences", autocomplete: "off",
    enterkeyhint: "done", id: "live-typed" });
  const labels = { input: h("label", { class: "live-side-name", for: "live-typed" }), output: h("span", { class: "live-side-name" }) };
  const turn = h("button", { type: "button", class: "live-button live-turn", onclick: () => direction(state.src === "de" ? "en" : "de") });
  const status = h("p", { class: "live-status" });
  const progress = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Loading the model" });
  const retry = h("button", { type: "button", class: "live-button", hidden: true, onclick: () => load().then(compute).catch(() => {}) }, "Try again");
  const spoken = h("p", { class: "live-says", role: "status", "aria-live": "polite" });
  const aid = h("button", { type: "button", class: "live-button live-aid", hidden: true, onclick: help });
  const output = h("p", { class: "live-result" });
  const each = h("ol", { class: "live-apart", hidden: true });
  const how = h("p", { class: "live-how" });
  const was = h("p", { class: "live-was" });
  const chips = h("div", { class: "live-examples", role: "group", "aria-label": "Example sentences" });
  const caption = h("p", { class: "live-caption" });
  const arcs = makeArcs({ lang, onword: (at) => set({ at }), onsource: (from) => set({ from: state.from === from ? null : from }) });
  const heads = makeHeads({ set, toggle, peek: (name) => { peeked = name; drawStage(); } });
  const bets = makeBets({ set, lang, undo: "Reset", force: (at, bet) => set({ prefix: [...result.target.ids.slice(0, at), bet.id], at: Math.min(at + 1, 200), forced: plain(bet.piece), method: state.method === "beam" ? "greedy" : state.method }) });
  const blind = h("button", { type: "button", class: "live-button live-blind", "aria-pressed": "false", title: "Switch off every head that looks back at the input",
    onclick: () => toggle("blocks", "cross") }, "Blind it");
  const share = h("button", { type: "button", class: "live-button", onclick: copyLink }, "Copy link");
  const chapterAddress = (name) => new URL(`../../book/${name}.html`, base).href;
  const panels = {
    beam: ["Beam tree", makeBeamTree({ ask, set, lang })],
    inside: ["Inside one head", makeInsideHead({ ask, lang })],
    depth: ["Depth", makeDepth({ ask, lang, set })],
    numbers: ["Numbers", makeTable({ lang })],
    back: ["Ask back", makeAskBack({ ask, set, lang, chapterAddress })],
    ruin: ["Ruin it", makeRuin({ set, ask, lang })],
  };
  const story = makeStory({ apply, asking: (on) => tool.classList.toggle("live-asking", on), reveal, text: () => state.text, remember: (step) => { state.story = step; address(); }, focusInput: () => input.focus(),
    chapterAddress });

  const button = (text, action, properties = {}) => h("button", { type: "button", class: "live-button", onclick: action, ...properties }, text);
  const pinOff = button("Switch off", () => state.pin && toggle("heads", state.pin), { "aria-pressed": "false" });
  const only = button("Only this", onlyThis);
  const unpin = button("Unpin", () => { const name = state.pin; set({ pin: null }); heads.focus(name); });
  const pinned = h("div", { class: "live-pinned", hidden: true }, h("strong", {}), pinOff, only, unpin);
  const matter = button("Which heads matter for my sentence?", scan);
  const positions = button("Positions", () => set({ positions: !state.positions }), { "aria-pressed": "true", title: "Take the positions away: the model no longer knows the order" });
  const causal = button("Causal mask", () => set({ causal: !state.causal }), { "aria-pressed": "true", title: "Let every word look at later ones, where there are any" });
  const reset = button("Reset", () => set({ heads: new Set(), blocks: new Set(), positions: false, causal: false, prefix: [], method: "greedy", temperature: 1, topK: 0, topP: 1 }), { class: "live-button live-reset" });
  const picture = button("Save a picture", () => card().catch((error) => say(error.message)));
  const tabs = h("div", { class: "live-tabs", role: "tablist", "aria-label": "More of the machine" },
    Object.entries(panels).map(([name, [title]], i) => h("button", { type: "button", role: "tab", id: `live-tab-${name}`, "aria-controls": "live-panel", "aria-selected": "false",
      tabindex: i ? -1 : 0, class: "live-tab", onclick: () => set({ tab: state.tab === name ? null : name }) }, title)));
  roving(tabs, ".live-tab");
  const panel = h("div", { class: "live-panel", id: "live-panel", role: "tabpanel", hidden: true });
  const views = h("div", { class: "live-views", role: "group", "aria-label": "Parts of the page" }, [["look", "Look"], ["heads", "Heads"], ["bets", "Next piece"], ["beam", "More"]].map(([name, title]) =>
    h("button", { type: "button", class: "live-tab", "data-view": name, "aria-pressed": "false", onclick: () => { set({ view: name, tab: name === "beam" ? state.tab ?? "beam" : state.tab }); } }, title)));
  const file = h("input", { type: "file", accept: ".bin", class: "live-file", id: "live-own", onchange: () => file.files[0] && own(file.files[0]) });
  const about = h("p", { class: "live-note live-about" });

  const tool = h("div", { class: "live-translator live", "data-view": "look" },
    story.element,
    h("div", { class: "live-top" }, h("div", { class: "live-typed" }, labels.input, input), h("div", { class: "live-typed" }, labels.output, h("div", { class: "live-written-line" }, output, was)), each),
    h("div", { class: "live-actions" }, h("div", {}, blind, story.start), h("div", { class: "live-keep" }, reset, share, picture)),
    chips,
    h("div", { class: "live-line-row" }, spoken, aid, status, progress, retry),
    how,
    views,
    h("div", { class: "live-main" },
      h("div", { class: "live-stage" }, arcs.element, caption),
        h("div", { class: "live-heads-part" }, h("div", { class: "live-bar-row" }, pinned, h("div", { class: "live-common" }, matter, h("span", { class: "live-toggles" }, positions, causal))), heads.element,
          h("p", { class: "live-note live-hint" }, "Each row is a layer and each square a head, counted from 0 as in the code. In a square, each row is a query word and each column a key word. Point to preview, click to pin, ", h("kbd", {}, "x"), " to switch off.")),
      h("div", { class: "live-right" }, bets.element)),
    h("div", { class: "live-lower" }, tabs, panel),
    h("div", { class: "live-drop" }, turn, h("label", { for: "live-own", class: "live-button" }, "Run a model of your own"), file,
      h("span", { class: "live-note" }, "Choose the file that your notebook exported, or drop it anywhere on this page. It stays in your browser.")),
    about);
  const stay = steady(tool);

  // -- events
  let typing = null;
  input.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => set({ text: spaced(input.value), prefix: [], at: null, from: null }), 40); grow(); });
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); clearTimeout(typing); set({ text: spaced(input.value), prefix: [] }); } });
  input.addEventListener("focus", () => { load().catch(() => {}); loadWords().then((found) => { words = found; }).catch(() => {}); });
  tool.addEventListener("keydown", (event) => { if (event.key === "Escape" && state.pin) set({ pin: null }); });
  const grow = () => { input.style.height = "auto"; input.style.height = `${input.scrollHeight + 4}px`; };
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
      label();
    } else {
      status.textContent = "";
      if (!model.own) state.src = model.src;
      label();
      describe();
    }
  });

  function load() { return model.load(); }
  async function own(chosen) {
    try {
      await model.load(chosen);
      cache.clear();
      label();
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
    changed(keys.every((key) => ["pin", "at", "from", "tab", "view", "story", "weight"].includes(key)));
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
    story.typed(state.text);
    if (!text) { nothing(`Type a ${languageName(state.src)} sentence, or choose one of the examples.`); return; }
    if (!model.own && state.src !== model.src) await model.use(state.src);
    const recorded = state.src === "de" && state.method === "greedy" && !switchesOf(state) && !state.prefix.length && examples.some((example) => example.sentence === text);
    if (!recorded) await load();
    tool.dataset.unknown = "";
    advice = null;
    if (model.state === "ready") {
      const { unknown, tooLong, ids } = await model.ask("tokenize", text);
      tool.dataset.unknown = unknown.join("");
      if (!model.own) {
        words ??= await loadWords().catch(() => null);
        if (words) advice = advise(text, words, model.src);
      }
      if (tooLong) {
        const longest = model.info.config.max_len, parts = sentences(text).length;
        nothing(`This text has ${ids.length} pieces, and the model reads at most ${longest}. ${parts > 1 ? "Have its sentences translated one by one." : "Shorten it."}`);
        if (parts > 1) offer({ kind: "several", offer: "Translate them one by one" });
        return;
      }
    }
    tool.classList.remove("live-empty");
    if (apart && apart.text !== text) apart = null;
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
    offer(switches ? null : advice);
  }

  // No sentence that could be translated: the last one goes away.
  function nothing(why) {
    say(why);
    offer(null);
    each.hidden = true;
    output.replaceChildren();
    was.style.visibility = "hidden";
    how.textContent = "";
    tool.classList.add("live-empty");
  }

  // What the reader's sentence needs, at one click.
  function offer(what) {
    advice = what;
    aid.hidden = !what;
    aid.textContent = what?.offer ?? "";
  }
  function help() {
    const { kind, text } = advice;
    if (kind === "language") direction(state.src === "de" ? "en" : "de", state.text);
    else if (kind === "several") oneByOne();
    else type(text);
  }
  function type(text, more = {}) {
    input.value = text;
    grow();
    set({ text, prefix: [], at: null, from: null, ...more });
  }
  async function direction(src, text = FIRST_IN[src]) {
    aid.hidden = true;
    type(text, { src, heads: new Set(), blocks: new Set(), positions: false, causal: false, pin: null, method: "greedy" });
    await settled();
    input.focus();
  }
  async function oneByOne() {
    const whole = state.text, parts = sentences(whole);
    aid.disabled = true;
    try {
      await load();
      const found = [];
      for (const part of parts) found.push(await ask("translate", part, { attention: false, slot: "apart" }));
      const guessed = found.filter((one) => one.confidence < model.usual).length;
      apart = { text: whole };
      each.replaceChildren(...parts.map((part, i) => h("li", {}, h("button", { type: "button", class: "live-link", lang: lang.tgt, title: "Look at this one", onclick: () => type(part) }, unescaped(found[i].text)))));
      each.hidden = false;
      output.replaceChildren();
      how.textContent = "";
      tool.classList.add("live-empty");
      say(`${parts.length} sentences, each translated on its own${guessed ? `. It is guessing at ${guessed === parts.length ? "all of them" : `${guessed} of them`}: it has only read captions of photographs` : ""}. Choose one to look inside.`);
      offer(null);
    } catch (error) { say(error.message); }
    aid.disabled = false;
  }
  async function copyLink() {
    try { await navigator.clipboard.writeText(location.href); share.textContent = "Copied"; }
    catch { prompt("A link to what you see:", location.href); }
    setTimeout(() => { share.textContent = "Copy link"; }, 1600);
  }
  function label() {
    const [from, to] = [languageName(model.src), languageName(model.tgt)];
    input.lang = model.src;
    input.placeholder = `Type a ${from} sentence`;
    labels.input.textContent = from;
    labels.output.textContent = to;
    turn.hidden = Boolean(model.own);
    turn.textContent = `Translate ${to} to ${from} instead`;
    if (chips.dataset.src !== model.src) fillChips();
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
    } else if (error.name === "Empty") nothing(error.message);
    else say(error.message);
    waiting.splice(0).forEach((resolve) => resolve(error));
  }

  // What happened, in one sentence made of the numbers.
  function say(text) { if (spoken.textContent !== text) spoken.textContent = text; }
  function speak(text, asked, switches) {
    const names = nameOfSwitches(state);
    const met = words && !model.own ? neverRead(text, words, model.src) : null;
    if (tool.dataset.unknown) say(`The model has never seen ${[...tool.dataset.unknown].map((c) => `“${c}”`).join(", ")}: it reads <unk> there.`);
    else if (state.causal && !state.heads.size && !state.blocks.size && !state.positions) unmasked(text);
    else if (asked.forced) say(`With “${asked.forced}” forced it writes: ${result.text}`);
    else if (switches) {
      const d = difference(before, result);
      const shift = `“${d.word}” ${d.is < d.was ? "falls" : "rises"} from ${percent(d.was)} to ${d.unseen ? "almost nothing" : percent(d.is)}`;
      say(`Without ${names} ${d.same ? `the sentence stays the same; ${shift}.` : `it writes something else: ${shift}.`}`);
    } else if (advice) say(advice.says);
    else if (result.confidence < model.usual) {
      say(`It is guessing: ${met ? `${met[0].toLowerCase()}${met.slice(1, -1)}, and ` : ""}it has only read captions of photographs. On average, it was ${percent(result.confidence)} sure of each piece.`);
    } else say(`${met ? met + " " : ""}On average, it was ${percent(result.confidence)} sure of each piece.`);
  }

  // The causal mask does its work in training, where the whole sentence is there at once.
  async function unmasked(text) {
    const target = before.target.ids, loss = (layers) => -layers.at(-1).p.reduce((sum, p) => sum + Math.log(p), 0) / target.length;
    const stays = before.text === result.text;
    try {
      const masked = loss(await ask("depth", text, { targetIds: target, slot: "masked" }));
      const bare = loss(await ask("depth", text, { targetIds: target, switches: { causal: true }, slot: "bare" }));
      if (!state.causal) return;
      say(`While it writes, no later word exists, so the mask hides nothing from the newest word and the sentence ${stays ? "stays" : "changes only a little"}. `
        + `The mask's work is in training, where the whole sentence is there at once: reread like that, its loss is ${masked.toFixed(2)} per piece with the mask and ${bare.toFixed(2)} without. It has never learnt to read with later words in sight.`);
    } catch (error) { if (error.name !== "Superseded") say(error.message); }
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
      say(`Each of ${all.length} heads was switched off on its own: ${decide} of them changed the sentence. The largest shift is that of head ${most.name} of “${KIND_NAMES[most.kind]}”: ${(100 * most.shift).toFixed(1)} points per piece.`);
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
    const [from, to] = [languageName(lang.src), languageName(lang.tgt)];
    caption.textContent = silent ? "Switched off: it looks, but nothing of what it sees is passed on." : name ? `Head ${headName(name)}: ${kind === "encoder" ? `${from} looks at ${from}` : kind === "decoder" ? `each ${to} word looks at the words written before it` : `${to} looks at ${from}`}${peeked && peeked !== state.pin ? " (preview)" : ""}. ${arcs.element.dataset.note ?? ""}`
      : `Where each ${to} word looks in the ${from}: layer ${layer}, the mean of its heads. ${POINT} a word; choose one to see what else it could have been.`;
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
    const written = result.target.pieces.slice(0, result.target.pieces.at(-1) === "<eos>" ? -1 : undefined), spelt = shownLetters(written);
    each.hidden = true;
    output.replaceChildren(...written.flatMap((piece, i) => [startsWord(piece) && i ? " " : "", fresh.has(i) ? h("mark", {}, spelt[i]) : spelt[i]]));
    tellHow();
    if (!result.target.pieces.length || result.target.pieces[0] === "<eos>") output.textContent = "(it stops at once)";
    const other = before !== result && before.text !== result.text;
    was.style.visibility = other ? "visible" : "hidden";
    was.replaceChildren("before: ", h("span", { lang: lang.tgt }, unescaped(before.text)));
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
    blind.setAttribute("aria-pressed", String(state.blocks.has("cross")));
    blind.textContent = state.blocks.has("cross") ? "Let it see again" : "Blind it";
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
    Promise.resolve(part.draw({ state, text, result, before, switches, at: atNow(), ...stage })).catch((error) => { if (error.name !== "Superseded") say(error.message); });
  }

  // Which way of choosing made this sentence, beside the command line's.
  function tellHow() {
    const other = state.method === "greedy" ? "beam" : "greedy";
    how.replaceChildren(h("span", {}, state.method === "sample" ? "Each piece drawn at random, by its probability." : state.method === "beam" ? `Beam search, ${state.beamSize} ${state.beamSize === 1 ? "beginning" : "beginnings"} at once${state.beamSize === 5 ? ", as on the command line; the weights are rounded here, so a close call may fall the other way" : ""}.`
      : "Greedy: the likeliest piece each time, so that you can follow every choice. The command line uses a beam of 5."),
    h("button", { type: "button", class: "live-link", onclick: () => set({ method: other, prefix: [], ...(other === "beam" ? { beamSize: 5 } : {}) }) }, other === "beam" ? "Try beam 5" : "Back to greedy"));
  }

  function describe() {
    const info = model.info;
    about.replaceChildren(info ? `${model.own ? "Your model" : "The model of this book"}: ${info.parameters.toLocaleString("en")} numbers, ${megabytes(info.bytes)}, running in this page. Nothing you type leaves it. `
      : `The sentences above are recorded. Typing loads the model of this book (${megabytes(SIZE)}), which then runs in this page. Nothing you type leaves it. `);
    if (lines) about.append(lines.cloneNode(true));
  }
  const lines = root.dataset.lines ? h("span", {}, `The whole Transformer is ${root.dataset.lines} lines of JavaScript.`) : null;

  // -- the story drives the tool through this
  // For a projector (?present): nothing but the tool, in large letters; the arrows step the story.
  function present() {
    document.documentElement.classList.add("live-present");
    document.addEventListener("keydown", (event) => {
      if (event.target.closest("input, textarea, select, [role=tablist], .live-grid, .live-words") || event.ctrlKey || event.metaKey || event.altKey) return;
      const step = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      story.step(step);
    });
  }

  // The reader's own picture: both sentences and the lines between them, as a file to pass on.
  async function card() {
    const { drawCard } = await import("./card.js");
    const blob = await drawCard({ result, weights: weightsOf(result, "cross", layerShown()), switches: nameOfSwitches(state), lang: [languageName(lang.src), languageName(lang.tgt)] });
    const link = h("a", { href: URL.createObjectURL(blob), download: "attention-step-by-step.png" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    say("A picture of both sentences is in your downloads.");
  }

  // Bring a part of the tool to the reader's eyes.
  function reveal(css) {
    const part = tool.querySelector(css);
    part?.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }

  async function apply(patch, plan = null) {
    const next = { ...patch };
    if (next.text) { input.value = next.text; grow(); }
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
  function fillChips() {
    const src = model.src, list = src === "en" ? ENGLISH.map((sentence, i) => ({ sentence, inDomain: i < 5 })) : examples;
    chips.dataset.src = src;
    chips.replaceChildren(...list.map((example) => h("button", { type: "button", class: "live-chip", lang: src, "data-text": example.sentence, "aria-pressed": "false",
      title: example.inDomain ? "" : "Unlike anything that it has read", onclick: () => type(example.sentence) },
      example.sentence, example.inDomain ? null : h("small", { lang: "en" }, "not a caption"))),
    src === "de" ? h("button", { type: "button", class: "live-chip live-surprise", onclick: () => type(surprise()) }, "Surprise me") : "");
  }
  if (!model.info) model.wanted = state.src;
  input.value = state.text;
  label();
  describe();
  root.replaceChildren(tool);   // whole, in one frame: what stands below keeps its place
  grow();
  await compute();
  const presenting = new URLSearchParams(location.search).has("present");
  if (presenting) present();
  // A link that names a step and nothing else opens that step's own sentence; any other shows what was sent.
  if (state.story || presenting) story.go(state.story || 1, presenting || !write({ ...state, story: 0 }));
  return { set, state };
}
