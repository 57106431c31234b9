// How sure the reader was of the guesses in the pages, against how often that was justified.
import { h, svg } from "./shared.js";
import { calibration, forget, inWords, percent } from "./sure.js";

const [SIZE, LEFT, BELOW] = [220, 66, 44], ENOUGH = 10;
const x = (share) => LEFT + share * SIZE, y = (share) => 10 + (1 - share) * SIZE;

export function mount(box) {
  const says = h("p", { role: "status" }), plot = h("div", { class: "live-calibration-plot" });
  const erase = h("button", { type: "button", class: "live-button", onclick: () => { forget(); draw(); says.focus(); } }, "Forget how sure I was");
  says.tabIndex = -1;
  box.replaceChildren(says, plot, h("div", { class: "live-bar-row" }, erase));

  function draw() {
    const found = calibration();
    erase.hidden = plot.hidden = !found;
    if (!found) {
      says.textContent = "None of the guesses kept in this browser says how sure you were.";
      return plot.replaceChildren();
    }
    says.textContent = `${inWords(found)} Brier score ${found.brier.toFixed(3)}.`
      + (found.n < ENOUGH ? ` With fewer than ${ENOUGH} guesses, that’s mostly luck.` : "");
    plot.replaceChildren(picture(found));
  }
  draw();
  document.addEventListener("book-progress", draw);
}

function picture(found) {
  const told = found.groups.map((one) => `about ${percent(one.sure)} sure, ${percent(one.hits)} right, of ${one.n}`).join("; ");
  const ticks = [0, 0.5, 1].flatMap((share) => [
    svg("text", { x: x(share), y: y(0) + 18, "text-anchor": "middle" }, percent(share)),
    svg("text", { x: LEFT - 8, y: y(share) + 4, "text-anchor": "end" }, percent(share))]);
  return svg("svg", { viewBox: `0 0 ${LEFT + SIZE + 24} ${SIZE + BELOW + 10}`, role: "img", "aria-label": `How often you were right, against how sure you were: ${told}.` },
    svg("rect", { x: LEFT, y: 10, width: SIZE, height: SIZE, class: "live-calibration-frame" }),
    svg("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "live-calibration-line" }),
    ticks,
    svg("text", { x: x(0.5), y: y(0) + 38, "text-anchor": "middle" }, "how sure you were"),
    svg("text", { x: 12, y: y(0.5), "text-anchor": "middle", transform: `rotate(-90 12 ${y(0.5)})` }, "how often you were right"),
    found.groups.flatMap((one) => [
      svg("line", { x1: x(one.sure), y1: y(one.low), x2: x(one.sure), y2: y(one.high), class: "live-calibration-range" }),
      svg("circle", { cx: x(one.sure), cy: y(one.hits), r: 4 + Math.min(8, Math.sqrt(one.n)), class: "live-calibration-dot" })]));
}
