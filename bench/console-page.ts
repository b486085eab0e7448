import { randomUUID } from "node:crypto";
import type { Page } from "playwright-core";
import { launchBrowser, missingBrowser } from "../scripts/find-browser.ts";
import type { Served } from "./gateway/served.ts";
import { withServer } from "./gateway/served.ts";
import { keyOf } from "./ours.ts";
import type { Acts, Figures, Job } from "./side.ts";

/** The console in a real browser, served by a gateway in a separate process. Frames are measured inside the page. */
export const acts: Acts = { paint, scroll, stream };

/** Scripts that run in the page. They are strings, because the benchmark has no browser types. */
const atStart = `(token) => {
  sessionStorage.setItem("skein.token:" + location.pathname, token);
  window.painted = new Promise((resolve) => {
    const look = () => {
      if (document.querySelector("main ul[aria-label=Sessions] li") === null) requestAnimationFrame(look);
      // The frame after the one that rendered the rows.
      else requestAnimationFrame(() => resolve(performance.now()));
    };
    requestAnimationFrame(look);
  });
}`;
const watchFrames = `(() => {
  const times = { frameMs: 0, workMs: 0 };
  window.frameTimes = times;
  let last = null;
  const next = (now) => {
    if (last !== null) times.frameMs = Math.max(times.frameMs, now - last);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) times.workMs = Math.max(times.workMs, duration);
  }).observe({ entryTypes: ["longtask"] });
})()`;

const scrollSteps = 150;
const streamSeconds = 6;

/** The time from the start of navigation until the desk's rows are visible. */
function paint(job: Job): Promise<Figures> {
  return withPage(job, "/sessions", async (page) => {
    return { paintMs: await page.evaluate("window.painted") };
  });
}

/** Scrolls from the end of a long session, past a huge tool result, while earlier pages are read. */
function scroll(job: Job): Promise<Figures> {
  return withPage(job, sessionRoute(keyOf(job.sessionId ?? "")), async (page) => {
    const transcript = page.getByRole("region", { name: "Transcript", exact: true });
    await transcript.locator("[data-entry-id]").first().waitFor();
    await transcript.hover();
    return longestFrames(page, async () => {
      for (let step = 0; step < scrollSteps; step++) await page.mouse.wheel(0, -1200);
    });
  });
}

/** Shows one of many sessions that stream at the same time, next to the list of all of them. */
function stream({ sessions = 1, ...job }: Job): Promise<Figures> {
  const keys = Array.from({ length: sessions }, (_, number) => `agent:main:session:stream-${number}`);
  return withPage(job, "/sessions", async (page, served) => {
    const ask = async (sessionKey: string, message: string) => {
      const params = { sessionKey, message, idempotencyKey: randomUUID() };
      const { runId } = await call(served, "chat.send", params);
      await call(served, "agent.wait", { runId, timeoutMs: 120_000 });
    };
    await Promise.all(keys.map((key) => ask(key, "repeat hello")));
    await page.goto(`${served.url.origin}/#${sessionRoute(keys[0] ?? "")}`);
    await page.locator("[data-entry-id]").first().waitFor();
    return longestFrames(page, async () => {
      await Promise.all(keys.map((key) => ask(key, `be slow for ${streamSeconds} seconds`)));
    });
  });
}

function sessionRoute(key: string): string {
  return `/s/${encodeURIComponent(key)}`;
}

async function call(
  { url, token }: Served,
  method: string,
  params: object,
): Promise<{ readonly runId?: string }> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const answer = await fetch(new URL(`/rpc/${method}`, url), {
    method: "POST",
    headers,
    body: JSON.stringify(params),
  });
  if (!answer.ok) throw new Error(`${method} answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as { readonly runId?: string };
}

async function withPage(
  { folder, file = "" }: Job,
  route: string,
  act: (page: Page, served: Served) => Promise<Figures>,
): Promise<Figures> {
  const browser = await launchBrowser();
  if (browser === null) throw new Error(missingBrowser);
  try {
    return await withServer({ wish: "gateway", folder, console: file }, async (served) => {
      const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
      page.setDefaultTimeout(120_000);
      await page.addInitScript({ content: `(${atStart})(${JSON.stringify(served.token)})` });
      await page.goto(`${served.url.origin}/#${route}`);
      return await act(page, served);
    });
  } finally {
    await browser.close();
  }
}

/** The longest time between two frames, and the longest script and layout work in a single frame, during an action. */
async function longestFrames(page: Page, act: () => Promise<void>): Promise<Figures> {
  await page.evaluate(watchFrames);
  await act();
  // Long tasks are reported with a delay.
  await page.waitForTimeout(500);
  return page.evaluate("window.frameTimes");
}
