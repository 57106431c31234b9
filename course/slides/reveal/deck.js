// Makes each figure as large as its slide allows, and no larger than twice its size.
const fit = () => {
  for (const box of document.querySelectorAll(".figure")) {
    const inner = box.firstElementChild;
    inner.style.transform = "none";
    const slide = box.closest("section");
    const [width, height] = [inner.scrollWidth, inner.scrollHeight];
    if (!width || !height || !slide.clientHeight) continue;
    const scale = Math.min(box.clientWidth / width, box.clientHeight / height, 1.6);
    inner.style.transform = `scale(${scale})`;
    box.dataset.scale = scale.toFixed(3);
  }
};

Reveal.initialize({
  width: 1280, height: 720, margin: 0, center: false, hash: true, slideNumber: "c/t",
  transition: "none", controlsTutorial: false, viewDistance: 50, display: "flex",
  plugins: [RevealNotes], totalTime: null,
});
Reveal.on("ready", fit);
Reveal.on("slidechanged", fit);
Reveal.on("pdf-ready", fit);
