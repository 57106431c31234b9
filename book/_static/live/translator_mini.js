// The translator in small: input, output, the lines between them. It stands on the cover and in the tour.
import { h, model, percent, letters, startsWord, surprise, weightsOf, megabytes } from "./shared.js";
import { makeArcs } from "./arcs.js";

export async function mount(root, { base }) {
  const examples = await model.examples();
  const still = root.querySelector(".live-still") ?? root;   // in a figure with a caption, that stays
  const lang = { get src() { return model.src; }, get tgt() { return model.tgt; } };
  let text = root.dataset.text ?? examples[0].sentence, at = null, result = null, busy = false, again = false;
  const input = h("input", { class: "live-input", lang: "de", autocomplete: "off", spellcheck: "false", enterkeyhint: "done",
    "aria-label": "German sentence: type your own", maxlength: 300 });
  input.value = text;
  const output = h("p", { class: "live-result", role: "status", "aria-live": "polite" });
  const note = h("span", { class: "live-note" });
  const more = h("a", { class: "live-more", href: new URL("../../book/translator.html", base).href }, "Reach inside: the full translator");
  const arcs = makeArcs({ lang, onword: (position) => { at = position === at ? null : position; draw(); } });
  const chips = h("div", { class: "live-examples", role: "group", "aria-label": "Example sentences" }, examples.slice(0, 4).map((example) => chip(example.sentence)),
    h("button", { type: "button", class: "live-chip", onclick: () => { input.value = surprise(); change(); } }, "Surprise me"));
  const box = h("div", { class: "live-mini live" }, h("div", { class: "live-ask-row" }, input), chips, arcs.element, output, h("div", { class: "live-foot" }, note, more));
  still.replaceChildren(box);

  function chip(sentence) {
    return h("button", { type: "button", class: "live-chip", lang: "de", "data-text": sentence, onclick: () => { input.value = sentence; change(); } }, sentence);
  }
  input.addEventListener("focus", () => model.load().catch(() => {}));
  let typing = null;
  input.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(change, 40); });

  function change() { text = input.value; at = null; compute(); }
  async function compute() {
    if (busy) { again = true; return; }
    busy = true;
    do {
      again = false;
      const asked = text.trim();
      if (!asked) { note.textContent = "Type a German sentence, or choose one."; continue; }
      try {
        const answer = await model.translate(asked);
        result = answer;
        note.textContent = `Its bets have ${percent(result.confidence)} on average.`
          + (result.confidence < model.records?.usual ? " It has only read captions." : "");
        draw();
      } catch (error) {
        if (error.name !== "Superseded") note.textContent = model.state === "failed" ? `The model could not be loaded: ${error.message} The examples still work.` : error.message;
      }
    } while (again);
    busy = false;
  }
  function draw() {
    more.href = new URL("../../book/translator.html", base).href + (text === examples[0].sentence ? "" : `#${new URLSearchParams({ de: text })}`);
    output.lang = lang.tgt;
    output.textContent = result.target.pieces.filter((piece) => piece !== "<eos>").map((piece, i) => (startsWord(piece) && i ? " " : "") + letters(piece)).join("");
    // As on the cover: the second layer, without the ends.
    arcs.draw({ result, before: null, kind: "cross", weights: weightsOf(result, "cross", 1), at });
    chips.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.text === text)));
  }
  model.addEventListener("change", (event) => {
    if (model.state === "loading") note.textContent = `Loading the model: ${megabytes(event.loaded ?? 0)} of ${megabytes(event.total || 2.9e6)}`;
    else if (model.state === "failed") note.textContent = `The model could not be loaded: ${model.error.message} The examples still work.`;
  });
  await compute();
}
