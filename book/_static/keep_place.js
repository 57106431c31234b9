// A link to a heading ends at that heading. Figures and formulas above it are drawn after the browser
// has gone there, and what they grow moves it away, by half a screen in a long chapter. Until the
// reader does something, the page goes back to it whenever its height has changed.
window.addEventListener("load", () => {
  "use strict";
  const heading = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const article = document.querySelector(".bd-article");
  if (!heading || !article) return;
  const observer = new ResizeObserver(() => heading.scrollIntoView({ behavior: "instant" }));
  observer.observe(article);
  for (const act of ["wheel", "touchstart", "pointerdown", "keydown", "hashchange"]) {
    window.addEventListener(act, () => observer.disconnect(), { once: true, passive: true });
  }
});
