// Work that may wait: done piece by piece when the browser has nothing else to do, from the reader's
// first move on. bookIdle(next): next() starts a piece and returns its promise, or null at the end.
(function () {
  "use strict";
  const queue = [], soon = window.requestIdleCallback ?? ((callback) => setTimeout(callback, 200));
  let moved = false, running = false;

  async function run() {
    if (running || !moved) return;
    running = true;
    while (queue.length) {
      await new Promise((resolve) => soon(resolve));
      const piece = queue[0]();
      if (piece === null) queue.shift();
      else await Promise.resolve(piece).catch(() => {});
    }
    running = false;
  }
  // A narrow page shows no list of its sections, so nothing need measure where each of them stands.
  if (matchMedia("(max-width: 991.98px)").matches) delete document.body.dataset.bsSpy;

  window.bookIdle = (next) => { queue.push(next); run(); };
  const begin = () => { if (!moved) { moved = true; setTimeout(run, 600); } };
  for (const event of ["scroll", "pointermove", "pointerdown", "touchstart", "keydown"]) window.addEventListener(event, begin, { once: true, passive: true });
})();
