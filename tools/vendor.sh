#!/usr/bin/env bash
# Fetch the browser libraries and fonts that the site serves itself, at the versions named here,
# into book/_extra/vendor (committed). Run it again after changing a version; needs npm.
# Vega's versions are those that altair of requirements.txt asks for.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$PWD/book/_extra/vendor
tests=$PWD/tests/browser
slides=$PWD/course/slides/reveal
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The licences of what the Python runtime is made of are kept: they stand in several projects' sources.
cp "$target"/pyodide/{PARTS.md,LICENSE-*} "$work"
cd "$work"
npm install --silent --no-audit --no-fund --prefix . \
  vega@6.4.0 vega-lite@6.4.1 vega-embed@7.3.0 d3@5.7.0 jquery@3.8.0 mathjax@3.2.2 axe-core@4.14.1 \
  @fontsource-variable/source-serif-4@5.3.1 @fontsource-variable/inter@5.3.0 \
  @fontsource-variable/jetbrains-mono@5.3.0 reveal.js@5.2.1 \
  pyodide@314.0.7 esbuild@0.28.2 @codemirror/state@6.7.6 @codemirror/view@6.43.15 \
  @codemirror/commands@6.11.1 @codemirror/language@6.13.1 @codemirror/lang-python@6.2.1 \
  @lezer/highlight@1.2.5

rm -rf "$target"
mkdir -p "$target"/{vega,d3,jquery,mathjax,fonts,pyodide,codemirror}
cd node_modules
cp vega/build/vega.min.js vega-lite/build/vega-lite.min.js vega-embed/build/vega-embed.min.js \
   "$target/vega"
for name in vega vega-lite vega-embed; do cp $name/LICENSE "$target/vega/LICENSE-$name"; done
cp d3/dist/d3.min.js d3/LICENSE "$target/d3"
cp jquery/dist/jquery.min.js jquery/LICENSE.txt "$target/jquery"
cp mathjax/es5/tex-chtml-full.js mathjax/LICENSE "$target/mathjax"
mkdir -p "$target/mathjax/output/chtml/fonts"
cp -r mathjax/es5/output/chtml/fonts/woff-v2 "$target/mathjax/output/chtml/fonts"
for name in source-serif-4 inter jetbrains-mono; do
  cp "@fontsource-variable/$name/files/$name-latin-wght-normal.woff2" "$target/fonts"
  cp "@fontsource-variable/$name/LICENSE" "$target/fonts/LICENSE-$name"
done
cp @fontsource-variable/source-serif-4/files/source-serif-4-latin-wght-italic.woff2 "$target/fonts"
cp axe-core/axe.min.js "$tests/axe.min.js"  # MPL 2.0, used by tests/browser/test_site.py alone
cp reveal.js/dist/{reset.css,reveal.css,reveal.js} reveal.js/plugin/notes/notes.js reveal.js/LICENSE "$slides"
# Python in the browser, for the exercises. Its list of packages is left out, for none is loaded: the
# runtime then has no other host to ask. The licence's text is that of axe-core, MPL 2.0 as well.
cp pyodide/pyodide.mjs pyodide/pyodide.asm.mjs pyodide/pyodide.asm.wasm pyodide/python_stdlib.zip \
   "$target/pyodide"
chmod 644 "$target/pyodide"/*
node -e 'const all = JSON.parse(require("fs").readFileSync("pyodide/pyodide-lock.json"));
  console.log(JSON.stringify({ info: all.info, packages: {} }));' > "$target/pyodide/pyodide-lock.json"
cp axe-core/LICENSE "$target/pyodide/LICENSE"
mv "$work"/{PARTS.md,LICENSE-*} "$target/pyodide"
# The editor of the exercises, in one file: what book/_static/run/editor.js imports.
cat > editor.js <<'EDITOR'
export { EditorState } from "@codemirror/state";
export { EditorView, keymap, lineNumbers, drawSelection } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting }
  from "@codemirror/language";
export { pythonLanguage } from "@codemirror/lang-python";
export { LanguageSupport } from "@codemirror/language";
export { tags } from "@lezer/highlight";
EDITOR
.bin/esbuild editor.js --bundle --minify --format=esm --legal-comments=none \
  --outfile="$target/codemirror/codemirror.js" --log-level=warning
cp @codemirror/view/LICENSE "$target/codemirror"
for name in @lezer/common @lezer/python @marijn/find-cluster-break crelt style-mod w3c-keyname; do
  cp $name/LICENSE "$target/codemirror/LICENSE-$(tr -d @ <<< $name | tr / -)"
done
# Source maps are not served: take out the comments that name them.
sed -i 's|^//# sourceMappingURL=.*$||' "$target"/*/*.{js,mjs} "$tests/axe.min.js" "$slides"/re*.js "$slides/notes.js"
du -sh "$target"
