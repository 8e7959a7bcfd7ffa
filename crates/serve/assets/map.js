// The heap, a cell for each hugepage.

import { box, bytes, colour, count, el, hideTip, share, showTip } from "./format.js";

const GAP = 2;
/** Rows of the table of spans. */
const KINDS = 8;
const NAMES = {
  dense: "small objects (dense)", sparse: "other short spans (sparse)", large: "large objects", region: "regions",
  cached: "free, kept", unbacked: "free, given back",
};
const FLAGS = {
  huge: "on one huge frame", broken: "broken: free pages were released one by one", guarded: "kept on small pages",
  donated: "a large object's tail, with donated slack",
};

export class HeapMap {
  /** `ask` fetches the spans of a hugepage. */
  constructor(canvas, panel, legend, text, ask) {
    Object.assign(this, { canvas, panel, legend, text, ask, chosen: null });
    canvas.addEventListener("pointermove", event => this.hover(event));
    canvas.addEventListener("pointerleave", () => { this.over = null; hideTip(); this.draw(); });
    canvas.addEventListener("click", event => this.choose(this.at(event)));
    canvas.addEventListener("keydown", event => this.key(event));
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
  }

  /** Of another process. */
  clear() {
    this.map = null;
    this.choose(null);
    this.canvas.hidden = this.legend.hidden = true;
    this.tell("It is read while it is in sight.");
  }

  /** A sentence above the cells, or instead of them. */
  tell(text) {
    this.text.textContent = text;
  }

  set(map) {
    const isEmpty = map.hugepages.length === 0;
    this.canvas.hidden = this.legend.hidden = isEmpty;
    if (isEmpty) {
      this.map = map;
      this.choose(null);
      this.tell("The heap has no hugepage in use: all objects, if there are any, have their own mappings.");
      return;
    }
    const before = this.map?.hugepages[this.chosen];
    this.map = map;
    const cells = map.hugepages;
    const by = Object.fromEntries(map.places.map((name, i) => [name, cells.filter(cell => cell[0] === i)]));
    const sum = (all, column) => all.reduce((n, cell) => n + cell[column], 0);
    const used = sum(cells, 1), resident = sum(cells, 3), huge = cells.filter(cell => cell[4] & 1).length;
    const more = map.count - cells.length;
    const many = n => `${count(n)} hugepage${n === 1 ? "" : "s"}`;
    this.tell(`${many(map.count)} of 2 MiB from ${map.base}: ${bytes(used)} used, ${bytes(resident)} `
      + `with memory, ${share(huge * map.hugepage_bytes, resident)} of it on huge frames.`
      + (more > 0 ? ` The last ${more === 1 ? "one is" : `${count(more)} are`} not shown: free and without memory.` : ""));
    const item = (sign, text) => el("li", {}, sign, el("span", {}, text));
    const flag = (name, draw) => {
      const sign = el("canvas", { class: "small" });
      sign.width = sign.height = 22;
      const context = sign.getContext("2d");
      context.scale(2, 2);
      draw(context, 11);
      return item(sign, name);
    };
    this.legend.replaceChildren(
      ...map.places.map(name => item(box(name), `${NAMES[name]} ${count(by[name].length)}`)),
      flag("on small frames", (context, size) => {
        context.fillStyle = colour("sparse");
        context.fillRect(0, 0, size, size);
        pieces(context, 0, 0, size);
      }),
      flag("broken", (context, size) => broken(context, 0, 0, size)),
      flag("donated", (context, size) => donated(context, 0, 0, size)));
    this.draw();
    // Its spans are asked for again if something there has changed.
    if (this.chosen !== null && cells[this.chosen] && String(cells[this.chosen]) !== String(before)) this.show();
  }

