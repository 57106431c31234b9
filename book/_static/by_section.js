// On a narrow page the sections below the first, and those in them, are laid out when the reader comes near
// (custom.css), and the rest one by one after the reader's first move: laid out all at once at the start,
// they held a phone up before anybody had read a word. The page's head decides whether.
// bookLaidOut: a promise of the moment when each section has its own height.
(function () {
  "use strict";
  const SIGNS = ["pointerdown", "pointermove", "touchstart", "wheel", "scroll", "keydown", "beforeprint"];
  const page = document.documentElement.dataset;
  const sections = () => document.querySelectorAll(".bd-article > section section");
  let laidOut, begun = false;
  window.bookLaidOut = new Promise((resolve) => { laidOut = resolve; });

  function end() {
    for (const section of sections()) section.classList.add("laid-out");
    delete page.bySection;
    laidOut();
  }
  async function oneByOne() {
    if (begun) return;
    begun = true;
    for (const section of sections()) {
      await new Promise((next) => setTimeout(next));
      section.classList.add("laid-out");
      void section.offsetHeight;
    }
    end();
  }

  window.addEventListener("load", () => {
    if (!("bySection" in page)) return laidOut();
    for (const sign of SIGNS) window.addEventListener(sign, oneByOne, { once: true, passive: true });
  });
  // A jump needs every height: anything laid out later, above its target, would move it.
  document.addEventListener("click", (event) => {
    if ("bySection" in page && event.target.closest("a[href*='#']")) end();
  }, { capture: true });
})();
