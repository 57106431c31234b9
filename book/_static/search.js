// The search page: a result shows sentences of the page's own text, where Sphinx would take the menu
// and the table of contents as well; and it shows those that hold what was asked for.
(function () {
  "use strict";
  const FURNITURE = ".headerlink, script, style, noscript, svg, .bd-header-article, .onlyprint, .prev-next-footer, .bd-sidebar-secondary,"
    + " .page-foot, .live-guess, details.hide, .live-figure";

  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const article = page.querySelector("article.bd-article") ?? page.querySelector('[role="main"]');
    if (!article) return "";
    article.querySelectorAll(FURNITURE).forEach((one) => one.remove());
    const part = anchor ? article.querySelector(`[id="${CSS.escape(anchor.slice(1))}"]`) : null;
    return (part ?? article).textContent.replace(/\s+/g, " ").trim();
  };

  Search.makeSearchSummary = (html, keywords, anchor) => {
    const text = Search.htmlToText(html, anchor), small = text.toLowerCase();
    if (!text) return null;
    const words = [...keywords].map((word) => word.toLowerCase());
    // The place where most of the words stand close together.
    let [best, at] = [-1, 0];
    for (const word of words) {
      for (let place = small.indexOf(word), n = 0; place >= 0 && n < 200; place = small.indexOf(word, place + 1), n++) {
        const near = small.slice(Math.max(0, place - 100), place + 160);
        const found = words.filter((other) => near.includes(other)).length;
        if (found > best) [best, at] = [found, place];
      }
    }
    const start = Math.max(0, text.lastIndexOf(". ", at) + 1, at - 110), end = start + 240;
    const summary = document.createElement("p");
    summary.className = "context";
    summary.textContent = `${start ? "… " : ""}${text.slice(start, end).trim()}${end < text.length ? " …" : ""}`;
    return summary;
  };
})();
