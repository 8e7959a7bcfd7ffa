// The page in a real browser: what it shows, in light and dark, wide and on a phone, and what it
// does when a process or the server ends. scripts/serve-browser.sh starts it.
//   node browser.mjs CRATON DEMO PICTURES

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import process from "node:process";

const require = createRequire(`${process.env.BROWSER_TOOLS}/`);
const { chromium } = require("playwright-core");
const [craton, demo, pictures] = process.argv.slice(2);

const started = [];

async function start(command, args, isReady) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  started.push(child);
  let text = "";
  for await (const part of child.stdout) {
    text += part;
    if (isReady(text)) return { child, text };
  }
  throw new Error(`${command} ${args.join(" ")} ended: ${text}`);
}

const program = (option = "profile=64K") => start(craton, ["run", "-o", option, "--", demo], text => text.includes("ready"));

async function open(browser, url, options) {
  const page = await browser.newPage(options);
  page.on("console", message => assert.notEqual(message.type(), "error", message.text()));
  page.on("pageerror", error => assert.fail(error.stack));
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector("#sentence")?.textContent.includes("in memory"));
  return page;
}

async function isWhole(page) {
  const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= width, `the page is ${wide} wide on a screen of ${width}`);
}

/** Scrolls to each part, so that it asks for what it shows. */
async function loaded(page) {
  for (const id of ["map", "profile", "classes"]) await page.locator(`#${id}`).scrollIntoViewIfNeeded();
  await page.locator("#map").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.querySelector("#map-text").textContent.includes("hugepages of 2 MiB"));
  await page.locator("#profile").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.querySelectorAll("#flame rect").length > 3);
}

async function shows(page) {
  assert.match(await page.textContent("#sentence"), /MiB in memory, of which the heap holds .* in objects/);
  assert.equal(await page.locator("#legend li").count(), 6);
  await page.waitForFunction(() => document.querySelectorAll("#chart path[data-group]").length === 6);
  assert.ok(await page.locator("#class-table tr").count() > 5);
  const functions = await page.textContent("#functions");
  for (const name of ["read_body", "cache_page", "decode_image"]) assert.ok(functions.includes(name), functions);
}

async function answersHands(page) {
  // A hugepage tells what it has, and a click its spans.
  await page.locator("#cells").scrollIntoViewIfNeeded();
  await page.locator("#cells").hover({ position: { x: 8, y: 8 } });
  assert.match(await page.textContent("#tip"), /hugepage 0: .*used.*with memory/s);
  await page.locator("#cells").click({ position: { x: 8, y: 8 } });
  await page.waitForFunction(() => document.querySelectorAll("#hugepage .strip i").length > 3);
  assert.match(await page.textContent("#hugepage"), /objects of.*objects out.* of /s);
  // A function fills the width when it is clicked, and the root brings all back.
  const box = page.locator("#flame g", { hasText: "read_body" }).first();
  await box.click();
  await page.waitForFunction(() => document.querySelectorAll("#flame g.above").length > 1);
  await page.locator("#flame g").first().click();
  await page.waitForFunction(() => document.querySelectorAll("#flame g.above").length === 0);
  // Another measure.
  await page.selectOption("#measure", "total");
  await page.waitForFunction(() => document.querySelector("#profile-text").textContent.includes("were allocated"));
  await page.selectOption("#measure", "captive");
  await page.waitForFunction(() => document.querySelector("#profile-text").textContent.includes("free but held"));
  await page.selectOption("#measure", "live");
  await page.locator("#rows summary").click();
  await page.waitForFunction(() => /thread cache.*RSS.*PSS/s.test(document.querySelector("#ledger").textContent));
  await page.locator("#rows summary").click();
  await page.locator("#more summary").first().click();
  await page.waitForFunction(() => document.querySelector("#options").textContent.includes("profile64K"));
  await page.locator("#more summary").first().click();
}

/** From its left to its right part, over the chart. */
async function drag(page) {
  await page.locator("#chart").scrollIntoViewIfNeeded();
  const { x, y, width, height } = await page.locator("#chart").boundingBox();
  await page.mouse.move(x + 90, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width / 2, y + height / 2, { steps: 4 });
  await page.mouse.move(x + width - 12, y + height / 2, { steps: 4 });
  await page.mouse.up();
}

