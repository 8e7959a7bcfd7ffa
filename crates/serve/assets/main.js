// The page: which process is shown, and what is asked when.

import { Chart } from "./chart.js";
import { show as showClasses } from "./classes.js";
import { Flame, functions } from "./flame.js";
import { bytes, clock, count, el } from "./format.js";
import { list, options, rows, show } from "./ledger.js";
import { HeapMap } from "./map.js";

const byId = id => document.getElementById(id);
const GROUPS = ["live", "caches", "slabs", "free", "own", "rest"];
const RANGES = [["5 min", 300e3], ["1 h", 3600e3], ["all", 0]];
const MAP_MS = 3000, PROFILE_MS = 10000;

const state = {
  pid: null, paused: false, every: 1000, range: RANGES[0][1], one: null, columns: [], points: [],
  visible: new Set(), mapAt: 0, profileAt: 0, chosen: null, moments: [],
};

/** `null` after an answer that is no success; its sentence is shown where it belongs. */
async function ask(path, onWrong) {
  const answer = await fetch(path, { cache: "no-store" });
  const body = await answer.json();
  if (answer.ok) return body;
  onWrong?.(body.error);
  return null;
}

const chart = new Chart(byId("chart"), chosen => {
  state.chosen = chart.chosen = chosen;
  state.profileAt = 0;
  chart.draw();
  tellChosen();
  if (chosen) fillMoments();
  profile();
});
const flame = new Flame(byId("flame"));
const heapMap = new HeapMap(byId("cells"), byId("hugepage"), byId("map-legend"), byId("map-text"),
  i => ask(`/api/processes/${state.pid}/map/${i}`));

function tellChosen() {
  const { chosen } = state;
  byId("chosen").textContent = chosen ? `${clock(chosen.since)} to ${clock(chosen.at)}: the profile below shows what came`
    : "Drag to see what came in that time, below.";
}

byId("ranges").append(...RANGES.map(([text, range]) => el("button", {
  type: "button", "aria-pressed": String(range === state.range), onclick: event => {
    state.range = range;
    for (const one of byId("ranges").children) one.setAttribute("aria-pressed", String(one === event.target));
    draw();
  },
}, text)));

/** Sums by group of each point. */
function draw() {
  if (!state.one) return;
  const { groups } = state.one;
  const at = name => state.columns.indexOf(name);
  const places = groups.map(group => group.rows.map(at));
  const rss = at("rss_bytes");
  const points = state.points.map(point => ({
    at: point[0], rss: point[rss], sums: places.map(all => all.reduce((n, i) => n + point[i], 0)),
  }));
  chart.set(points, groups, state.range);
}

function choose(pid) {
  Object.assign(state, { pid, one: null, points: [], columns: [], mapAt: 0, profileAt: 0, chosen: null, moments: [] });
  chart.chosen = null;
  flame.path = [];
  heapMap.clear();
  if (location.hash !== `#${pid}`) history.replaceState(null, "", `#${pid}`);
  tellChosen();
  tick(true);
}

async function tick(force = false) {
  if ((state.paused || document.hidden) && !force) return;
  try {
    const all = await ask("/api/processes");
    banner("");
    state.every = all.every_ms;
    byId("machine").textContent = all.machine + (all.experiment ? ` · experiment ${all.experiment}` : "");
    const pids = all.processes.map(process => process.pid);
    if (!pids.includes(state.pid)) {
      const wanted = Number(location.hash.slice(1));
      state.pid = pids.includes(wanted) ? wanted : pids[0] ?? null;
    }
    list(all.processes, GROUPS, state.pid, choose);
    byId("process").hidden = state.pid === null;
    if (state.pid === null) {
      const unreadable = Object.entries(all.unreadable).map(([pid, why]) => `Process ${pid}: ${why}.`).join(" ");
      banner(`No process on Craton yet: start one by craton run -- CMD. It will show up here. ${unreadable}`);
      return;
    }
    await read();
  } catch {
    banner("craton serve does not answer; the figures are the last ones. It is asked again each second.");
  }
}

async function read() {
  const { pid } = state;
  const last = state.points.at(-1)?.[0] ?? 0;
  const [one, more] = await Promise.all([
    ask(`/api/processes/${pid}`), ask(`/api/processes/${pid}/history?since=${last}`),
  ]);
  if (pid !== state.pid || !one || !more) return;
  state.one = one;
  state.columns = more.columns;
  // Another answer may have come meanwhile.
  const newest = state.points.at(-1)?.[0] ?? 0;
  state.points.push(...more.points.filter(point => point[0] > newest));
  if (state.points.length > 6000) state.points.splice(0, 1000);
  document.title = `${bytes(one.rss_bytes)} ${one.exe}`;
  show(one);
  showClasses(one.classes);
  draw();
  const now = performance.now();
  if (one.ended) {
    if (!heapMap.map) heapMap.tell("The process has ended, and its heap with it.");
    return;
  }
  if (state.visible.has("map") && now - state.mapAt >= MAP_MS) {
    state.mapAt = now;
    const map = await ask(`/api/processes/${pid}/map`, why => heapMap.tell(`${why}.`));
    if (map && pid === state.pid) heapMap.set(map);
  }
  if (state.visible.has("profile") && now - state.profileAt >= PROFILE_MS && !state.chosen) await profile();
}

