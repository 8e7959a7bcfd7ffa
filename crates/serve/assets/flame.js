// The heap profile: a flame graph from the top down, and its functions.

import { bytes, count, el, hideTip, share, showTip, svg } from "./format.js";

const ROW = 19, LEAST = 1.5;

/** A number of a text, always the same. */
function hash(text) {
  let n = 2166136261;
  for (let i = 0; i < text.length; i += 1) n = Math.imul(n ^ text.charCodeAt(i), 16777619);
  return (n >>> 0) / 2 ** 32;
}

/** Warm where debug information names a line; grey elsewhere. */
function tint(node, isDifference) {
  const has = /:\d+$/.test(node.p);
  const hue = (isDifference ? 2 : has ? 24 : 42) + hash(node.n) * (isDifference ? 14 : 22);
  return `hsl(${hue.toFixed(0)} ${has || isDifference ? 78 : 46}% ${(69 + hash(`${node.n}.`) * 9).toFixed(0)}%)`;
}

export class Flame {
  constructor(node) {
    this.node = node;
    this.path = [];
    this.svg = svg("svg", { role: "img", "aria-label": "Flame graph of the heap profile" });
    node.append(this.svg);
    new ResizeObserver(() => this.draw()).observe(node);
  }

  /** Keeps the part that is shown, if it is still there. */
  set(tree, isDifference) {
    Object.assign(this, { tree, isDifference });
    this.draw();
  }

  /** From the root to what is shown, by names. */
  shown() {
    const all = [this.tree];
    for (const name of this.path) {
      const next = all.at(-1).c?.find(child => child.n === name);
      if (!next) break;
      all.push(next);
    }
    this.path = all.slice(1).map(node => node.n);
    return all;
  }

  draw() {
    const width = this.node.clientWidth;
    if (!this.tree || width < 40) return;
    const parts = [], above = this.shown();
    let depth = above.length;
    above.forEach((node, i) => parts.push(this.box(node, 0, width, i, above.slice(1, i + 1), i < above.length - 1)));
    const lay = (node, x, level, path) => {
      let left = x;
      for (const child of node.c ?? []) {
        const wide = child.v / above.at(-1).v * width;
        if (wide >= LEAST) {
          const here = [...path, child];
          parts.push(this.box(child, left, wide, level, here, false));
          depth = Math.max(depth, level + 1);
          lay(child, left, level + 1, here);
        }
        left += wide;
      }
    };
    if (above.at(-1).v > 0) lay(above.at(-1), 0, above.length, above.slice(1));
    const height = depth * ROW;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.replaceChildren(...parts);
  }

  box(node, x, width, level, path, isAbove) {
    const y = level * ROW;
    const tell = event => showTip(event.clientX, event.clientY, [node.n, ...(node.p ? [node.p] : []),
      [this.isDifference ? "came" : "bytes", `${bytes(node.v)}, ${share(node.v, this.tree.v)}`], ["objects", count(node.o)]]);
    const zoom = () => {
      this.path = path.map(one => one.n);
      hideTip();
      this.draw();
    };
    const rect = svg("rect", { x, y, width: Math.max(0.5, width), height: ROW - 1, rx: 2 });
    rect.style.fill = level === 0 ? "var(--rest)" : tint(node, this.isDifference);
    const group = svg("g", {
      class: isAbove ? "above" : "", tabindex: 0, role: "button", "aria-label": `${node.n}, ${bytes(node.v)}`,
      onclick: zoom, onpointermove: tell, onpointerleave: hideTip,
      onkeydown: event => { if (event.key === "Enter") zoom(); },
    }, rect);
    const letters = Math.floor((width - 8) / 6.4);
    if (letters >= 3) {
      const name = level === 0 ? `${bytes(node.v)} in all` : node.n;
      group.append(svg("text", { x: x + 4, y: y + 13, class: level === 0 ? "root" : "" }, name.length > letters ? `${name.slice(0, letters - 1)}…` : name));
    }
    return group;
  }
}

/** Rows `{ name, place, bytes, objects }`. */
export function functions(table, rows, isDifference) {
  const whole = rows.reduce((n, row) => n + Math.abs(row.bytes), 0);
  const signed = (n, show) => isDifference && n > 0 ? `+${show(n)}` : show(n);
  const head = [["bytes", "n"], ["share", "n"], ["objects", "n"], ["function", ""], ["", ""]];
  const one = row => {
    const className = isDifference ? (row.bytes > 0 ? "n grown" : "n shrunk") : "n";
    return el("tr", {}, el("td", { class: className }, signed(row.bytes, bytes)),
      el("td", { class: "n quiet" }, share(Math.abs(row.bytes), whole)), el("td", { class: "n" }, signed(row.objects, count)),
      el("td", { class: "code" }, row.name), el("td", { class: "quiet code" }, row.place));
  };
  if (rows.length === 0) return table.replaceChildren();
  table.replaceChildren(el("tr", {}, ...head.map(([text, className]) => el("th", { class: className }, text))),
    ...rows.slice(0, 20).map(one));
}
