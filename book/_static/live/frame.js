// What the live figures of the chapters have in common: a German sentence, what the model writes,
// a row of controls, and one line that says what happened. Each figure adds its own part.
import { h, model, megabytes, shownLetters, startsWord, steady, surprise, newPlaces } from "./shared.js";

export const lang = { get src() { return model.src; }, get tgt() { return model.tgt; } };

// root: the mount; its still picture gives way, its finding stays. compute(text) -> what draw gets.
export function frame(root, { text, label = "German sentence", controls = [], parts = [], compute, draw, line = true }) {
  const input = h("input", { class: "live-input", lang: "de", autocomplete: "off", spellcheck: "false", maxlength: 300, "aria-label": label, enterkeyhint: "done" });
  input.value = text;
  const lot = h("button", { type: "button", class: "live-button", onclick: () => { input.value = surprise(); update(); } }, "Surprise me");
  const output = h("div", { class: "live-outputs" });
  const says = h("p", { class: "live-says", role: "status", "aria-live": "polite" });
  const box = h("div", { class: "live-box live" }, h("div", { class: "live-ask-row" }, input, line ? lot : null), controls.length ? h("div", { class: "live-bar-row" }, controls) : null, output, says, parts);
  const still = root.querySelector(".live-still");
  if (still) still.replaceWith(box); else root.prepend(box);
  const stay = steady(box);
  let busy = false, again = false, typing = null;

  input.addEventListener("focus", () => model.load().catch(() => {}));
  input.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(update, 60); });
  model.addEventListener("change", (event) => {
    if (model.state === "loading") says.textContent = `Loading the model: ${megabytes(event.loaded ?? 0)} of ${megabytes(event.total || 2.9e6)}`;
  });

  async function update() {
    if (busy) { again = true; return; }
    busy = true;
    do {
      again = false;
      const asked = input.value.trim();
      try {
        if (!asked) says.textContent = "Type a German sentence.";
        else {
          const found = await compute(asked);
          const settle = stay();
          says.textContent = (await draw(found)) ?? "";
          settle();
        }
      } catch (error) {
        if (!["Superseded", "Cancelled"].includes(error.name)) says.textContent = model.state === "failed" ? `The model could not be loaded: ${error.message}` : error.message;
      }
    } while (again);
    busy = false;
  }

  // Lines of output with a name each: [["in order", result], ...]; what differs from the first is marked.
  function show(rows) {
    output.replaceChildren(...rows.map(([name, result, before]) => {
      const pieces = result.target.pieces.filter((piece) => piece !== "<eos>"), fresh = before ? newPlaces(before.target.pieces, pieces) : new Set(), spelt = shownLetters(pieces);
      return h("div", { class: "live-output" }, h("small", {}, name), h("p", { lang: lang.tgt }, pieces.length ? pieces.flatMap((piece, i) => [startsWord(piece) && i ? " " : "", fresh.has(i) ? h("mark", {}, spelt[i]) : spelt[i]]) : "(it stops at once)"));
    }));
  }
  return { update, show, input, says, box, get text() { return input.value.trim(); } };
}

// A switch: a button that is pressed when the part is off (or on).
export function toggleButton(text, action, pressed = false) {
  const button = h("button", { type: "button", class: "live-button live-switch", "aria-pressed": String(pressed), onclick: () => {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    action(button.getAttribute("aria-pressed") === "true");
  } }, text);
  return button;
}

export function menu(label, options, action) {
  const select = h("select", { class: "live-select", onchange: () => action(select.value) }, options.map(([value, text]) => h("option", { value }, text)));
  const element = h("label", { class: "live-menu" }, h("span", {}, label), select);
  return { element, select, fill(list, value) { select.replaceChildren(...list.map(([v, text]) => h("option", { value: v, selected: String(v) === String(value) }, text))); } };
}
