// Python in a worker of its own, so that the page stays quick and a loop without end can be ended.
// It is given the runtime and one zip of Python files, both from this site, and asks nobody else.
import { kernels } from "./kernels.js";

let python, run, hint;

async function start({ runtime, code }) {
  const { loadPyodide } = await import(runtime + "pyodide.mjs");
  const files = fetch(code).then((answer) => {
    if (!answer.ok) throw new Error(`${answer.status} for ${code}`);
    return answer.arrayBuffer();
  });
  python = await loadPyodide({ indexURL: runtime, env: { PYTHONHASHSEED: "0", HOME: "/home/reader" } });
  python.unpackArchive(await files, "zip", { extractDir: "/book" });
  python.registerJsModule("page_kernels", kernels);
  python.runPython(`
import sys
sys.path[:0] = ["/book", "/book/exercises/page/lib"]
sys.dont_write_bytecode = True
from exercises.page import runner
runner.warm_up()
`);
  const runner = python.pyimport("exercises.page.runner");
  [run, hint] = [runner.run, runner.hint];
}

self.onmessage = async ({ data }) => {
  try {
    if (data.start) {
      await start(data.start);
      self.postMessage({ id: data.id, ready: true });
    } else if (data.hint) {
      self.postMessage({ id: data.id, text: hint(data.hint) });
    } else {
      const begin = performance.now();
      const found = JSON.parse(run(data.answer, data.check));
      self.postMessage({ id: data.id, ...found, took: performance.now() - begin });
    }
  } catch (error) {
    self.postMessage({ id: data.id, failed: String(error.message ?? error).slice(-2000) });
  }
};
