// How far the reader has come: guesses made and exercises solved, kept in this browser alone. A ring
// beside each chapter's name shows it, and each exercise has a button to say that it is solved. Below
// the menu all that is kept can be saved to a file, and brought to another browser.
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

  // ---- to a file, and back -----------------------------------------------------------------

  const PREFIX = "attention-step-by-step.", FORMAT = "attention-step-by-step, progress of a reader";
  const plain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  function kept() {
    const found = {};
    for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) found[key.slice(PREFIX.length)] = recall(key);
    return found;
  }

  // What is in this browser stays; what only the file has comes in addition.
  function merged(mine, other) {
    if (Array.isArray(mine) && Array.isArray(other)) return [...new Set([...mine, ...other])];
    if (!plain(mine) || !plain(other)) return mine ?? other;
    return Object.fromEntries([...new Set([...Object.keys(other), ...Object.keys(mine)])].map((key) => [key, merged(mine[key], other[key])]));
  }

  function take(text, name) {
    let given;
    try { given = JSON.parse(text); } catch { given = null; }
    if (given?.format !== FORMAT || !plain(given.kept) || !Object.entries(given.kept).every(([key, value]) => /^[a-z]+$/.test(key) && plain(value))) {
      throw new Error(`${name} doesn't hold progress in this book. Choose a file made by “Save to a file”.`);
    }
    const mine = kept();
    for (const [key, value] of Object.entries(given.kept)) localStorage.setItem(PREFIX + key, JSON.stringify(merged(mine[key], value)));
  }

  function keeper() {
    const menu = document.querySelector(".book-menu");
    if (!menu) return;
    const make = (tag, properties, ...inside) => { const one = Object.assign(document.createElement(tag), properties); one.append(...inside); return one; };
    const says = make("p", { textContent: sessionStorage.getItem(PREFIX + "said") ?? "" });
    sessionStorage.removeItem(PREFIX + "said");
    says.setAttribute("role", "status");
    const save = make("button", { type: "button", textContent: "Save to a file", onclick() {
      const file = new Blob([JSON.stringify({ format: FORMAT, kept: kept() }, null, 1)], { type: "application/json" });
      const link = make("a", { href: URL.createObjectURL(file), download: "attention-step-by-step.json" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      says.textContent = "It’s in your downloads.";
    } });
    const file = make("input", { type: "file", accept: ".json", hidden: true, async onchange() {
      try {
        take(await file.files[0].text(), file.files[0].name);
        const solved = Object.values(recall(SOLVED)).flat().length, guessed = Object.keys(recall(GUESSES)).length, told = `Now in this browser: ${guessed} ${guessed === 1 ? "guess" : "guesses"}, ${solved} ${solved === 1 ? "exercise" : "exercises"} solved.`;
        draw();
        says.textContent = told;
        if (!document.querySelector(".live-guess, .exercise-solved")) return;
        sessionStorage.setItem(PREFIX + "said", told);
        location.reload();   // guesses and exercises of this page show what has come
      } catch (error) { says.textContent = error.message; }
      file.value = "";
    } });
    const load = make("button", { type: "button", textContent: "Load from a file", onclick: () => file.click() });
    menu.append(make("div", { className: "nav-keep" }, make("p", { className: "nav-group", textContent: "Your progress" }),
      make("p", { textContent: "The rings are kept in this browser only." }), save, load, file, says));
  }

  function start() {
    draw();
    exercises();
    keeper();
    document.addEventListener("book-progress", draw);
    window.addEventListener("storage", draw);
    // The menu opens at this page; on a phone it is closed, and nothing is measured.
    const side = document.querySelector(".bd-sidebar-primary"), here = side?.querySelector(".book-menu [aria-current]");
    if (here && matchMedia("(min-width: 992px)").matches) side.scrollTop = Math.max(0, here.getBoundingClientRect().top - side.getBoundingClientRect().top + side.scrollTop - side.clientHeight / 2);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
