// Type a word and watch its letters merge in place, pair by pair, by the tokenizer of the real model.
import { h, calm } from "./shared.js";

const START = 48;  // bytes before the header of the model's file, see model_file.js

export async function mount(root) {
  const input = h("input", { class: "live-input", lang: "de", value: "Schneemann", maxlength: 40, autocomplete: "off", spellcheck: "false", "aria-label": "A word, German or English" });
  const step = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Merges done", oninput: () => { stop(); paint(); } });
  const rows = h("ol", { class: "live-merges" });   // one line, which changes in place
  const says = h("p", { class: "live-says", role: "status", "aria-live": "polite" });
  const word = (text) => h("button", { type: "button", class: "live-chip", lang: "de", onclick: () => { stop(); input.value = text; change(); } }, text);
  const play = h("button", { type: "button", class: "live-button", onclick: () => (timer ? stop() : start()) }, "Play");
  const box = h("div", { class: "live-box live" }, h("div", { class: "live-ask-row" }, input), h("div", { class: "live-examples" }, ["Hund", "Schneemann", "Quokka", "Fahrradhelm", "skateboarding", "Zinsen"].map(word)),
    rows, h("div", { class: "live-merges-run" }, play, h("label", {}, h("span", {}, "Merges done"), step)), says);
  const still = root.querySelector(".live-still");
  // The first word's merges stand in the still picture, a line for each: they serve until the tokenizer is here.
  const told = [...still?.querySelectorAll("dd") ?? []].map((line) => line.textContent.trim().split(" "));
  const numbers = [...still?.querySelectorAll("dt") ?? []].map((name) => Number(name.textContent.replace(/\D/g, "")) - 1);
  if (still) still.replaceWith(box); else root.prepend(box);
  let tokenizer = null, history = [], loading = null, timer = null;
  input.addEventListener("input", () => { stop(); change(); });
  input.addEventListener("focus", () => { loading ??= load(); });
  if (told.length) take(told.map((pieces, i) => ({ pieces, rank: i ? numbers[i] : null, joined: i ? told[i - 1].findIndex((piece, at) => piece !== pieces[at]) : -1 })));
  else says.textContent = "Type a word, or choose one: that loads the model's tokenizer.";

  async function load() {
    says.textContent = "Loading the tokenizer …";
    try {
      const answer = await fetch(new URL("multi30k-de-en.bin", import.meta.url));
      if (!answer.ok) throw new Error(`the model’s file is missing (${answer.status})`);
      const buffer = await answer.arrayBuffer(), length = new DataView(buffer, 8).getUint32(4, true);
      const { Tokenizer } = await import("./tokenizer.js");
      tokenizer = new Tokenizer(JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, START, length))).tokenizer);
      change();
    } catch (error) { says.textContent = `The tokenizer could not be loaded: ${error.message}.`; }
  }

  // encodeWord of tokenizer.js, with every step kept: [{pieces, joined, rank, unknown}]
  function merges(text) {
    let ids = [...text].map((character) => tokenizer.ids.get(character) ?? 3);
    const state = (joined, rank) => ({ pieces: ids.map((id) => tokenizer.tokens[id].replace("▁", "⎵")), joined, rank, unknown: ids.includes(3) });
    const kept = [state(-1, null)];
    for (;;) {
      let [best, at, merged] = [Infinity, -1, -1];
      for (let i = 0; i + 1 < ids.length; i++) {
        const [rank, id] = tokenizer.ranks.get(`${ids[i]} ${ids[i + 1]}`) ?? [Infinity, -1];
        if (rank < best) [best, at, merged] = [rank, i, id];
      }
      if (at < 0) return kept;
      ids = [...ids.slice(0, at), merged, ...ids.slice(at + 2)];
      kept.push(state(at, best / 2));
    }
  }
  function change() {
    if (!tokenizer) { loading ??= load(); return; }
    const text = tokenizer.words(input.value.trim())[0];
    if (!text) { history = []; says.textContent = "Type a word."; rows.replaceChildren(); return; }
    take(merges(text));
  }
  function take(states) {
    history = states;
    step.max = history.length - 1;
    step.value = history.length - 1;
    paint();
  }
  function paint() {
    if (!history.length) return;
    const done = Number(step.value), all = history.length - 1, { pieces, joined, rank, unknown } = history[done], next = history[done + 1]?.joined;
    rows.replaceChildren(h("li", {},
      h("span", { class: "live-row-pieces" }, pieces.map((piece, at) => h("span", { class: "live-token" + (at === joined ? " live-new" : "") + (next !== undefined && (at === next || at === next + 1) ? " live-next" : "") }, piece))),
      h("small", {}, rank === null ? "its letters" : ["merge ", h("b", {}, Math.round(rank + 1).toLocaleString("en")), ` made ${pieces[joined]}`],
        next !== undefined ? `; next: ${pieces[next]} + ${pieces[next + 1]}` : "")));
    step.setAttribute("aria-valuetext", `${done} of ${all} merges: ${pieces.join(" ")}`);
    says.textContent = done < all ? `${done} of ${all} merges done.`
      : unknown ? "It contains a character that isn't in the training text: <unk>." : `${pieces.length === 1 ? "One piece" : `${pieces.length} pieces`} after ${all === 1 ? "one merge" : `${all} merges`}. A merge with a small number was learned early, because its pair is frequent.`;
  }
  function to(done) {
    step.value = done;
    paint();
    if (timer && done >= history.length - 1) stop();
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }
  async function start() {
    if (!history.length) await (loading ??= load());
    if (history.length < 2) return;
    const done = Number(step.value), from = done === history.length - 1 ? -1 : done;
    to(from + 1);
    if (calm()) return;   // no motion: one merge for each press
    play.textContent = "Stop";
    timer = setInterval(() => to(Number(step.value) + 1), 700);
  }
}
