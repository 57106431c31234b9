// Places or content? Exchange letters of a word while a small model writes it in reverse (or copies it),
// and see where it looks and what it would write next. What it has written so far stays as it was.
import { h, percent, roving } from "./shared.js";
import { menu } from "./frame.js";
import { readModelFile } from "./model_file.js";
import { bets } from "./decoding.js";
import { Intervention } from "./intervention.js";
import { BOS, EOS, PAD } from "./tokenizer.js";
import { KeyValueCache, Transformer } from "./transformer.js";
import { FIRST, LETTERS, TASKS } from "./train_tasks.js";

const WORD = [..."faicgbed"], LOOK = "decoder.0.cross.weights";
const name = (id) => LETTERS[id - FIRST] ?? ["padding", "start", "end", "?"][id];

/** What the model bets on after `written` letters, and the mean look of its heads at each place. */
export function ask(engine, word, written) {
  const ids = (letters) => letters.map((letter) => FIRST + LETTERS.indexOf(letter));
  const run = new Intervention({}, { keep: [LOOK] });
  const memory = engine.encode([...ids(word), EOS], run);
  const hidden = engine.decode([[BOS, ...ids(written)]], memory, [new KeyValueCache()], run);
  const [logits] = engine.project(hidden.slice(-1));
  logits[PAD] = -Infinity;   // padding is never written
  const heads = run.kept[LOOK].map((rows) => rows.at(-1));
  return { next: bets(logits, LETTERS.length).map(({ id, p }) => [name(id), p]),
    looks: Array.from(heads[0], (_, s) => heads.reduce((sum, row) => sum + row[s], 0) / heads.length) };
}

