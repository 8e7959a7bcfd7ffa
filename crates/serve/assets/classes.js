// Size classes: a row each, with what its slabs hold.

import { bar, bytes, count, el } from "./format.js";

const COLUMNS = [
  ["object", "of", c => c.object_bytes], ["memory", "slabs' memory", c => c.memory_bytes], ["slabs", "slabs", c => c.slabs],
  ["live", "objects that the program has", c => c.live], ["in caches", "free objects in caches", c => c.in_caches],
  ["free", "free places on slabs", c => c.free],
];

const FIRST = 12;

let by = 1, ascending = false, whole = false, last = [];

export function show(classes) {
  last = classes;
  const value = COLUMNS[by][2];
  const sorted = [...classes].sort((a, b) => (value(b) - value(a)) * (ascending ? -1 : 1));
  const most = Math.max(...classes.map(c => c.memory_bytes), 1);
  const head = COLUMNS.map(([name, title], i) => el("th", { class: "n", title }, el("button", {
    type: "button", "aria-pressed": String(i === by), onclick: () => choose(i),
  }, name + (i === by ? (ascending ? " ↑" : " ↓") : ""))));
  const row = c => {
    const parts = [["live", c.live], ["caches", c.in_caches], ["slabs", c.free]].map(([name, n]) => [name, n * c.object_bytes]);
    const length = bar(parts);
    length.style.width = `${Math.max(1, c.memory_bytes / most * 100)}%`;
    return el("tr", {}, el("td", { class: "n" }, bytes(c.object_bytes)), el("td", { class: "n" }, bytes(c.memory_bytes)),
      ...[c.slabs, c.live, c.in_caches, c.free].map(n => el("td", { class: "n" }, count(n))), el("td", { class: "wide" }, length));
  };
  document.getElementById("class-table").replaceChildren(
    el("tr", {}, ...head, el("th", {}, key("live", "live"), key("caches", "in caches"), key("slabs", "free"))),
    ...sorted.slice(0, whole ? sorted.length : FIRST).map(row));
  const more = document.getElementById("more-classes");
  more.hidden = sorted.length <= FIRST;
  more.textContent = whole ? `The first ${FIRST}` : `All ${sorted.length} classes`;
}

const key = (name, text) => {
  const dot = el("span", { class: "dot" });
  dot.style.background = `var(--${name})`;
  return el("span", { class: "key" }, dot, text);
};

document.getElementById("more-classes").addEventListener("click", () => {
  whole = !whole;
  show(last);
});

function choose(column) {
  ascending = column === by ? !ascending : false;
  by = column;
  show(last);
}
