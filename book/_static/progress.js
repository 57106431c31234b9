// How far the reader has come: guesses made and exercises solved, kept in this browser alone. A ring
// beside each chapter's name shows it, and each exercise has a button to say that it is solved.
(function () {
  "use strict";
  const GUESSES = "attention-step-by-step.guesses", SOLVED = "attention-step-by-step.solved";
  const recall = (store) => { try { return JSON.parse(localStorage.getItem(store)) ?? {}; } catch { return {}; } };

  function draw() {
    const guessed = recall(GUESSES), solved = recall(SOLVED);
    for (const ring of document.querySelectorAll(".nav-ring")) {
      const names = ring.dataset.guesses.split(" ").filter(Boolean), exercises = Number(ring.dataset.exercises);
      const [g, e] = [names.filter((name) => name in guessed).length, Math.min(exercises, (solved[ring.dataset.page] ?? []).length)];
      const all = names.length + exercises, done = g + e;
      ring.style.setProperty("--done", all ? done / all : 0);
      ring.classList.toggle("nav-begun", done > 0);
      ring.classList.toggle("nav-whole", done === all);
      const said = [names.length ? `${g} of ${names.length} guesses` : "", exercises ? `${e} of ${exercises} exercises` : ""].filter(Boolean).join(", ");
      ring.title = said;
      ring.setAttribute("role", "img");
      ring.setAttribute("aria-label", done ? `: ${said}` : "");
      ring.hidden = !done;
    }
  }

  // "**Exercise 3. Find the bug** (apply, 10 minutes)." gets a button behind its first paragraph.
  function exercises() {
    const page = document.body.dataset.page ?? location.pathname.split("/").pop().replace(/\.html$/, "");
    for (const name of document.querySelectorAll(".bd-article p > strong:first-child")) {
      const number = Number(name.textContent.match(/^Exercise (\d+)/)?.[1]);
      if (!number || location.pathname.includes("/solutions/")) continue;
      const button = Object.assign(document.createElement("button"), { type: "button", className: "exercise-solved" });
      const show = () => {
        const done = (recall(SOLVED)[page] ?? []).includes(number);
        button.setAttribute("aria-pressed", String(done));
        button.textContent = done ? "Solved ✓" : "I’ve solved it";
        button.setAttribute("aria-label", `Exercise ${number}: ${done ? "solved" : "I’ve solved it"}`);
      };
      button.addEventListener("click", () => {
        const all = recall(SOLVED), mine = new Set(all[page] ?? []);
        if (!mine.delete(number)) mine.add(number);
        try { localStorage.setItem(SOLVED, JSON.stringify({ ...all, [page]: [...mine] })); } catch { /* private window */ }
        show();
        draw();
      });
      show();
      name.parentElement.append(" ", button);
    }
  }

  function start() {
    draw();
    exercises();
    document.addEventListener("book-progress", draw);
    window.addEventListener("storage", draw);
    // The menu opens at this page; on a phone it is closed, and nothing is measured.
    const side = document.querySelector(".bd-sidebar-primary"), here = side?.querySelector(".book-menu [aria-current]");
    if (here && matchMedia("(min-width: 992px)").matches) side.scrollTop = Math.max(0, here.getBoundingClientRect().top - side.getBoundingClientRect().top + side.scrollTop - side.clientHeight / 2);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
