// A link to a heading ends at that heading. Figures and formulas above it are drawn after the browser
// has gone there, and what they grow moves it away, by half a screen in a long chapter. Until the
// reader does something, the page goes back to it whenever its height has changed: after a link from
// elsewhere, and after one within the page.
(function () {
  "use strict";
  let heading;
  const back = new ResizeObserver(() => heading.scrollIntoView({ behavior: "instant" }));

  function keep() {
    const article = document.querySelector(".bd-article");
    heading = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (heading && article) back.observe(article);
  }

  for (const act of ["wheel", "touchstart", "pointerdown", "keydown"]) {
    window.addEventListener(act, () => back.disconnect(), { passive: true });
  }
  window.addEventListener("hashchange", () => {  // the browser's own way back keeps its own place
    if (heading?.id !== decodeURIComponent(location.hash.slice(1))) back.disconnect();
  });
  window.addEventListener("load", keep);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href*='#']");
    if (!link || event.defaultPrevented) return;
    back.disconnect();
    setTimeout(() => { if (link.href === location.href) keep(); });  // once the browser has gone there
  });
})();
