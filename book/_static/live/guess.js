// Guesses: <section class="live-guess" data-guess="name" data-answer="1">, a question, a list of
// choices and the answer in <details>. The reader clicks a choice, and only then sees the answer,
// and the finding of the figure below. Guesses stay in the reader's browser, and can be erased.
import { h } from "./shared.js";

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
  let chosen = recall()[name] ?? null, open = chosen !== null, again = open;

  const options = [...list.children].map((item, i) => h("button", { type: "button", class: "live-button", onclick: () => choose(i) }, item.textContent));
  const texts = options.map((option) => option.textContent);
  const group = h("div", { class: "live-options", role: "group", "aria-label": "Your guess" }, options);
  const outcome = h("p", { class: "live-answer", role: "status" });
  const look = h("button", { type: "button", class: "live-button live-quiet", onclick: () => { open = true; draw(); outcome.focus(); } }, "Show without a guess");
  const erase = h("button", { type: "button", class: "live-button live-quiet", onclick: () => { keep(name, null); chosen = null; open = again = false; draw(); options[0].focus(); } }, "Erase my guess");
  outcome.tabIndex = -1;
  list.replaceWith(group);
  details.replaceWith(outcome, h("div", { class: "live-bar-row" }, look, erase));

  function choose(i) {
    chosen = i;
    open = true;
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
    look.hidden = open;
    erase.hidden = chosen === null;
    figure?.classList.toggle("live-unguessed", !open);
  }
  draw();
  section.dataset.ready = "yes";
}

document.querySelectorAll(".live-guess[data-guess]:not([data-ready])").forEach(mount);
