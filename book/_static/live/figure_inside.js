// The numbers of scaled dot-product attention, in a real head, for a pair of real words.
import { h, model } from "./shared.js";
import { makeInsideHead } from "./inside_head.js";
import { frame, menu, lang } from "./frame.js";

export async function mount(root) {
  const state = { pin: root.dataset.head ?? "cross.1.2", from: null };
  const inside = makeInsideHead({ lang, ask: (...given) => model.ask(...given) });
  const names = ["encoder", "decoder", "cross"].flatMap((kind) => Array.from({ length: model.layers }, (_, l) => Array.from({ length: model.heads }, (_, n) => [`${kind}.${l}.${n}`, `${{ encoder: "reads", decoder: "writes", cross: "looks back" }[kind]} ${l}.${n}`])).flat());
  const head = menu("Head", names, (value) => { state.pin = value; figure.update(); });
  const figure = frame(root, {
    text: "Zwei Hunde spielen im Schnee.", controls: [head.element], parts: [inside.element],
    compute: async (text) => ({ text, result: await model.translate(text) }),
    async draw({ text, result }) {
      figure.show([["it writes", result]]);
      head.select.value = state.pin;
      if (model.state !== "ready" && !figure.asked) { figure.asked = true; await model.load(); }
      await inside.draw({ state, text, result, at: Math.min(2, result.steps.length - 1), switches: undefined });
    },
  });
  await figure.update();
}