export async function mount(root, { base }) {
  const engines = {};
  async function engine(task) {
    engines[task] ??= fetch(new URL(`letters-${task}.weights`, base)).then(async (answer) => {
      if (!answer.ok) throw new Error(`letters-${task}.weights: ${answer.status}`);
      const { header, tensors } = await readModelFile(await answer.arrayBuffer());
      return new Transformer(header.config, tensors);
    });
    engines[task].catch(() => { delete engines[task]; });
    return engines[task];
  }
  let task = "reverse", step = 3, word = [...WORD], picked = null, net = await engine(task);

  const kind = menu("Model", [["reverse", "reverse"], ["copy", "copy, with rotary positions"]], async (value) => {
    try { net = await engine(value); } catch (error) { kind.select.value = task; says.textContent = `This model could not be loaded: ${error.message}`; return; }
    task = value;
    back();
  });
  const steps = h("input", { type: "range", min: 2, max: WORD.length - 3, value: step, "aria-label": "Letters written so far", oninput: () => { step = Number(steps.value); back(); } });
  const button = (text, action) => h("button", { type: "button", class: "live-button", onclick: action }, text);
  const places = () => TASKS[task](WORD.map((_, i) => i));   // of the letters, in the order of writing
  const swap = (a, b) => { [word[a], word[b]] = [word[b], word[a]]; picked = null; draw(); };
  const back = () => { word = [...WORD]; picked = null; draw(); };
  // The letter just written changes places with that of another step.
  const preset = (text, other) => button(text, () => { word = [...WORD]; swap(places()[step - 1], places()[other]); });
  const presets = h("div", { class: "live-bar-row" }, preset("Swap it with a later letter", WORD.length - 2),
    preset("Swap it with a written letter", 0), button("Put back", back));

  const row = h("div", { class: "live-letters", role: "group", "aria-label": "The word that it reads: choose two letters to swap them, or choose one and type another" });
  const keys = h("div", { class: "live-letters live-letters-keys", role: "group", "aria-label": "Put another letter in the place of the chosen one" },
    [...LETTERS].map((letter) => button(letter, () => put(picked, letter))));
  const says = h("p", { class: "live-says live-letters-says", role: "status", "aria-live": "polite" });
  const next = h("ol", { class: "live-path-shares live-letters-next" }), wrote = h("p");
  const box = h("div", { class: "live-box live" }, h("div", { class: "live-bar-row" }, kind.element, h("label", { class: "live-menu live-letters-steps" }, h("span", {}, "Letters written"), steps)),
    wrote, presets, h("small", {}, "It reads this. Dashed: where the letter just written was. Bold: the right answer. Squares: where it looks, in per cent, mean of both heads."), row, says, next,
    h("small", {}, "Choose a letter of the word. Then choose a second one to swap the two, or one of these to put in its place:"), keys);
  const still = root.querySelector(".live-still");
  if (still) still.replaceWith(box); else root.prepend(box);
  for (const element of [row, keys]) roving(element, "button");

  function put(place, letter) {
    if (place === null) return;
    word[place] = letter;
    picked = null;
    draw();
  }
  function choose(i) {
    if (picked === null || picked === i) { picked = picked === i ? null : i; draw(); } else swap(picked, i);
  }

  function draw() {
    const at = places(), written = at.slice(0, step).map((i) => WORD[i]), answer = at[step], last = at[step - 1];
    const now = ask(net, word, written), before = ask(net, WORD, written);
    const focused = [...row.children].findIndex((column) => column.contains(document.activeElement));
    row.replaceChildren(...[...word, "end"].map((letter, i) => {
      const side = `${(100 * Math.sqrt(now.looks[i])).toFixed(0)}%`, told = percent(now.looks[i]);
      const what = i === answer ? ", the next to be written" : i === last ? ", where the letter just written was" : "";
      return h("div", {}, letter === "end" ? h("span", {}, "end")
        : h("button", { type: "button", class: `live-button${i === answer ? " live-letters-answer" : i === last ? " live-letters-last" : ""}`, "aria-pressed": String(picked === i), "aria-label": `place ${i}: ${letter}${letter === WORD[i] ? "" : `, was ${WORD[i]}`}${what}; looked at ${told}`, onclick: () => choose(i), onkeydown: (event) => { if (event.key.length === 1 && LETTERS.includes(event.key)) put(i, event.key); } },
          letter === WORD[i] ? letter : h("mark", {}, letter)), h("i", { "aria-hidden": "true" }, h("b", { style: `width: ${side}; height: ${side}` })), h("small", { "aria-hidden": "true" }, Math.round(100 * now.looks[i])));
    }));
    const buttons = row.querySelectorAll("button");
    buttons.forEach((one, i) => { one.tabIndex = i === Math.max(focused, 0) ? 0 : -1; });
    if (focused >= 0) buttons[focused]?.focus({ preventScroll: true });
    for (const key of keys.children) key.disabled = picked === null;
    steps.setAttribute("aria-valuetext", `${step}: ${written.join(" ")}`);
    wrote.replaceChildren("It has written ", h("b", {}, written.join(" ")), `. The letter just written is ${WORD[last]}.`);
    next.replaceChildren(...now.next.slice(0, 3).map(([letter, p]) => h("li", {}, h("span", {}, letter), h("i", { style: `--share: ${p.toFixed(3)}` }), h("b", {}, percent(p)))));
    says.textContent = sentence(now, before, { at, answer, last });
  }

  function sentence(now, before, { at, answer, last }) {
    const odds = ({ next: found }, letter) => found.find(([one]) => one === letter)?.[1] ?? 0;
    const right = WORD[answer], was = percent(odds(before, right)), is = percent(odds(now, right));
    if (word.every((letter, i) => letter === WORD[i])) return `The right letter is ${right}, and it gets ${is}. Now move ${WORD[last]}.`;
    if (word[answer] !== right) return `Place ${answer} holds ${word[answer]} now, and ${word[answer]} gets ${percent(odds(now, word[answer]))}.`;
    const [top] = now.next[0], moved = word.indexOf(WORD[last]), follower = moved < 0 ? null : word[at[at.indexOf(moved) + 1]] ?? "end";
    const start = `${right} is still at place ${answer}: ${was} before, ${is} now.`;
    if (top === right) return `${start} The model isn't led astray.`;
    if (top === word[last] && top !== WORD[last]) return `${start} The model prefers ${top}, which is now where ${WORD[last]} was.`;
    if (top === follower && moved !== last) return `${start} The model prefers ${top}, next to ${WORD[last]}: it followed the letter.`;
    return `${start} The model prefers ${top}.`;
  }
  draw();
}
