// A page is printed in the light colours, whatever the screen shows, and with the museum's key open.
(function () {
  "use strict";
  let before = null, opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(".museum-key details:not([open])")];
    for (const branch of opened) { branch.removeAttribute("name"); branch.open = true; }
    before ??= document.documentElement.dataset.theme ?? null;
    document.documentElement.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    for (const branch of opened) branch.open = false;
    if (before !== null) document.documentElement.dataset.theme = before;
    before = null;
  });
})();
