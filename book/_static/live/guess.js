// Guesses: <section class="live-guess" data-guess="name" data-answer="1">, a question, a list of
// choices and the answer in <details>. The reader clicks a choice, and only then sees the answer,
// and the finding of the figure below. A reader may say beforehand how sure they are; sure.js
// keeps that.
// Guesses stay in the reader's browser, and can be erased.
import { h } from "./shared.js";
import { calibration, inWords, keep as keepSure, percent, recall as recallSure } from "./sure.js";

const STORE = "attention-step-by-step.guesses";

function recall() {
  try { return JSON.parse(localStorage.getItem(STORE)) ?? {}; } catch { return {}; }
}
function keep(name, choice) {
  const guesses = recall();
  if (choice === null) delete guesses[name]; else guesses[name] = choice;
  try { localStorage.setItem(STORE, JSON.stringify(guesses)); } catch { /* private window: kept for this visit only */ }
  document.dispatchEvent(new Event("book-progress"));   // the rings in the menu
}

// The figure that answers: the next one on the page, but not beyond the next guess.
function figureAfter(section) {
  const all = [...document.querySelectorAll(".live-guess, .live-figure")], next = all[all.indexOf(section) + 1];
  return next?.classList.contains("live-figure") ? next : null;
}

export function mount(section) {
  const { guess: name, answer: right } = section.dataset;
  const answer = Number(right), list = section.querySelector("ol"), details = section.querySelector("details");
  const told = details.querySelector("p").innerHTML, figure = figureAfter(section);
  let chosen = recall()[name] ?? null, open = chosen !== null, again = open, seen = open, sure = null;

  const options = [...list.children].map((item, i) => h("button", { type: "button", class: "live-button", onclick: () => choose(i) }, item.textContent));
  const texts = options.map((option) => option.textContent);
  const group = h("div", { class: "live-options", role: "group", "aria-label": "Your guess" }, options);
  const outcome = h("p", { class: "live-answer", role: "status" });
  const look = h("button", { type: "button", class: "live-button live-quiet", onclick: () => { open = seen = true; draw(); outcome.focus(); } }, "Show without a guess");
  const erase = h("button", { type: "button", class: "live-button live-quiet", onclick: () => { keep(name, null); keepSure(name, null); chosen = null; open = again = false; draw(); options[0].focus(); } }, "Erase my guess");
  const SURE = [1 / options.length, 0.7, 0.9, 0.99];   // the lowest is a blind guess: 1 of 2, 1 of 3
  const levels = SURE.map((level) => h("button", { type: "button", class: "live-button", onclick: () => { sure = sure === level ? null : level; draw(); } }, percent(level)));
  const asked = h("div", { class: "live-sure", role: "group", "aria-label": "How sure are you, before you choose? You can skip this." }, h("span", {}, "How sure are you? (If you like, say it before you choose.)"), levels);
  const score = h("p", { class: "live-score" });
  outcome.tabIndex = -1;
  list.replaceWith(group, asked);
  details.replaceWith(outcome, score, h("div", { class: "live-bar-row" }, look, erase));

  function choose(i) {
    chosen = i;
    if (!seen && sure !== null) keepSure(name, { sure, right: i === answer });
    open = seen = true;
    again = false;
    keep(name, i);
    draw();
  }
  function draw() {
    options.forEach((option, i) => {
      const verdict = !open ? "" : i === answer ? "✓ " : i === chosen ? "✕ " : "";
      option.textContent = verdict + texts[i];
      option.setAttribute("aria-pressed", String(i === chosen));
      option.classList.toggle("live-true", open && i === answer);
    });
    const said = chosen === null ? "" : again ? `Last time you guessed “${texts[chosen]}”. ` : chosen === answer ? "As you guessed. " : "Not so. ";
    outcome.hidden = !open;
    if (open) { outcome.innerHTML = told; outcome.prepend(said); } else outcome.textContent = "";
    levels.forEach((button, i) => button.setAttribute("aria-pressed", String(sure === SURE[i])));
    asked.hidden = seen;   // once the answer was seen, it's too late
    const found = open && name in recallSure() ? calibration() : null;
    score.hidden = !found;
    score.replaceChildren(...(found ? [`${inWords(found)} `, h("a", { href: new URL("../../book/how-to-use.html#how-good-are-your-guesses", import.meta.url).href }, "What that means")] : []));
    look.hidden = open;
    erase.hidden = chosen === null;
    figure?.classList.toggle("live-unguessed", !open);
  }
  draw();
  section.dataset.ready = "yes";
}

document.querySelectorAll(".live-guess[data-guess]:not([data-ready])").forEach(mount);
