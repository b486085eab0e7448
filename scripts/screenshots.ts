// npm run screenshots: takes the console screenshots in docs/images from the sample family, with a real browser.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Browser } from "playwright-core";
import sharp from "sharp";
import { buildStaleConsole } from "./build-console.ts";
import { launchBrowser, missingBrowser } from "./find-browser.ts";
import { makeFamily } from "./sample-family.ts";
import { root } from "./steps.ts";

interface Shot {
  readonly name: string;
  readonly route: string;
  readonly isDark?: boolean;
  readonly isPhone?: boolean;
  /** Pixels per CSS pixel. Lower for a page full of text, so that the image stays below 150 KB. Defaults to 1.5. */
  readonly scale?: number;
}

const main = `/s/${encodeURIComponent("agent:main:main")}`;
const access = new URLSearchParams({ from: "agent:support:main", to: "agent:main:main" });
const shots: readonly Shot[] = [
  { name: "session", route: "/" },
  { name: "family", route: `${main}/family` },
  { name: "x-ray", route: `${main}/context` },
  { name: "tree", route: `${main}/tree`, scale: 1.25 },
  { name: "desk", route: "/sessions" },
  { name: "runs", route: "/runs" },
  { name: "usage", route: "/usage" },
  { name: "access", route: `/access?${access}` },
  { name: "search", route: "/search?q=garden" },
  { name: "session-dark", route: "/", isDark: true },
  { name: "family-dark", route: `${main}/family`, isDark: true },
  { name: "session-phone", route: "/", isPhone: true },
  { name: "desk-phone", route: "/sessions", isPhone: true },
];
const screen = { width: 1280, height: 800 };
const phone = { width: 390, height: 844 };
/** Leaves time for elements that are drawn after the data has arrived. */
const settleMs = 500;

interface Gateway {
  readonly url: string;
  readonly token: string;
  stop(): Promise<void>;
}

async function startGateway(dir: string): Promise<Gateway> {
  const args = [
    "bin/skein.mjs",
    "start",
    "--json",
    "--port",
    "0",
    "--dir",
    dir,
    "--config",
    join(dir, "skein.yaml"),
  ];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  const { url } = await readAnswer(child.stdout);
  const token = readFileSync(join(dir, "token"), "utf8").trim();
  const stop = async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
  };
  return { url, token, stop };
}

/** Reads until the document is complete. The process keeps running. */
async function readAnswer(output: Readable): Promise<{ readonly url: string }> {
  let text = "";
  for await (const chunk of output) {
    text += chunk;
    if (text.trimEnd().endsWith("}")) return JSON.parse(text);
  }
  throw new Error("The gateway did not start.");
}

/** A screenshot that shows an error is still saved, but the script exits with status 1. */
async function takeShot(browser: Browser, { url, token }: Gateway, shot: Shot): Promise<Buffer> {
  const context = await browser.newContext({
    viewport: shot.isPhone === true ? phone : screen,
    deviceScaleFactor: shot.scale ?? 1.5,
    colorScheme: shot.isDark === true ? "dark" : "light",
    hasTouch: shot.isPhone === true,
    reducedMotion: "reduce",
  });
  try {
    const content = `sessionStorage.setItem("skein.token:" + location.pathname, ${JSON.stringify(token)})`;
    await context.addInitScript({ content });
    const page = await context.newPage();
    const problems: string[] = [];
    page.on("pageerror", ({ message }) => problems.push(message));
    await page.goto(`${url}/#${shot.route}`);
    await page.waitForLoadState("networkidle");
    await page.locator("main").waitFor();
    while ((await page.locator('[aria-busy="true"]').count()) > 0) await page.waitForTimeout(settleMs);
    await page.waitForTimeout(settleMs);
    const notices = await page.getByRole("alert").allInnerTexts();
    for (const problem of [...problems, ...notices]) {
      console.log(`${shot.name} shows an error: ${problem.replaceAll("\n", " ")}`);
      process.exitCode = 1;
    }
    return await shrink(await page.screenshot());
  } finally {
    await context.close();
  }
}

/** A palette of this size preserves the thread colors. */
function shrink(png: Buffer): Promise<Buffer> {
  return sharp(png).png({ palette: true, colors: 256, dither: 0, effort: 10 }).toBuffer();
}

async function takeShots(): Promise<void> {
  await buildStaleConsole((line) => console.log(line));
  const browser = await launchBrowser();
  if (browser === null) throw new Error(missingBrowser);
  const home = mkdtempSync(join(tmpdir(), "skein-screenshots-"));
  const dir = join(home, "skein");
  const images = join(root, "docs", "images");
  try {
    await makeFamily(dir, { say: () => undefined });
    const gateway = await startGateway(dir);
    try {
      mkdirSync(images, { recursive: true });
      for (const shot of shots) {
        const png = await takeShot(browser, gateway, shot);
        writeFileSync(join(images, `${shot.name}.png`), png);
        console.log(`docs/images/${shot.name}.png (${Math.ceil(png.length / 1000)} KB)`);
      }
    } finally {
      await gateway.stop();
    }
  } finally {
    await browser.close();
    rmSync(home, { recursive: true, force: true });
  }
}

await takeShots();
