// Switch parts off, watch tensors, put others in their place (chapter "Looking inside a trained
// model").

/** What a forward pass switches off, keeps and overwrites. switches: see client.js; keep: names of
 *  tensors, or a function of the name; patches: name -> Map of position -> row. */
export class Intervention {
  constructor(switches = {}, { keep = [], patches = {} } = {}) {
    const parts = ["heads", "blocks", "residuals", "skips", "norms"];
    this.off = Object.fromEntries(parts.map((part) => [part, new Set(switches[part])]));
    this.wanted = typeof keep === "function" ? keep : (name) => keep.includes(name);
    Object.assign(this, { switches, patches, kept: {} });
  }

  headIsOff(kind, layer, head) {
    const { heads, blocks } = this.off;
    const address = `${kind}.${layer}`;
    return blocks.has(kind) || blocks.has(address) || heads.has(`${address}.${head}`);
  }

  /** Every named tensor passes through here; places[t] is the position of its row t. */
  touch(name, rows, places) {
    const patch = this.patches[name];
    const result = patch ? rows.map((row, t) => patch.get(places[t]) ?? row) : rows;
    if (this.wanted(name)) this.kept[name] = result;
    return result;
  }
}
