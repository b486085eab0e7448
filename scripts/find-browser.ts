import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import type { Browser } from "playwright-core";

const names = [
  "google-chrome",
  "google-chrome-stable",
  "chromium",
  "chromium-browser",
  "microsoft-edge",
  "microsoft-edge-stable",
  "chrome",
  "msedge",
];
const places = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
  "C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe",
];

export const missingBrowser =
  "No browser was found. Install Chrome, Chromium or Edge, or set SKEIN_BROWSER to its path.";

/** Returns the path of an installed browser, or `null` if there is none. `SKEIN_BROWSER` overrides the search. */
export function findBrowser(env: NodeJS.ProcessEnv = process.env): string | null {
  if (env.SKEIN_BROWSER) return env.SKEIN_BROWSER;
  const folders = (env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const found = folders.flatMap((folder) => names.map((name) => join(folder, name)));
  return [...found, ...places].find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Starts an installed browser, otherwise `@sparticuz/chromium` if it supports the platform. Returns `null` if none starts. */
export async function launchBrowser(): Promise<Browser | null> {
  const { chromium } = await import("playwright-core");
  const args = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
  ];
  // Chromium's sandbox refuses to run as root.
  if (process.getuid?.() === 0) args.push("--no-sandbox");
  const installed = findBrowser();
  if (installed !== null) return chromium.launch({ executablePath: installed, args });
  if (process.platform !== "linux" || process.arch !== "x64") return null;
  try {
    const { default: packed } = await import("@sparticuz/chromium");
    return await chromium.launch({
      executablePath: await packed.executablePath(),
      args: [...packed.args, ...args],
    });
  } catch {
    return null;
  }
}
