// "Run here" at the exercises: an editor in the page, and Python in a worker that runs the exercise's
// own check. Nothing but this script is loaded before a reader clicks.
const STORE = "attention-step-by-step.answers";
const LIMIT = 30; // seconds for a run, after which the worker is ended
const page = location.pathname.split("/").pop().replace(/\.html$/, "");
const { code, without = "", imports = "", wheels = "", megabytes = 7 } = document.querySelector("script[data-code]")?.dataset ?? {};
const left_out = without.split(" ");
const colab = document.querySelector('a[href*="colab.research.google.com"]')?.href;
const CHECK = /\bchecks\.(?!hint\b)\w+\.\w+\(/;

const recall = () => { try { return JSON.parse(localStorage.getItem(STORE)) ?? {}; } catch { return {}; } };
function keep(number, text) {
  const all = recall(), mine = { ...all[page] };
  if (text === null) delete mine[number];
  else mine[number] = text;
  try { localStorage.setItem(STORE, JSON.stringify({ ...all, [page]: mine })); } catch { /* private window */ }
}

function make(tag, options = {}, ...children) {
  const { data, ...rest } = options, node = Object.assign(document.createElement(tag), rest);
  Object.assign(node.dataset, data ?? {});
  node.append(...children);
  return node;
}

// ---- Python: one worker for the whole page, ended when a run takes too long

class Stopped extends Error {}
let python = null;

function start() {
  if (python) return python;
  const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  const waiting = new Map();
  const mine = { worker, waiting, count: 0 };
  mine.end = (error) => {
    worker.terminate();
    if (python === mine) python = null;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  mine.ask = (message) => new Promise((resolve, reject) => {
    const id = ++mine.count;
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, ...message });
  });
  worker.onmessage = ({ data }) => {
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.failed) asked?.reject(new Error(data.failed));
    else asked?.resolve(data);
  };
  worker.onerror = (event) => { event.preventDefault(); mine.end(new Error(event.message || "the worker did not start")); };
  const runtime = new URL("../../vendor/pyodide/", import.meta.url).href;
  mine.ready = mine.ask({ start: {
    runtime, code: new URL(code, import.meta.url).href,
    wheels: wheels.split(" ").filter(Boolean).map((file) => `${runtime}wheels/${file}`),
  } });
  mine.ready.catch((error) => mine.end(error));
  python = mine;
  return python;
}

// ---- an exercise, "Exercise 3" with the key 3, a part of one's own model, "Part loss" with "loss", or a
// lab's task, "Task 3" with 3, whose check uses the cells above it

const linked = (text) => make("a", { href: colab, target: "_blank", rel: "noopener" }, text);
const code_of = (cell) => cell.querySelector(".cell_input pre")?.textContent ?? "";
const cells = () => [...document.querySelectorAll(".bd-article div.cell")];
const written = new Map(); // cell of an answer -> a function that gives the reader's text

function above(cell) {
  const all = cells();
  return all.slice(0, all.indexOf(cell)).map((one) => written.get(one)?.() ?? code_of(one));
}