function fillMoments() {
  const option = (value, text) => el("option", { value }, text);
  const chosen = { at: byId("at").value, since: byId("since").value };
  const times = [...state.moments].reverse().map(at => [String(at), clock(at)]);
  byId("at").replaceChildren(option("", "now"), ...times.map(([value, text]) => option(value, text)));
  byId("since").replaceChildren(option("", "the start"), ...times.map(([value, text]) => option(value, text)));
  for (const [id, value] of Object.entries(chosen)) {
    byId(id).value = value;
    if (byId(id).value !== value) byId(id).value = "";
  }
}

async function profile() {
  if (state.pid === null) return;
  const { pid } = state;
  state.profileAt = performance.now();
  const measure = byId("measure").value;
  const at = state.chosen?.at ?? byId("at").value, since = state.chosen?.since ?? byId("since").value;
  const query = new URLSearchParams({ measure, ...(at ? { at } : {}), ...(since ? { since } : {}) });
  const wrong = why => {
    byId("profile-text").textContent = `${why}.`;
    byId("flame").hidden = true;
    byId("functions").replaceChildren();
  };
  const answer = await ask(`/api/processes/${pid}/profile?${query}`, wrong);
  if (!answer || pid !== state.pid) return;
  state.moments = answer.moments;
  // Audit's records have no past and no captive bytes.
  for (const option of byId("measure").options) option.disabled = answer.exact_objects > 0 && option.value !== "live";
  if (!state.chosen) fillMoments();
  const isDifference = answer.since_ms !== null;
  const what = { live: "live", peak: "lived at the peak", total: "were allocated", short: "were freed within 10 ms",
    captive: "are free but held" }[measure];
  const time = isDifference ? `From ${clock(answer.since_ms)} to ${clock(answer.at_ms)}: ` : "";
  const amount = isDifference && answer.bytes > 0 ? `+${bytes(answer.bytes)}` : bytes(answer.bytes);
  byId("profile-text").textContent = `${time}${amount} in ${count(answer.objects)} objects ${what}; ${source(answer, measure)}.`
    + (isDifference ? " The graph shows what came; the list also what went." : "")
    + (answer.dropped_samples ? ` ${count(answer.dropped_samples)} samples were dropped.` : "");
  byId("flame").hidden = answer.functions.length === 0;
  flame.set(answer.tree, isDifference);
  functions(byId("functions"), answer.functions, isDifference);
}

/** How a number of the profile is known. */
function source(answer, measure) {
  const samples = measure === "live" ? answer.live_samples : answer.samples;
  const estimate = `estimated from ${count(samples)} samples, one in ${bytes(answer.interval_bytes)}`;
  if (!answer.exact_objects) return estimate;
  if (!answer.live_samples) return "exact, by debug=audit";
  return `${count(answer.exact_objects)} objects exact, by debug=audit; the others ${estimate}`;
}

for (const id of ["measure", "at", "since"]) {
  byId(id).addEventListener("change", () => {
    state.chosen = chart.chosen = null;
    tellChosen();
    chart.draw();
    flame.path = [];
    profile();
  });
}
byId("rows").addEventListener("toggle", () => { if (state.one) rows(state.one); });
for (const details of document.querySelectorAll("#more details")) {
  details.addEventListener("toggle", () => { if (state.one) options(state.one); });
}
byId("pause").addEventListener("click", event => {
  state.paused = !state.paused;
  event.target.setAttribute("aria-pressed", String(state.paused));
  event.target.textContent = state.paused ? "Paused" : "Pause";
});

const dark = matchMedia("(prefers-color-scheme: dark)");
function theme() {
  const wanted = localStorage.getItem("theme") ?? (dark.matches ? "dark" : "light");
  document.documentElement.dataset.theme = wanted;
  byId("theme").textContent = wanted === "dark" ? "Light" : "Dark";
  // Its legend is drawn too.
  if (heapMap.map) heapMap.set(heapMap.map);
}
byId("theme").addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  theme();
});
dark.addEventListener("change", theme);
theme();
tellChosen();

function banner(text) {
  byId("banner").hidden = text === "";
  byId("banner").textContent = text;
}

// What is far from the window is not asked for.
const observer = new IntersectionObserver(entries => {
  for (const entry of entries) {
    state.visible[entry.isIntersecting ? "add" : "delete"](entry.target.id);
    if (entry.isIntersecting && entry.target.id === "profile" && state.profileAt === 0) profile();
  }
}, { rootMargin: "200px" });
for (const id of ["map", "profile"]) observer.observe(byId(id));
addEventListener("hashchange", () => {
  const pid = Number(location.hash.slice(1));
  if (pid && pid !== state.pid) choose(pid);
});
document.addEventListener("visibilitychange", () => tick());

async function loop() {
  await tick();
  setTimeout(loop, state.every);
}
loop();
