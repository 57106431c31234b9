// Whatever scrolls sideways can be reached, and then scrolled, by keyboard.
window.addEventListener("load", () => {
  const article = document.querySelector(".bd-article");
  if (!article) return;
  const mark = () => {
    for (const box of article.querySelectorAll("figure, table, pre, mjx-container, div")) {
      const scrolls =
        box.scrollWidth > box.clientWidth + 1 &&
        ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
      if (scrolls && !box.hasAttribute("tabindex")) {
        box.tabIndex = 0;
        box.dataset.scrolls = "";
      } else if (!scrolls && "scrolls" in box.dataset) {
        box.removeAttribute("tabindex");
        delete box.dataset.scrolls;
      }
    }
  };
  // Again whenever the width changes, and when a formula or a figure has been drawn.
  new ResizeObserver(mark).observe(article);
  window.MathJax?.startup?.promise?.then(mark);
  article.addEventListener("drawn", mark);
});
