// What all live figures share: making elements, naming things, and one model for the whole page.
// Until the model's weights are there, six recorded sentences answer in its place.

export const KINDS = ["encoder", "decoder", "cross"];
export const KIND_NAMES = { encoder: "reads", decoder: "writes", cross: "looks back" };
export const LANGUAGES = { de: "German", en: "English" };
export const languageName = (code) => LANGUAGES[code] ?? code;
export const explained = (kind) => {
  const [from, to] = [languageName(model.src), languageName(model.tgt)];
  return { encoder: `${from} looks at ${from} (encoder self-attention)`,
    decoder: `${to} looks at the ${to} before it (decoder self-attention)`,
    cross: `${to} looks at ${from} (cross-attention)` }[kind];
};
const FILES = { de: "multi30k-de-en.bin", en: "multi30k-en-de.bin" };  // by the language that they read
const BASE = new URL("./", import.meta.url);

// What a reader does to a word: a screen that is touched has nothing to point with.
export const POINT = globalThis.matchMedia?.("(hover: none)").matches ? "Touch" : "Point at";

// h("button", {class: "chip", onclick: f, "aria-pressed": "true"}, "text", node, ...)
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  set(element, properties);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.flat());
  return element;
}

function set(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") element.style.cssText = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
}

export const percent = (p) => (p >= 0.9995 ? "100 %" : p < 0.0005 ? "0 %" : p < 0.01
  ? `${(100 * p).toFixed(1)} %` : `${Math.round(100 * p)} %`);
// "▁" marks where a word begins. On the page a gap does, since few fonts have the character.
export const letters = (piece) => piece.replaceAll("▁", "");
export const plain = (piece) => letters(piece) || "␣";
// The captions of the training data write "&" as "&amp;", and so does the model, at times without the ";": one sign.
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"' };
export function shownLetters(pieces) {
  const shown = pieces.map(letters);
  for (let i = 0; i + 1 < shown.length; i++) {
    if (shown[i] !== "&" || !Object.hasOwn(ENTITIES, shown[i + 1])) continue;
    shown.splice(i, 2, ENTITIES[shown[i + 1]], "");
    if (shown[i + 2] === ";") shown[i + 2] = "";
  }
  return shown;
}
export const unescaped = (text) => text.replace(/&\s?(amp|lt|gt|quot)\b(\s?;)?/g, (_, name) => ENTITIES[name]);
// What was pasted from a table or a page: its tabs, line breaks and double spaces are spaces.
export const spaced = (text) => text.replace(/\s+/g, " ");
export const startsWord = (piece) => piece.startsWith("▁") || piece === "<eos>";
export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
// Layers and heads are counted from 0, as in the code.
export const headName = (name) => name.split(".").slice(1).join(".");

// The word that a piece belongs to, for sentences about it: "Qu|iet|ka" -> "Quietka".
export function wordAt(pieces, position) {
  let first = position, last = position;
  while (first > 0 && !startsWord(pieces[first]) && /[\p{L}▁]/u.test(pieces[first])) first--;
  while (last + 1 < pieces.length && /^\p{L}/u.test(pieces[last + 1])) last++;
  return pieces.slice(first, last + 1).map(plain).join("");
}

// Attention of one head as (rows, columns) numbers, or the mean of a layer's heads.
export function weightsOf(result, kind, layer, head = null) {
  const heads = result.attention[kind][Math.min(layer, result.attention[kind].length - 1)];
  if (head !== null) return heads[head];
  const mean = new Float32Array(heads[0].length);
  for (const weights of heads) weights.forEach((w, i) => { mean[i] += w / heads.length; });
  return mean;
}

// Rows and columns of a head's map: which words ask, which are asked.
export function sides(result, kind) {
  const source = result.source.pieces;
  // At position i the decoder has read <bos> and the i pieces before: it *writes* piece i.
  const target = result.target.pieces;
  if (kind === "encoder") return { queries: source, keys: source };
  if (kind === "cross") return { queries: target, keys: source };
  return { queries: target, keys: ["<bos>", ...target.slice(0, -1)] };
}

