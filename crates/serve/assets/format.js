// Numbers and elements.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** As the program prints amounts: `1.2 GiB`. */
export function bytes(n) {
  const sign = n < 0 ? "−" : "";
  let value = Math.abs(n), unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${sign}${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}

export const count = n => Math.round(n).toLocaleString("en-US");

export function share(part, whole) {
  if (!whole) return "–";
  const percent = part * 100 / whole;
  return percent > 0 && percent < 0.1 ? "< 0.1 %" : `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

const two = n => String(n).padStart(2, "0");

export function clock(ms, withDay = false) {
  const at = new Date(ms);
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return withDay ? `${at.getMonth() + 1}/${at.getDate()} ${time}` : time;
}

/** `3 min`, for distances. */
export function span(ms) {
  const s = Math.round(ms / 1000);
  if (s < 120) return `${s} s`;
  return s < 7200 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`;
}

/** An element; text and elements are its children. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter(child => child !== undefined && child !== null));
  return node;
}

/** The colour of a group or place, by the theme. */
export const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** A box of a group's colour. */
export function box(name) {
  const i = el("i");
  i.style.background = `var(--${name})`;
  return i;
}

/** A bar of parts: `[colour, amount]`. */
export function bar(parts, className = "bar small") {
  const node = el("div", { class: className });
  fill(node, parts);
  return node;
}

export function fill(node, parts) {
  while (node.children.length < parts.length) node.append(el("i"));
  while (node.children.length > parts.length) node.lastChild.remove();
  parts.forEach(([name, amount, title], i) => {
    const part = node.children[i];
    part.style.background = `var(--${name})`;
    part.style.flexGrow = amount;
    part.style.flexBasis = "0";
    if (title) part.title = title;
  });
}

const tip = () => document.getElementById("tip");

/** Shows lines near a place of the window; a line is a text, or a name and a value. */
export function showTip(x, y, lines) {
  const node = tip();
  node.replaceChildren(...lines.map((line, i) => Array.isArray(line)
    ? el("div", {}, el("span", {}, line[0]), el("span", {}, line[1]))
    : el("div", { class: i === 0 ? "name" : "" }, line)));
  node.hidden = false;
  const { width, height } = node.getBoundingClientRect();
  node.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - width - 6))}px`;
  node.style.top = `${y + 18 + height > innerHeight ? Math.max(6, y - height - 12) : y + 18}px`;
}

export const hideTip = () => { tip().hidden = true; };
