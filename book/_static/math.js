// Formulas are set when they come near the screen, and MathJax (300 kB) is loaded with the first of
// them; the others follow once the reader has moved and the browser has nothing else to do, since
// printing waits for no download.
(function () {
  "use strict";
  const source = new URL(document.currentScript.dataset.mathjax, document.currentScript.src).href;
  let loading = null, last = Promise.resolve();

  function load() {
    return (loading ??= new Promise((resolve, reject) => {
      const script = Object.assign(document.createElement("script"), { src: source });
      script.onload = () => window.MathJax.startup.promise.then(resolve);
      script.onerror = () => { loading = null; reject(new Error("MathJax could not be loaded")); };
      document.head.append(script);
    }));
  }
  function set(formulas) {
    const fresh = formulas.filter((one) => !one.dataset.set);
    if (!fresh.length) return last;
    for (const one of fresh) one.dataset.set = "yes";
    last = last.then(load).then(() => window.MathJax.typesetPromise(fresh)).then(() => {
      document.querySelector(".bd-article")?.dispatchEvent(new CustomEvent("drawn"));  // for scrollable.js
    }).catch((error) => console.warn(error));
    return last;
  }
  function begin() {
    const all = [...document.querySelectorAll(".math")];
    const observer = new IntersectionObserver((entries) => {
      const near = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
      near.forEach((one) => observer.unobserve(one));
      set(near);
    }, { rootMargin: "300px 0px" });
    all.forEach((one) => observer.observe(one));
    window.addEventListener("beforeprint", () => set(all));
    window.bookIdle?.(() => { const some = all.filter((one) => !one.dataset.set).slice(0, 25); return some.length ? set(some) : null; });
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
