// On a narrow page the sections below the first, and those in them, are laid out one by one once the page has loaded
// (custom.css): all at once, they held a phone up for half a second. The page's head says whether.
// bookLaidOut: a promise of the moment when each section has its own height.
(function () {
  "use strict";
  const page = document.documentElement.dataset;
  window.bookLaidOut = new Promise((resolve) => window.addEventListener("load", async () => {
    if ("bySection" in page) {
      for (const section of document.querySelectorAll(".bd-article > section section")) {
        await new Promise((next) => setTimeout(next));
        section.classList.add("laid-out");
        void section.offsetHeight;
      }
      delete page.bySection;
    }
    resolve();
  }));
})();
