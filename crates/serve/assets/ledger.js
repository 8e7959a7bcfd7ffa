// What a process's memory is for, now: a bar, a legend, and all rows.

import { bar, box, bytes, count, el, fill, share } from "./format.js";

const byId = id => document.getElementById(id);

/** `live_bytes` as `live`. */
export const plain = name => name.replace(/_bytes$/, "").replaceAll("_", " ");

export function show(one) {
  byId("name").textContent = one.exe;
  byId("pid").textContent = `process ${one.pid}${one.ended ? "" : `, ${count(one.threads)} thread${one.threads === 1 ? "" : "s"}`}`;
  byId("command").textContent = one.command;
  byId("ended").hidden = !one.ended;
  byId("ended").textContent = one.ended ? `${one.ended}. These are its last numbers.` : "";
  byId("sentence").textContent = one.sentences[0];
  byId("free").textContent = one.sentences.slice(1).join(" ");
  byId("warnings").hidden = one.warnings.length === 0;
  byId("warnings").replaceChildren(...one.warnings.map(text => el("li", {}, text)));
  const text = group => `${group.text}: ${bytes(one.sums[group.name])}, ${share(one.sums[group.name], one.rss_bytes)}`;
  fill(byId("bar"), one.groups.map(group => [group.name, one.sums[group.name], text(group)]));
  byId("bar").setAttribute("aria-label", one.groups.map(text).join("; "));
  byId("legend").replaceChildren(...one.groups.map(group => el("li", {}, box(group.name), el("span", {}, group.text),
    el("b", {}, bytes(one.sums[group.name])), el("span", { class: "quiet" }, share(one.sums[group.name], one.rss_bytes)))));
  if (byId("rows").open) rows(one);
}

export function rows(one) {
  const all = Object.fromEntries([...one.heap, ...one.rest].map(row => [row.name, row]));
  const line = (group, name) => {
    const row = all[name];
    const dot = el("span", { class: "dot" });
    dot.style.background = `var(--${group.name})`;
    return el("tr", {}, el("td", {}, dot, plain(name)), el("td", { class: "n" }, bytes(row.bytes)),
      el("td", { class: "n quiet" }, share(row.bytes, one.rss_bytes)), el("td", { class: "quiet" }, row.text));
  };
  const lines = one.groups.flatMap(group => group.rows.filter(name => all[name]?.bytes > 0).map(name => line(group, name)));
  const sum = (name, value, text) => el("tr", {}, el("td", {}, el("b", {}, name)),
    el("td", { class: "n" }, el("b", {}, bytes(value))), el("td"), el("td", { class: "quiet" }, text));
  byId("ledger").replaceChildren(
    el("tr", {}, ...["row", "bytes", "share", "what it is"].map((text, i) => el("th", { class: i === 1 || i === 2 ? "n" : "" }, text))),
    ...lines, sum("RSS", one.rss_bytes, "the sum"), sum("PSS", one.pss_bytes, "shared pages divided among their processes"),
    ...(one.swap_bytes ? [sum("swap", one.swap_bytes, "in the swap, besides")] : []));
}

export function options(one) {
  byId("options").replaceChildren(...Object.entries(one.options).map(([key, option]) => el("tr", {},
    el("td", {}, option.set ? el("b", {}, key) : key), el("td", { class: "code" }, option.value || "–"))));
  byId("counters").replaceChildren(...one.counters.map(counter => el("tr", {}, el("td", {}, counter.name.replaceAll("_", " ")),
    el("td", { class: "n" }, counter.unit.startsWith("bytes") ? bytes(counter.value) : count(counter.value)),
    el("td", { class: "quiet" }, counter.text))));
}

/** The list of processes; `choose` is called with a number. */
export function list(all, groups, current, choose) {
  const card = process => {
    const sums = process.groups;
    return el("button", {
      class: process.ended ? "process ended" : "process", type: "button", "aria-current": String(process.pid === current),
      title: process.ended ?? process.command, onclick: () => choose(process.pid),
    },
    el("span", { class: "top" }, el("b", {}, process.exe), el("span", { class: "quiet" }, String(process.pid)),
      el("span", { class: "size" }, process.ended ? "ended" : bytes(process.rss_bytes))),
    bar(groups.map(name => [name, sums[name]])));
  };
  byId("processes").replaceChildren(...all.map(card));
}