function exercise(title, answer, check, printed, checked) {
  const key = title.split(" ")[1], name = title[0].toLowerCase() + title.slice(1);
  const task = title.startsWith("Task");
  const saved = recall()[page]?.[key];
  written.set(answer, () => recall()[page]?.[key] ?? printed);
  const button = make("button", { type: "button", className: "run-button run-open" }, saved ? "Carry on here" : "Run here");
  button.setAttribute("aria-label", `${title}: ${button.textContent}`);
  const bar = make("div", { className: "run-bar" }, button);
  answer.querySelector(".cell_input").after(bar);
  button.addEventListener("click", () => open().catch((error) => {
    button.disabled = false;
    button.textContent = "Run here";
    bar.append(make("span", { className: "run-note" }, `The editor couldn’t be loaded (${error.message}). Are you online?`));
  }));

  async function open() {
    button.disabled = true;
    button.removeAttribute("aria-label");
    button.textContent = "Loading…";
    bar.querySelector(".run-note")?.remove();
    start(); // Python comes while the reader begins to write
    const { makeEditor } = await import("./editor.js");

    const input = answer.querySelector(".cell_input");
    const box = make("div", { className: "run-editor highlight" });
    for (const child of input.children) child.hidden = true;
    input.append(box);
    input.classList.add("run-input");
    const editor = makeEditor(
      box, saved ?? printed,
      `Your answer to ${name}. Tab indents; press Escape and then Tab to leave.`,
      (text) => keep(key, text === printed ? null : text), () => run(),
    );
    written.set(answer, editor.text);

    const named = (text, work, className = "") => {
      const one = make("button", { type: "button", className: `run-button ${className}` }, text);
      one.addEventListener("click", work);
      return one;
    };
    const status = make("span", { className: "run-status" });
    status.setAttribute("role", "status");
    const go = named("Run", () => run(), "run-go"), stop = named("Stop", () => python?.end(new Stopped()));
    const help = named("Hint", () => hint());
    help.hidden = task;
    const copy = named("Copy", async () => {
      await navigator.clipboard.writeText(editor.text());
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    });
    copy.title = "Copy your answer, to paste it into the notebook";
    const reset = named("Reset", () => { editor.set(printed); keep(key, null); editor.focus(); });
    reset.title = "Back to what the book prints; Ctrl+Z brings your answer back";
    stop.hidden = true;
    go.title = "Ctrl+Enter";
    const note = make("p", { className: "run-note" });
    const describe = (version) => {
      const real = !version.endsWith("+page");
      note.replaceChildren("Python runs in your browser. ", make("code", {}, "torch"), real ? ` here is PyTorch ${version}` : " here is a small tensor library for this page");
      if (colab) note.append(real ? "; the whole chapter runs in " : "; the real one is in ", linked("Colab"));
      note.append(".");
    };
    describe("+page");
    bar.replaceChildren(go, stop, help, copy, reset, status);
    bar.after(note);

    const place = task ? answer : check; // a lab's check is long, and its verdict would be far below
    let said = place.querySelector(".cell_output");
    if (!said) place.append(said = make("div", { className: "cell_output docutils container" }));
    const output = make("pre", { className: "run-said" });
    output.setAttribute("role", "region");
    output.setAttribute("aria-live", "polite");
    output.tabIndex = 0;
    output.setAttribute("aria-label", `What the check says about ${name}`);
    output.textContent = (said.querySelector("pre")?.textContent ?? "").trim();
    said.replaceChildren(output);

    const show = (text, kind) => {
      output.textContent = text.replace(/\n+$/, "");
      output.className = `run-said ${kind}`;
    };
    const busy = (text) => {
      status.textContent = text;
      go.hidden = Boolean(text);
      stop.hidden = !text;
      help.disabled = Boolean(text);
    };

    async function ready() {
      busy(`Starting Python: ${megabytes} MB, once…`);
      const mine = start();
      describe((await mine.ready).torch);
      return mine;
    }
    async function attempt(work) {
      let timer, late = false;
      try {
        const mine = await ready();
        busy("Running…");
        timer = setTimeout(() => { late = true; mine.end(new Stopped()); }, LIMIT * 1000);
        await work(mine);
      } catch (error) {
        if (late) show(`✗ Your code was still running after ${LIMIT} seconds, so it was stopped. Does its loop end?`, "run-wrong");
        else if (error instanceof Stopped) show("Stopped.", "");
        else show(`Python couldn’t be started (${error.message.trim().split("\n").pop()}). Are you online? Press Run to try again.`, "run-wrong");
      } finally {
        clearTimeout(timer);
        const inside = document.activeElement === stop;
        busy("");
        if (inside) go.focus();
        if (late) start(); // the next one is ready sooner
      }
    }
    const run = () => stop.hidden && attempt(async (mine) => {
      const given = { answer: editor.text(), check: checked };
      const found = await mine.ask(task ? { ...given, above: above(answer) } : { ...given, imports });
      if (found.lacks.length) {
        show(`This page’s small tensor library doesn’t have ${found.lacks.join(", ")}, so your answer can’t be judged here. It may well be right: run it in Colab.`, "");
        return;
      }
      show(found.text, found.verdict === true ? "run-right" : found.verdict === false ? "run-wrong" : "");
      if (found.verdict) document.querySelector(`.exercise-solved[aria-pressed="false"][aria-label^="${title}:"]`)?.click();
    });
    const hint = () => attempt(async (mine) => {
      const { text } = await mine.ask({ hint: checked });
      show(`${output.textContent}\n${text}`.trim(), output.className.replace("run-said", "").trim());
    });

    editor.focus();
    busy(`Starting Python: ${megabytes} MB, once…`);
    start().ready.then(({ torch }) => { describe(torch); if (status.textContent.startsWith("Starting")) busy(""); }, () => busy(""));
    stop.hidden = true;
    go.hidden = false;
  }
}

function needs_more(cell) {
  if (colab) cell.append(make("p", { className: "run-note" }, "This needs more than a page has, such as files, a trained model or time. It runs in ", linked("Colab"), "."));
}

// "**Exercise 3. ...**" is followed by the cell with the answer, and that by the one with its check.
// A part of one's own model is written and handed in in one cell. A lab's answer names its task.
function find() {
  if (!code || !("Worker" in window)) return;
  for (const name of document.querySelectorAll(".bd-article p > strong:first-child")) {
    const number = Number(name.textContent.match(/^Exercise (\d+)/)?.[1]);
    if (!number) continue;
    const near = [];
    for (let next = name.parentElement.nextElementSibling; next; next = next.nextElementSibling) {
      if (next.matches("section, h2, h3") || next.querySelector(":scope > strong:first-child")?.textContent.startsWith("Exercise")) break;
      if (next.matches("div.cell")) near.push(next);
    }
    const [answer, check] = near, at = near.findIndex((cell) => CHECK.test(code_of(cell)));
    if (left_out.includes(String(number))) {
      if (at > 0) needs_more(near[at - 1]);
    } else if (at === 1) {
      exercise(`Exercise ${number}`, answer, check, code_of(answer).replace(/\n+$/, "\n"), code_of(check));
    }
  }
  for (const [at, cell] of cells().entries()) {
    const text = code_of(cell);
    const [, answer, handed, part] = text.match(/^((?:def|class) [^]*?)\n+(own\.hand_in\("(\w+)".*)/) ?? [];
    if (part) exercise(`Part ${part}`, cell, cell, `${answer}\n`, handed);
    const task = text.match(/^# Task (\d+): [^]*# YOUR CODE HERE/)?.[1];
    const check = task && cells().slice(at).find((one) => code_of(one).includes(`Task ${task}: visible check passed`));
    if (check && left_out.includes(task)) needs_more(cell);
    else if (check) exercise(`Task ${task}`, cell, check, text.replace(/\n+$/, "\n"), code_of(check));
  }
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", find);
else find();
