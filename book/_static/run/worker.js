// Python in a worker of its own, so that the page stays quick and a loop without end can be ended.
// It is given the runtime, one zip of Python files and perhaps wheels of PyTorch, all from this site,
// and asks nobody else.
import { kernels } from "./kernels.js";

let python, run, hint, task;

async function start({ runtime, code, wheels }) {
  const { loadPyodide } = await import(runtime + "pyodide.mjs");
  const files = fetch(code).then((answer) => {
    if (!answer.ok) throw new Error(`${answer.status} for ${code}`);
    return answer.arrayBuffer();
  });
  python = await loadPyodide({ indexURL: runtime, env: { PYTHONHASHSEED: "0", HOME: "/home/reader" } });
  // PyTorch itself is preferred; a device on which it can't be loaded gets the small tensor library.
  const real = wheels.length > 0 && await python.loadPackage(wheels, { messageCallback() {} })
    .then(() => python.runPython("import numpy, torch"))
    .then(() => true, (error) => console.warn(`PyTorch isn’t used: ${error.message ?? error}`));
  python.unpackArchive(await files, "zip", { extractDir: "/book" });
  python.registerJsModule("page_kernels", kernels);
  python.runPython(`
import sys
sys.path.insert(0, "/book")
if not ${real ? 1 : 0}:
    sys.path.insert(0, "/book/exercises/page/lib")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("torch", "numpy")]:
        del sys.modules[name]
sys.dont_write_bytecode = True
from exercises.checks import framework
from exercises.page import runner
framework.LIMIT = 12  # seconds: a phone needs several times what a notebook does
runner.warm_up()
`);
  const runner = python.pyimport("exercises.page.runner");
  [run, hint] = [runner.run, runner.hint];
  task = (...cells) => python.pyimport("exercises.page.lab").run(...cells);
  return python.runPython("import torch; torch.__version__");
}

self.onmessage = async ({ data }) => {
  try {
    if (data.start) {
      self.postMessage({ id: data.id, torch: await start(data.start) });
    } else if (data.hint) {
      self.postMessage({ id: data.id, text: hint(data.hint) });
    } else {
      const begin = performance.now();
      const found = JSON.parse(data.above
        ? task(data.answer, data.check, JSON.stringify(data.above))
        : run(data.answer, data.check, data.imports));
      self.postMessage({ id: data.id, ...found, took: performance.now() - begin });
    }
  } catch (error) {
    self.postMessage({ id: data.id, failed: String(error.message ?? error).slice(-2000) });
  }
};