// A list in which one element is a tab stop and the arrows move: columns > 1 makes it a grid.
export function roving(container, selector, columns = 1) {
  container.addEventListener("keydown", (event) => {
    const items = [...container.querySelectorAll(selector)];
    const at = items.indexOf(event.target.closest(selector));
    if (at < 0) return;
    const across = columns > 1 ? columns : 1;
    const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
    const to = event.key === "Home" ? 0 : event.key === "End" ? items.length - 1
      : move ? at + move : null;
    if (to === null) return;
    event.preventDefault();
    if (!items[to]) return;
    items.forEach((item) => { item.tabIndex = -1; });
    items[to].tabIndex = 0;
    items[to].focus();
  });
  container.addEventListener("focusin", (event) => {
    const item = event.target.closest(selector);
    if (!item) return;
    container.querySelectorAll(selector).forEach((other) => { other.tabIndex = other === item ? 0 : -1; });
  });
}

// What the reader has touched stays under the finger, whatever more stands above it afterwards:
// const stay = steady(box); ... const settle = stay(); draw(); settle();
export function steady(box) {
  let touched = null;
  box.style.overflowAnchor = "none";   // or the browser would do the same once more
  box.addEventListener("pointerdown", (event) => { touched = event.target.closest("button"); });
  box.addEventListener("keydown", () => { touched = null; });
  const top = () => (touched?.isConnected && touched.offsetParent ? touched.getBoundingClientRect().top : null);
  return () => {
    const before = top();
    return () => {
      const after = top();
      if (before !== null && after !== null && Math.abs(after - before) >= 1) scrollBy({ top: after - before, behavior: "instant" });
    };
  };
}

const decode = (base64) => Float32Array.from(atob(base64), (byte) => byte.charCodeAt(0) / 255);

// One model for all figures of a page: recorded sentences first, the weights once they are asked for.
class Model extends EventTarget {
  state = "recorded";   // "recorded", "loading", "ready", "failed"
  info = null;
  error = null;
  #live = null;
  #loading = null;
  #records = null;
  #queue = Promise.resolve();
  #opposites = {};   // by the language that they read

  get layers() { return this.info?.config.n_decoder_layers ?? this.records?.layers ?? 4; }
  get heads() { return this.info?.config.n_heads ?? this.records?.heads ?? 4; }
  get src() { return this.info?.src ?? this.wanted; }
  get tgt() { return this.info?.tgt ?? (this.wanted === "de" ? "en" : "de"); }
  wanted = "de";   // the language that the next model of ours reads
  // How sure it is of 95 captions in 100; of a reader's own model nobody knows.
  get usual() { return this.own ? 0 : (this.src === "en" ? this.records?.english : this.records)?.usual ?? 0; }
  get dk() { return this.info ? this.info.config.d_model / this.info.config.n_heads : 32; }

  async examples() {
    this.#records ??= fetch(new URL("examples.json", BASE)).then((answer) => {
      if (!answer.ok) throw new Error(`examples.json: ${answer.status}`);
      return answer.json();
    });
    this.records ??= await this.#records;
    return this.records.examples;
  }

  #report(state, details = {}) {
    this.state = state;
    this.dispatchEvent(Object.assign(new Event("change"), details));
  }

  // The model that reads this language, in the place of the one that is there.
  use(src) {
    if (src === this.wanted && !this.own) return this.load();
    this.wanted = src;
    this.#loading = null;
    return this.load();
  }

  // Load the weights once: of this site, or of a file that the reader gives.
  load(file = null) {
    if (file || this.state === "failed") this.#loading = null;
    this.#loading ??= (async () => {
      const before = { live: this.#live, info: this.info, state: this.state };
      this.#report("loading", { loaded: 0, total: 0 });
      try {
        const { LiveModel } = await import("./client.js");
        const live = new LiveModel(file ?? new URL(FILES[this.wanted], BASE));
        this.info = await live.load(({ loaded, total }) => this.#report("loading", { loaded, total }));
        before.live?.terminate();
        this.#live = live;
        this.own = Boolean(file);
        this.error = null;
        this.#report("ready");
      } catch (error) {
        this.error = error;
        if (before.live) {   // the reader's file is no model, or the other direction didn't come: keep the one that is there
          Object.assign(this, { info: before.info, wanted: before.info.src });
          this.#loading = Promise.resolve();
          this.#report("ready");
        } else {
          this.#report("failed");
        }
        throw error;
      }
    })();
    return this.#loading;
  }

  // Recorded, if it may be; else from the weights, which are fetched when they are missing.
  async translate(text, options = {}) {
    const simple = !options.switches && !options.prefix?.length && (options.method ?? "greedy") === "greedy"
      && !options.tree;
    if (simple && this.state !== "ready" && this.wanted === "de") {
      const examples = await this.examples().catch(() => []);
      const record = [...examples, ...this.records?.pages ?? []].find((one) => one.sentence === text.trim());
      if (record) return unpack(record);
    }
    return this.ask("translate", text, { keep: 12, attention: true, ...options });
  }

  // The shipped model of the other direction, beside the one that is there.
  async opposite(onProgress) {
    const { tgt } = this;
    if (!FILES[tgt]) throw new Error(`There is no model here that reads ${languageName(tgt)}.`);
    const { LiveModel } = await import("./client.js");
    this.#opposites[tgt] ??= (async () => {
      const live = new LiveModel(new URL(FILES[tgt], BASE));
      await live.load(onProgress);
      return live;
    })();
    this.#opposites[tgt].catch(() => { delete this.#opposites[tgt]; });
    return this.#opposites[tgt];
  }

  // Any question of LiveModel; one after the other, since a newer of a kind cancels an older.
  async ask(what, ...given) {
    await this.load();
    const answer = this.#queue.then(() => this.#live[what](...given));
    this.#queue = answer.catch(() => {});
    return answer;
  }
}

