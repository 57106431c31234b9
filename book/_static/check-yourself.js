// 'Check yourself': says at once whether a chosen answer is right and why, and keeps it in this browser.
// The explanations are in the page, folded; this script only shows the one that was chosen.
(() => {
  const store = (name, value) => {  // a browser may forbid it, inside a notebook above all
    try {
      if (value === undefined) return JSON.parse(localStorage.getItem(name) || "{}");
      localStorage.setItem(name, JSON.stringify(value));
    } catch { return {}; }
  };

  const start = (root) => {
    if (root.dataset.started) return;
    root.dataset.started = "yes";
    const name = `check-yourself:${root.dataset.page}`;
    const kept = store(name) ?? {};
    const items = [...root.querySelectorAll(".check-item")];
    root.querySelector(".check-intro").textContent = "Three situations from this chapter. Choose an answer, "
      + "and you'll see why it's right or wrong. Your answers stay in this browser.";
    const forget = root.querySelector(".check-forget");

    const count = () => {
      const chosen = items.map((item) => item.querySelector(".check-says"));
      const answered = chosen.filter((says) => says.textContent).length;
      const right = chosen.filter((says) => says.classList.contains("is-right")).length;
      root.querySelector(".check-count").textContent =
        answered ? `${right} of ${items.length} right.` : "";
      forget.hidden = !answered;
    };

    const show = (item, key) => {
      const told = item.querySelector(`li[data-option="${key}"]`);
      if (!told) return;  // the answer has been reworded since
      const state = told.dataset.right ? "is-right" : "is-wrong";
      for (const option of item.querySelectorAll(".check-option")) {
        const mine = option.querySelector("input").value === key;
        option.classList.remove("is-right", "is-wrong");
        if (mine) option.classList.add(state);
      }
      const says = item.querySelector(".check-says");
      says.className = `check-says ${state}`;
      says.innerHTML = told.querySelector(":scope > span").innerHTML;
      if (state === "is-wrong") says.insertAdjacentHTML("afterbegin", '<b class="is-wrong">Not quite.</b> ');
      else says.innerHTML = says.innerHTML.replace(/^Right\./, '<b class="is-right">Right.</b>');
      item.querySelector(".check-answers").hidden = false;
    };

    for (const item of items) {
      item.querySelector(".check-answers").hidden = true;
      const saved = kept[item.dataset.id];
      const input = saved && item.querySelector(`input[value="${saved}"]`);
      if (input) { input.checked = true; show(item, saved); }
      item.addEventListener("change", ({ target }) => {
        if (target.type !== "radio") return;
        kept[item.dataset.id] = target.value;
        store(name, kept);
        show(item, target.value);
        count();
      });
    }
    forget.addEventListener("click", () => {
      for (const item of items) {
        delete kept[item.dataset.id];
        for (const input of item.querySelectorAll("input")) input.checked = false;
        for (const option of item.querySelectorAll(".check-option")) option.classList.remove("is-right", "is-wrong");
        const says = item.querySelector(".check-says");
        says.className = "check-says";
        says.textContent = "";
        item.querySelector(".check-answers").hidden = true;
        item.querySelector(".check-answers").open = false;
      }
      store(name, kept);
      count();
      items[0].querySelector("input").focus();
    });
    count();
  };

  const all = () => document.querySelectorAll(".check-yourself").forEach(start);
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", all);
  else all();
})();
