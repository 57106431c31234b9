// Type a word and watch it being merged, pair by pair, by the tokenizer of the real model.
import { h } from "./shared.js";

const START = 48;  // bytes before the header of the model's file, see model_file.js

export async function mount(root) {
  const input = h("input", { class: "live-input", lang: "de", value: "Schneemann", maxlength: 40, autocomplete: "off", spellcheck: "false", "aria-label": "A word, German or English" });
  const step = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Merges done", oninput: paint });
  const rows = h("ol", { class: "live-merges" });
  const says = h("p", { class: "live-says", role: "status", "aria-live": "polite" });
  const word = (text) => h("button", { type: "button", class: "live-chip", lang: "de", onclick: () => { input.value = text; change(); } }, text);
  const box = h("div", { class: "live-box live" }, h("div", { class: "live-ask-row" }, input), h("div", { class: "live-examples" }, ["Hund", "Schneemann", "Quokka", "Fahrradhelm", "skateboarding", "Zinsen"].map(word)),
    h("div", { class: "live-knobs live-open" }, h("label", {}, h("span", {}, "Merges done"), step)), rows, says);
  const still = root.querySelector(".live-still");
  const example = still?.querySelector("dl");   // the first word's merges, until the tokenizer is here
  if (example) rows.before(example);
  if (still) still.replaceWith(box); else root.prepend(box);
  let tokenizer = null, history = [], loading = null;
  input.addEventListener("input", change);
  box.addEventListener("focusin", () => { loading ??= load(); });
  says.textContent = "Type a word, or choose one: the model's tokenizer is loaded then.";

  async function load() {
    says.textContent = "Loading the tokenizer …";
    try {
      const answer = await fetch(new URL("multi30k-de-en.bin", import.meta.url));
      if (!answer.ok) throw new Error(`the file of the model is missing (${answer.status})`);
      const buffer = await answer.arrayBuffer(), length = new DataView(buffer, 8).getUint32(4, true);
      const { Tokenizer } = await import("./tokenizer.js");
      tokenizer = new Tokenizer(JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, START, length))).tokenizer);
      example?.remove();
      change();
    } catch (error) { says.textContent = `The tokenizer could not be loaded: ${error.message}.`; }
  }

  // encodeWord of tokenizer.js, with every step kept: [{pieces, joined, rank}]
  function merges(text) {
    let ids = [...text].map((character) => tokenizer.ids.get(character) ?? 3);
    const kept = [{ ids, joined: -1, rank: null }];
    for (;;) {
      let [best, at, merged] = [Infinity, -1, -1];
      for (let i = 0; i + 1 < ids.length; i++) {
        const [rank, id] = tokenizer.ranks.get(`${ids[i]} ${ids[i + 1]}`) ?? [Infinity, -1];
        if (rank < best) [best, at, merged] = [rank, i, id];
      }
      if (at < 0) return kept;
      ids = [...ids.slice(0, at), merged, ...ids.slice(at + 2)];
      kept.push({ ids, joined: at, rank: best / 2 });
    }
  }
  function change() {
    if (!tokenizer) { loading ??= load(); return; }
    const text = tokenizer.words(input.value.trim())[0];
    if (!text) { says.textContent = "Type a word."; rows.replaceChildren(); return; }
    history = merges(text);
    step.max = history.length - 1;
    step.value = history.length - 1;
    paint();
  }
  function paint() {
    const done = Number(step.value);
    rows.replaceChildren(...history.slice(0, done + 1).map(({ ids, joined, rank }, i) => h("li", { class: i === done ? "live-this" : "" },
      h("span", { class: "live-row-pieces" }, ids.map((id, at) => h("span", { class: "live-token" + (at === joined ? " live-new" : "") }, tokenizer.tokens[id].replace("▁", "⎵")))),
      h("small", {}, rank === null ? "letters" : `merge ${Math.round(rank + 1).toLocaleString("en")}`))));
    const last = history.at(-1).ids;
    says.textContent = done < history.length - 1 ? `${done} of ${history.length - 1} merges done.`
      : last.includes(3) ? "It holds a character that the training text never did: <unk>." : `${last.length === 1 ? "One piece" : `${last.length} pieces`} after ${history.length - 1} merges. A small number is a pair that was learned early: it is frequent.`;
  }
}
