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
cd "$work"
npm install --silent --no-audit --no-fund --prefix . \
  vega@6.4.0 vega-lite@6.4.1 vega-embed@7.3.0 d3@5.7.0 jquery@3.8.0 mathjax@3.2.2 axe-core@4.14.1 \
  @fontsource-variable/source-serif-4@5.3.1 @fontsource-variable/inter@5.3.0 \
  @fontsource-variable/jetbrains-mono@5.3.0 reveal.js@5.2.1

rm -rf "$target"
mkdir -p "$target"/{vega,d3,jquery,mathjax,fonts}
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
# Source maps are not served: take out the comments that name them.
sed -i 's|^//# sourceMappingURL=.*$||' "$target"/*/*.js "$tests/axe.min.js" "$slides"/re*.js "$slides/notes.js"
du -sh "$target"
