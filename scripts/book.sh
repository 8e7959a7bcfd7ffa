#!/usr/bin/env bash
# Builds the documents as a book, target/book/html/index.html, by mdBook: the one on PATH, or else
# one that is compiled once into target/tools (40 seconds on two cores).
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
version=0.5.4
book=$target/book
mdbook=$target/tools/bin/mdbook
if command -v mdbook >/dev/null; then
  mdbook=mdbook
elif ! "$mdbook" --version 2>/dev/null | grep -qF "$version"; then
  "${CARGO:-cargo}" install -q mdbook --version "$version" --locked --debug --no-default-features --features search \
    --root "$target/tools" --target-dir "$target/tools/build"
  rm -rf "$target/tools/build"
fi

# One folder has every page, so that the same links work here and in the repository.
rm -rf "$book"
mkdir -p "$book/src/results"
cp docs/*.md "$book/src"
cp README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md "$book/src"
cp results/README.md "$book/src/records.md"
cp results/*.svg results/*.txt "$book/src/results"
sed -i -E -e 's#\]\(\.\./results/README\.md#](records.md#g' -e 's#\]\(\.\./results\)#](records.md)#g' \
  -e 's#\]\(docs/SUMMARY\.md#](toc.html#g' -e 's#\]\(results/?\)#](records.md)#g' -e 's#\]\(\.\./docs/#](#g' -e 's#\]\(docs/#](#g' -e 's#\]\(\.\./#](#g' "$book"/src/*.md
cat >"$book/book.toml" <<'END'
[book]
title = "Craton"
language = "en"
[build]
build-dir = "html"
create-missing = false
[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
END
"$mdbook" build "$book" >"$book/log" 2>&1 || { cat "$book/log" >&2; exit 1; }
if grep -E "WARN|ERROR" "$book/log" >&2; then exit 1; fi
echo "$book/html/index.html"
