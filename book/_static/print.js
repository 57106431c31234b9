// A page is printed in the light colours, whatever the screen shows.
(function () {
  "use strict";
  let before = null;
  window.addEventListener("beforeprint", () => {
    before ??= document.documentElement.dataset.theme ?? null;
    document.documentElement.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    if (before !== null) document.documentElement.dataset.theme = before;
    before = null;
  });
})();
