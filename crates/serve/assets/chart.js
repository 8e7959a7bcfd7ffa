// The ledger over time: stacked areas, whose sum is RSS.

import { bytes, clock, hideTip, showTip, span, svg } from "./format.js";

const HEIGHT = 260, LEFT = 66, BOTTOM = 24, TOP = 10, RIGHT = 8;
/** Less is a click. */
const DRAG = 6;

/** A power of 2 times a unit, so that there are at most five lines. */
function step(most) {
  let size = 1;
  while (most / size > 5) size *= 2;
  return size;
}

const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

function ticks(from, to, width) {
  const most = Math.max(2, Math.floor(width / 110));
  const each = (SECONDS.find(s => (to - from) / 1000 / s <= most) ?? 86400) * 1000;
  const shift = new Date(from).getTimezoneOffset() * 60000;
  const all = [];
  for (let at = Math.ceil((from - shift) / each) * each + shift; at <= to; at += each) all.push(at);
  return all;
}

export class Chart {
  /** `choose` gets the times between which to compare, or one time twice. */
  constructor(node, choose) {
    this.node = node;
    this.choose = choose;
    this.chosen = null;
    this.svg = svg("svg", { height: HEIGHT, role: "img" });
    node.append(this.svg);
    for (const [name, act] of [["pointermove", "move"], ["pointerdown", "down"], ["pointerup", "up"], ["pointerleave", "leave"],
      ["pointercancel", "leave"]]) this.svg.addEventListener(name, event => this[act](event));
    new ResizeObserver(() => this.draw()).observe(node);
  }

  /** Points `{ at, sums: [by group], rss }`; groups `{ name, text }`. */
  set(points, groups, range) {
    const last = points.at(-1)?.at ?? 0;
    const from = range ? Math.max(points[0]?.at ?? 0, last - range) : 0;
    let first = points.findIndex(point => point.at >= from);
    // The line begins at the left edge.
    first = Math.max(0, first - 1);
    Object.assign(this, { points: points.slice(first), groups, from: Math.max(from, points[first]?.at ?? 0), to: last });
    this.draw();
  }

  draw() {
    const { points, svg: root } = this;
    this.width = this.node.clientWidth;
    if (!points?.length || this.width < 80) return;
    root.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    if (this.to - this.from < 1000) this.from = this.to - 1000;
    const right = this.width - RIGHT, bottom = HEIGHT - BOTTOM;
    const top = Math.max(...points.map(point => point.rss), 1) * 1.06;
    const x = this.x = at => LEFT + Math.max(0, (at - this.from) / (this.to - this.from)) * (right - LEFT);
    const y = value => bottom - value / top * (bottom - TOP);
    this.time = px => this.from + Math.min(1, Math.max(0, (px - LEFT) / (right - LEFT))) * (this.to - this.from);
    const parts = [];
    const each = step(top);
    for (let value = 0; value <= top; value += each) {
      parts.push(svg("line", { class: "grid", x1: LEFT, x2: right, y1: y(value), y2: y(value) }),
        svg("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, bytes(value)));
    }
    const shown = this.thin(points);
    let below = shown.map(() => 0);
    this.groups.forEach((group, i) => {
      const above = shown.map((point, j) => below[j] + point.sums[i]);
      const line = (values, j) => `${x(shown[j].at).toFixed(1)},${y(values[j]).toFixed(1)}`;
      const forth = shown.map((_, j) => line(above, j)), back = shown.map((_, j) => line(below, j)).reverse();
      const area = svg("path", { d: `M${forth.join("L")}L${back.join("L")}Z`, "data-group": group.name });
      area.style.fill = `var(--${group.name})`;
      parts.push(area);
      below = above;
    });
    parts.push(svg("path", { class: "rss", d: `M${shown.map(p => `${x(p.at).toFixed(1)},${y(p.rss).toFixed(1)}`).join("L")}` }));
    for (const at of ticks(this.from, this.to, right - LEFT)) {
      const px = x(at);
      const anchor = px > right - 30 ? "end" : px < LEFT + 30 ? "start" : "middle";
      parts.push(svg("text", { x: px, y: HEIGHT - 6, "text-anchor": anchor }, clock(at)));
    }
    if (this.chosen) {
      const [since, at] = [this.chosen.since, this.chosen.at].map(x);
      parts.push(svg("rect", { class: "chosen", x: since, width: Math.max(0, at - since), y: TOP, height: bottom - TOP }),
        ...[since, at].map(px => svg("line", { class: "edge", x1: px, x2: px, y1: TOP, y2: bottom })));
    }
    this.cursor = svg("line", { class: "cursor", y1: TOP, y2: bottom, visibility: "hidden" });
    this.drawn = svg("rect", { class: "chosen", y: TOP, height: bottom - TOP, visibility: "hidden" });
    root.setAttribute("aria-label", `Memory over ${span(this.to - this.from)}; now ${bytes(points.at(-1).rss)}`);
    root.replaceChildren(...parts, this.drawn, this.cursor);
    if (this.over) this.tell(this.over);
  }

  /** Two points a pixel are enough. */
  thin(points) {
    const each = Math.max(1, Math.floor(points.length / (this.width * 2)));
    return points.filter((_, i) => i % each === 0 || i === points.length - 1);
  }

  place(event) {
    const { left } = this.svg.getBoundingClientRect();
    return { px: event.clientX - left, x: event.clientX, y: event.clientY };
  }

  tell({ px, x, y }) {
    const at = this.time(px);
    const point = this.points.reduce((best, one) => Math.abs(one.at - at) < Math.abs(best.at - at) ? one : best);
    const line = this.x(point.at);
    this.cursor.setAttribute("x1", line);
    this.cursor.setAttribute("x2", line);
    this.cursor.setAttribute("visibility", "visible");
    const rows = this.groups.map((group, i) => [group.text, bytes(point.sums[i])]).reverse();
    showTip(x, y, [`${clock(point.at)}: ${bytes(point.rss)}`, ...rows]);
  }

  move(event) {
    if (!this.time) return;
    this.over = this.place(event);
    this.tell(this.over);
    if (this.began !== undefined) {
      const [from, to] = [this.began, this.over.px].sort((a, b) => a - b);
      this.drawn.setAttribute("x", from);
      this.drawn.setAttribute("width", to - from);
      this.drawn.setAttribute("visibility", to - from >= DRAG ? "visible" : "hidden");
    }
  }

  down(event) {
    if (!this.time || event.button !== 0) return;
    this.began = this.place(event).px;
    if (event.pointerType === "mouse") this.svg.setPointerCapture(event.pointerId);
    this.move(event);
  }

  up(event) {
    if (this.began === undefined) return;
    const [from, to] = [this.began, this.place(event).px].sort((a, b) => a - b);
    this.began = undefined;
    this.choose(to - from < DRAG ? null : { since: Math.round(this.time(from)), at: Math.round(this.time(to)) });
  }

  leave() {
    this.over = this.began = undefined;
    this.cursor?.setAttribute("visibility", "hidden");
    this.drawn?.setAttribute("visibility", "hidden");
    hideTip();
  }
}
