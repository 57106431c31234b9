// The translator in small: input, output, the lines between them. It stands in the tour and in chapters,
// and, with data-cover, on the first page: there with a switch that blinds it.
import { h, model, percent, POINT, shownLetters, spaced, startsWord, surprise, weightsOf, megabytes } from "./shared.js";
import { makeArcs } from "./arcs.js";
import { advise, loadWords, neverRead } from "./input.js";

export async function mount(root, { base }) {
  const examples = await model.examples(), cover = "cover" in root.dataset;
  const still = root.querySelector(".live-still") ?? root;   // in a figure with a caption, that stays
  const lang = { get src() { return model.src; }, get tgt() { return model.tgt; } };
  let text = root.dataset.text ?? examples[0].sentence, at = null, result = null, busy = false, again = false, blind = false, words = null, advice = null;
  const full = (hash = "") => new URL("../../book/translator.html", base).href + hash;
  const input = h("input", { class: "live-input", id: cover ? "live-cover-input" : null, lang: "de", autocomplete: "off", spellcheck: "false", enterkeyhint: "done",
    "aria-label": cover ? null : "German sentence: type your own", maxlength: 300 });
  input.value = text;
  const output = h("p", { class: "live-result", role: "status", "aria-live": "polite" });
  const note = h("span", { class: "live-note" });
  const aid = h("button", { type: "button", class: "live-button live-aid", hidden: true, onclick: help });
  const more = h("a", { class: "live-more", href: full() }, cover ? "Look inside, or share it" : "Reach inside: the full translator");
  const switcher = h("button", { type: "button", class: "live-button live-blind", "aria-pressed": "false", onclick: () => { blind = !blind; compute(); } }, "Blind it");
  const arcs = makeArcs({ lang, onword: (position) => { at = position === at ? null : position; draw(); } });
  const chips = h("div", { class: "live-examples", role: "group", "aria-label": "Example sentences" }, examples.slice(0, cover ? 5 : 4).map((example) => chip(example.sentence)),
    h("button", { type: "button", class: "live-chip live-surprise", onclick: () => { input.value = surprise(); change(); } }, "Surprise me"));
  const asked = cover ? [h("label", { class: "live-cover-ask", for: "live-cover-input" }, "Type German, or pick a sentence:"), input] : [h("div", { class: "live-ask-row" }, input)];
  const answer = [cover ? h("div", { class: "live-cover-answer" }, output, switcher) : output, h("div", { class: "live-foot" }, note, aid, more)];
  // On a phone the picture is as high as the sentence is long: what a tap changes stands above it, in sight.
  const phone = matchMedia("(max-width: 600px)").matches;
  const box = h("div", { class: `live-mini live${cover ? " live-cover" : ""}` }, asked, chips, phone ? answer : arcs.element, phone ? arcs.element : answer);

  function chip(sentence) {
    return h("button", { type: "button", class: "live-chip", lang: "de", "data-text": sentence, onclick: () => { input.value = sentence; change(); } }, sentence);
  }
  input.addEventListener("focus", () => { model.load().catch(() => {}); loadWords().then((found) => { words = found; }).catch(() => {}); });
  let typing = null;
  input.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(change, 40); });

  function change() { text = spaced(input.value); at = null; compute(); }
  function help() {
    if (advice.kind === "spelling") { input.value = advice.text; change(); return; }
    location.href = full(`#${new URLSearchParams({ [advice.kind === "language" ? (model.src === "de" ? "en" : "de") : model.src]: text.trim() })}`);
  }
  async function compute() {
    if (busy) { again = true; return; }
    busy = true;
    do {
      again = false;
      const asked = text.trim();
      advice = null;
      if (!asked) { note.textContent = "Type a German sentence, or choose one."; continue; }
      try {
        const answer = await model.translate(asked, blind ? { switches: { blocks: ["cross"] } } : {});
        if (model.state === "ready" && !model.own) words ??= await loadWords().catch(() => null);
        advice = words && !blind ? advise(asked, words, model.src) : null;
        const met = words && !model.own ? neverRead(asked, words, model.src) : null;
        result = answer;
        note.textContent = blind ? `Blinded: none of its ${model.layers * model.heads} heads that look back at the German passes anything on. It still writes fluently, about something else. Try another sentence.`
          : advice ? advice.says
          : result.confidence < model.usual ? `It is guessing: ${met ? `${met[0].toLowerCase()}${met.slice(1, -1)}, and ` : ""}it has only read captions of photographs.`
          : met ?? (cover ? `${POINT} an English word to follow its lines: the more it looks at a German word, the thicker the line.` : `On average, it was ${percent(result.confidence)} sure of each piece.`);
        draw();
      } catch (error) {
        if (error.name !== "Superseded") note.textContent = model.state === "failed" ? `The model could not be loaded: ${error.message} The examples still work.` : error.message;
        if (blind && model.state === "failed") blind = false;
        switcher.setAttribute("aria-pressed", String(blind));
      }
      aid.hidden = !advice;
      aid.textContent = advice?.offer ?? "";
    } while (again);
    busy = false;
  }
  function draw() {
    const address = new URLSearchParams(text === examples[0].sentence ? {} : { de: text });
    if (blind) address.set("off", "cross");   // what was taken away here is away there, and in the link to a friend
    more.href = full(`${address}` && `#${address}`);
    output.lang = lang.tgt;
    const pieces = result.target.pieces.filter((piece) => piece !== "<eos>"), spelt = shownLetters(pieces);
    output.textContent = pieces.map((piece, i) => (startsWord(piece) && i ? " " : "") + spelt[i]).join("");
    switcher.setAttribute("aria-pressed", String(blind));
    switcher.textContent = blind ? "Let it see again" : "Blind it";
    box.classList.toggle("live-silent", blind);
    // The second layer of the decoder, the mean of its heads, as in the picture that stands here first.
    arcs.draw({ result, before: null, kind: "cross", weights: weightsOf(result, "cross", 1), at });
    chips.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.text === text)));
  }
  model.addEventListener("change", (event) => {
    if (model.state === "loading") note.textContent = `Loading the model: ${megabytes(event.loaded ?? 0)} of ${megabytes(event.total || 2.9e6)}`;
    else if (model.state === "failed") note.textContent = `The model could not be loaded: ${model.error.message} The examples still work.`;
  });
  still.replaceChildren(box);
  await compute();
}
