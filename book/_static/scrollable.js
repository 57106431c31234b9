// Whatever scrolls can be reached, and then scrolled, by keyboard. Sizes are read in idle
// time and a few at a time: all at once, they held the page up for half a second on a phone.
// data-reachable, on the article: all boxes have been looked at since the page last changed its size.
window.addEventListener("load", async () => {
  await window.bookLaidOut;
  const article = document.querySelector(".bd-article");
  if (!article) return;
  const soon = window.requestIdleCallback ?? ((task) => setTimeout(task, 200));
  let left = [], planned = false;

  function look() {
    const end = performance.now() + 8;
    while (left.length && performance.now() < end) {
      const box = left.pop(), wide = box.scrollWidth > box.clientWidth + 1, tall = box.scrollHeight > box.clientHeight + 1;
      const style = wide || tall ? getComputedStyle(box) : null;
      const scrolls = (wide && /auto|scroll/.test(style.overflowX)) || (tall && /auto|scroll/.test(style.overflowY));
      if (scrolls && !box.hasAttribute("tabindex")) {
        box.tabIndex = 0;
        box.dataset.scrolls = "";
      } else if (!scrolls && "scrolls" in box.dataset) {
        box.removeAttribute("tabindex");
        delete box.dataset.scrolls;
      }
    }
    planned = left.length > 0;
    if (planned) soon(look, { timeout: 100 }); // where no time is idle, a little of it all the same
    else article.dataset.reachable = "";
  }
  function mark() {
    left = [...article.querySelectorAll("figure, table, pre, mjx-container, div")].reverse();
    delete article.dataset.reachable;
    if (!planned) soon(look, { timeout: 100 });
    planned = true;
  }
  // Again whenever the width changes, and when a formula or a figure has been drawn.
  new ResizeObserver(mark).observe(article);
  window.MathJax?.startup?.promise?.then(mark);
  article.addEventListener("drawn", mark);
});