  draw() {
    const { canvas, map } = this;
    const width = canvas.clientWidth;
    if (!map || width < 40) return;
    const cells = map.hugepages;
    const size = this.size = cells.length > 20000 ? 6 : cells.length > 3000 ? 9 : cells.length > 400 ? 14 : 20;
    this.columns = Math.max(1, Math.floor((width + GAP) / (size + GAP)));
    const rows = Math.max(1, Math.ceil(cells.length / this.columns));
    const ratio = devicePixelRatio || 1;
    const height = rows * (size + GAP) - GAP;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const colours = map.places.map(colour);
    const empty = colour("unbacked"), line = colour("text");
    cells.forEach((cell, i) => {
      const x = i % this.columns * (size + GAP), y = Math.floor(i / this.columns) * (size + GAP);
      const [place, used, , resident, flags] = cell;
      context.fillStyle = empty;
      context.fillRect(x, y, size, size);
      const full = part => Math.round(Math.min(1, part / map.hugepage_bytes) * size * ratio) / ratio;
      // Solid is memory in use; pale is free memory, or a part of objects without memory.
      context.globalAlpha = 0.32;
      context.fillStyle = colours[place];
      const held = full(Math.max(resident, used));
      context.fillRect(x, y + size - held, size, held);
      context.globalAlpha = 1;
      const both = Math.min(used, resident);
      const filled = both > 0 ? Math.max(1, full(both)) : 0;
      context.fillRect(x, y + size - filled, size, filled);
      if (!(flags & 1) && resident > 0) pieces(context, x, y, size);
      if (flags & 2) broken(context, x, y, size);
      if (flags & 8) donated(context, x, y, size);
      if (i === this.chosen || i === this.over) {
        context.strokeStyle = line;
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, size - 2, size - 2);
      }
    });
  }

  at(event) {
    if (!this.map) return null;
    const { left, top } = this.canvas.getBoundingClientRect();
    const each = this.size + GAP;
    const column = Math.floor((event.clientX - left) / each), row = Math.floor((event.clientY - top) / each);
    const i = row * this.columns + column;
    return column >= 0 && column < this.columns && i >= 0 && i < this.map.hugepages.length ? i : null;
  }

  lines(i) {
    const [place, used, kept, resident, flags, spans] = this.map.hugepages[i];
    const name = this.map.places[place], whole = this.map.hugepage_bytes;
    return [`hugepage ${i}: ${NAMES[name]}`, ["used", `${bytes(used)}, ${share(used, whole)}`], ["with memory", bytes(resident)],
      ...(kept ? [["freed spans, kept", bytes(kept)]] : []), ["spans", count(spans)],
      ...this.map.flags.filter((_, bit) => flags >> bit & 1).map(flag => FLAGS[flag])];
  }

  hover(event) {
    const i = this.at(event);
    if (i !== this.over) {
      this.over = i;
      this.draw();
    }
    if (i === null) hideTip();
    else showTip(event.clientX, event.clientY, [...this.lines(i), "click for its spans"]);
  }

  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns }[event.key];
    if (!by || !this.map?.hugepages.length) return;
    event.preventDefault();
    this.choose(Math.min(this.map.hugepages.length - 1, Math.max(0, (this.chosen ?? -by) + by)));
  }

  choose(i) {
    this.chosen = i;
    this.spans = null;
    this.draw();
    this.panel.hidden = i === null;
    if (i !== null) this.show();
  }

  async show() {
    const i = this.chosen;
    const address = `0x${(BigInt(this.map.base) + BigInt(i) * BigInt(this.map.hugepage_bytes)).toString(16)}`;
    const [title, ...lines] = this.lines(i);
    const text = lines.map(line => Array.isArray(line) ? `${line[0]} ${line[1]}` : line).join("; ");
    const answer = await this.ask(i);
    if (this.chosen !== i) return;
    if (answer) this.spans = answer.spans;
    this.panel.replaceChildren(el("h3", {}, title), el("div", { class: "quiet" }, `${text}; at ${address}.`), ...this.contents());
  }

  /** A strip by address, and a row for each kind of span. */
  contents() {
    if (!this.spans) return [];
    const pages = this.map.hugepage_bytes / this.map.page_bytes;
    const place = this.map.places[this.map.hugepages[this.chosen][0]];
    const strip = el("div", { class: "strip" });
    let at = 0;
    const piece = (length, opacity, title) => {
      const part = el("i", { title });
      part.style.width = `${length / pages * 100}%`;
      if (opacity) {
        part.style.background = `color-mix(in srgb, var(--${place}) ${Math.round(opacity * 100)}%, var(--unbacked))`;
      }
      strip.append(part);
    };
    for (const span of this.spans) {
      if (span.first_page > at) piece(span.first_page - at, 0, "free");
      const fullness = span.capacity ? 0.35 + 0.65 * span.used / span.capacity : 1;
      piece(span.pages, fullness, describe(span, this.map.page_bytes));
      at = span.first_page + span.pages;
    }
    const kinds = new Map();
    for (const span of this.spans) {
      const key = `${span.kind} ${span.object_bytes} ${span.owner}`;
      const all = kinds.get(key) ?? { ...span, spans: 0, pages: 0, used: 0, capacity: 0 };
      kinds.set(key, { ...all, spans: all.spans + 1, pages: all.pages + span.pages, used: all.used + span.used,
        capacity: all.capacity + span.capacity });
    }
    const sorted = [...kinds.values()].sort((a, b) => b.pages - a.pages);
    const rows = sorted.slice(0, KINDS).map(kind => el("tr", {},
      el("td", {}, named(kind)), el("td", { class: "n" }, count(kind.spans)),
      el("td", { class: "n" }, bytes(kind.pages * this.map.page_bytes)),
      el("td", { class: "n" }, kind.object_bytes && kind.kind !== "cache" ? `${count(kind.used)} of ${count(kind.capacity)}` : "–")));
    const head = ["objects of", "spans", "memory here", "objects out"].map((text, i) => el("th", { class: i ? "n" : "" }, text));
    const more = sorted.slice(KINDS);
    const rest = more.reduce((n, kind) => n + kind.pages, 0) * this.map.page_bytes;
    return [strip, el("div", { class: "scroll" }, el("table", {}, el("tr", {}, ...head), ...rows)),
      ...(more.length ? [el("div", { class: "quiet" }, `and ${more.length} other kinds with ${bytes(rest)}`)] : [])];
  }
}

const named = span => {
  const of = span.owner ? ` of ${span.owner}` : "";
  if (span.kind === "large") return `large object${of}`;
  if (span.kind === "notes") return "an object cache's notes";
  const more = { cache: ", object cache", "two classes": ", beside older ones" }[span.kind] ?? "";
  return `${bytes(span.object_bytes)}${more}${of}`;
};

const describe = (span, page) => `${named(span)}: ${bytes(span.span_pages * page)}`
  + (span.object_bytes && span.capacity ? `, ${span.used} of ${span.capacity} out` : "");

/** Memory in small pieces. */
function pieces(context, x, y, size) {
  const half = Math.round(size / 2);
  context.fillStyle = colour("card");
  context.fillRect(x + half - 0.5, y, 1, size);
  context.fillRect(x, y + half - 0.5, size, 1);
}

function broken(context, x, y, size) {
  context.strokeStyle = colour("grown");
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x + 1, y + 1);
  context.lineTo(x + size - 1, y + size - 1);
  context.stroke();
}

function donated(context, x, y, size) {
  context.fillStyle = colour("text");
  context.beginPath();
  context.arc(x + size / 2, y + size / 2, Math.max(1.2, size / 8), 0, 7);
  context.fill();
}