function unpack(record) {
  const attention = {};
  for (const kind of KINDS) {
    attention[kind] = record.attention[kind].map((layer) => layer.map(
      (head) => (typeof head === "string" ? decode(head) : head)));
  }
  return { ...record, attention, recorded: true };
}

export const model = new Model();

// German sentences that are put together at random: every one is a caption that nobody has written.
const LOT = [
  [["Ein Mann", "Eine Frau", "Ein Mädchen", "Ein kleiner Junge", "Ein brauner Hund", "Eine alte Dame",
    "Ein Clown", "Ein Polizist"],
   ["schläft", "tanzt", "wartet", "sitzt", "lacht", "singt"]],
  [["Zwei Hunde", "Drei Kinder", "Einige Männer", "Zwei Frauen in roten Kleidern", "Viele Leute"],
   ["spielen", "tanzen", "warten", "sitzen", "lachen", "rennen"]],
];
const PLACES = ["am Strand", "im Schnee", "vor einem großen Haus", "auf einer Bank", "auf der Straße",
  "im Park", "neben einem Fahrrad", "auf einem Berg", "in einer Küche", "vor vielen Leuten"];
export function surprise() {
  const pick = (list) => list[Math.floor(Math.random() * list.length)];
  const [who, does] = pick(LOT);
  return `${pick(who)} ${pick(does)} ${pick(PLACES)}.`;
}

// The places in b that are not in the longest common row of pieces of a and b. When most of it is
// new, none are told apart: then it's a different sentence.
export function newPlaces(a, b) {
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
    length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  }
  const fresh = new Set(b.keys());
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) { fresh.delete(j); i++; j++; } else if (length[i + 1][j] >= length[i][j + 1]) i++; else j++;
  }
  return fresh.size > 0.6 * b.length ? new Set() : fresh;
}

// A piece as it stands in a list: one that continues a word has a hyphen before it.
export const listed = (piece) => (/^\p{L}/u.test(piece) ? "-" : "") + plain(piece);

// Where the first difference between two outputs stands, or -1 if there is none.
export function firstDifference(a, b) {
  const length = Math.max(a.target.ids.length, b.target.ids.length);
  for (let i = 0; i < length; i++) if (a.target.ids[i] !== b.target.ids[i]) return i;
  return -1;
}

// What a change did to the bets, in numbers: the written piece whose probability moved most.
export function difference(before, after) {
  const split = firstDifference(before, after);
  const last = split < 0 ? before.steps.length : split + 1;
  let most = null;
  for (let i = 0; i < Math.min(last, before.steps.length, after.steps.length); i++) {
    const id = before.steps[i].chosen;
    const was = before.steps[i].top.find((bet) => bet.id === id)?.p ?? 0;
    const found = after.steps[i].top.find((bet) => bet.id === id);
    const is = found?.p ?? 0;
    if (!most || Math.abs(is - was) > Math.abs(most.is - most.was)) {
      most = { position: i, was, is, unseen: !found, word: plain(before.target.pieces[i]) };
    }
  }
  return { ...most, split, same: split < 0 };
}
