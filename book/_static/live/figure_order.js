// Shuffle the words of a real sentence, silence the positions, and see what is left of it.
import { h, model, percent } from "./shared.js";
import { frame, toggleButton } from "./frame.js";

export async function mount(root) {
  let order = null, silent = false, picked = null;
  const chips = h("div", { class: "live-words live-shuffle", role: "group", "aria-label": "German words: choose two to swap them, or move one with the arrow keys" });
  const button = (text, action) => h("button", { type: "button", class: "live-button", onclick: action }, text);
  const figure = frame(root, {
    text: root.dataset.text ?? "Ein Mann wirft einem Hund einen Ball zu.",
    controls: [button("Shuffle", () => { order = order.map((word) => [Math.random(), word]).sort((a, b) => a[0] - b[0]).map(([, word]) => word); words(); figure.update(); }),
      button("In order", () => { order = null; figure.update(); }), toggleButton("Silence the positions", (on) => { silent = on; figure.update(); })],
    parts: [chips],
    async compute(text) {
      const [, body, end] = text.match(/^(.*?)\s*([.!?]?)$/s), split = body.split(/\s+/).filter(Boolean);
      if (!order || [...order].sort().join(" ") !== [...split].sort().join(" ")) { order = split; words(); }
      const switches = silent ? { positions: true } : undefined, shuffled = order.join(" ") + end;
      const straight = await model.translate(split.join(" ") + end, { switches });
      return { straight, mixed: shuffled === split.join(" ") + end ? straight : await model.translate(shuffled, { switches }), moved: shuffled !== split.join(" ") + end };
    },
    draw({ straight, mixed, moved }) {
      const name = silent ? ", positions silenced" : "";
      figure.show([[`in order${name}`, straight], [`as below${name}`, mixed, straight]].slice(0, moved ? 2 : 1));
      if (!moved) return silent ? "Without positions the model reads a bag of words. Now shuffle them." : "Shuffle the words: does the English change?";
      if (silent) return straight.text === mixed.text ? "Shuffled or not, the same sentence, and the same probabilities: without positions there is no order." : "The sentences differ: rounding tips a close call.";
      return straight.text === mixed.text ? `The same sentence, but the probabilities of its pieces went from ${percent(straight.confidence)} to ${percent(mixed.confidence)} on average.` : `Another order, another sentence. Its pieces have a probability of ${percent(mixed.confidence)} on average; in the right order it was ${percent(straight.confidence)}.`;
    },
  });
  function words() {
    chips.replaceChildren(...order.map((word, i) => h("button", { type: "button", class: "live-word", lang: "de", "aria-pressed": String(picked === i), onclick: () => pick(i), onkeydown: (event) => {
      const to = i + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0);
      if (to === i || !order[to]) return;
      event.preventDefault();
      exchange(i, to);
      chips.children[to].focus();
    } }, word)));
  }
  function exchange(a, b) { [order[a], order[b]] = [order[b], order[a]]; picked = null; words(); figure.update(); }
  function pick(i) {
    if (picked === null || picked === i) { picked = picked === i ? null : i; words(); chips.children[i].focus(); } else exchange(picked, i);
  }
  await figure.update();
}