async function test(browser) {
  const [first, second, audited] = [await program(), await program(), await program("debug=audit")];
  const pids = [first, second, audited].map(one => one.child.pid);
  const serve = ["serve", "--listen", "0", "--every", "0.5", "--experiment", "browser", ...pids.map(String)];
  const server = await start(craton, serve, text => text.includes("\n"));
  const url = server.text.split(" ")[0];

  const page = await open(browser, `${url}#${pids[0]}`, { viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
  console.log(`first paint after ${Math.round(paint)} ms`);
  assert.match(await page.textContent("#machine"), /experiment browser/);
  await loaded(page);
  await shows(page);
  await answersHands(page);
  await isWhole(page);

  // Moments of the profile are two seconds apart; the page asks for them each ten.
  await page.waitForFunction(() => document.querySelectorAll("#since option").length > 5, null, { timeout: 40000 });
  await drag(page);
  await page.waitForFunction(() => /^From .*: \+/.test(document.querySelector("#profile-text").textContent));
  assert.match(await page.textContent("#functions"), /\+.*read_body/s);
  await page.screenshot({ path: `${pictures}/light.png`, fullPage: true });
  await page.locator("#theme").click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.screenshot({ path: `${pictures}/dark-wide.png`, fullPage: true });

  // Audit's records have no captive bytes, and the page offers none.
  const exact = await open(browser, `${url}#${pids[2]}`, { viewport: { width: 1280, height: 900 } });
  await exact.locator("#profile").scrollIntoViewIfNeeded();
  await exact.waitForFunction(() => document.querySelector("#profile-text").textContent.includes("exact, by debug=audit"));
  const offered = await exact.evaluate(() => [...document.querySelectorAll("#measure option:enabled")].map(one => one.value));
  assert.deepEqual(offered, ["live"]);
  await exact.screenshot({ path: `${pictures}/audit.png`, fullPage: true });
  await exact.close();

  const phone = { viewport: { width: 390, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
  for (const scheme of ["light", "dark"]) {
    const small = await open(browser, `${url}#${pids[0]}`, { ...phone, colorScheme: scheme });
    assert.equal(await small.evaluate(() => document.documentElement.dataset.theme), scheme);
    await loaded(small);
    await shows(small);
    await isWhole(small);
    await small.locator("#cells").tap({ position: { x: 8, y: 8 } });
    await small.waitForFunction(() => document.querySelectorAll("#hugepage .strip i").length > 3);
    await isWhole(small);
    await small.screenshot({ path: `${pictures}/phone-${scheme}.png`, fullPage: true });
    await small.close();
  }

  // Several processes: switch, and one ends.
  await page.locator(".process", { hasText: String(pids[1]) }).click();
  await page.waitForFunction(pid => document.querySelector("#pid").textContent.includes(String(pid)), pids[1]);
  second.child.kill("SIGKILL");
  await once(second.child, "exit");
  await page.waitForFunction(() => !document.querySelector("#ended").hidden);
  assert.match(await page.textContent("#ended"), /has ended.*last numbers/s);
  assert.match(await page.textContent("#sentence"), /in memory/);

  // Opened after its end, the card of hugepages is a sentence.
  const late = await open(browser, `${url}#${pids[1]}`, { viewport: { width: 1280, height: 900 } });
  await late.waitForFunction(() => document.querySelector("#map-text").textContent.includes("ended, and its heap with it"));
  const { height } = await late.locator("#map").boundingBox();
  assert.ok(height < 120, `the card is ${height} high`);
  assert.ok(await late.locator("#cells").isHidden());
  await late.screenshot({ path: `${pictures}/ended.png`, fullPage: true });
  await late.close();

  // The server ends.
  page.removeAllListeners("console");
  server.child.kill("SIGTERM");
  const [status] = await once(server.child, "exit");
  assert.equal(status, 0);
  await page.waitForFunction(() => document.querySelector("#banner").textContent.includes("does not answer"));
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
try {
  await test(browser);
  console.log(`the page is right; pictures are in ${pictures}`);
} finally {
  await browser.close();
  for (const child of started) child.kill("SIGKILL");
}
