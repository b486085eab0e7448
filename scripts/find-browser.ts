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

/**
 * Returns the path of an installed browser. If there is none, unpacks the one in `@sparticuz/chromium`. Returns `null`
 * if neither exists.
 */
export async function provideBrowser(env: NodeJS.ProcessEnv = process.env): Promise<string | null> {
  const installed = findBrowser(env);
  if (installed !== null) return installed;
  if (process.platform !== "linux" || process.arch !== "x64") return null;
  const { default: packed } = await import("@sparticuz/chromium");
  return packed.executablePath().catch(() => null);
}

/**
 * The first three features are the suggestions of Chromium's hidden address bar, which Chromium renders as separate web
 * pages. They use more CPU than the page under test. This list replaces Playwright's own list and therefore repeats it.
 */
export const disabledFeatures = [
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxFullPopup",
  "AimEnabled",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsFirstBalancedModeAutoEnable",
  "HttpsUpgrades",
  "LensOverlay",
  "MediaRouter",
  "NetworkTimeServiceQuerying",
  "OptimizationHints",
  "PaintHolding",
  "PreconnectToSearch",
  "TcpPortRandomizationWin",
  "ThirdPartyStoragePartitioning",
  "msEdgeUpdateLaunchServicesPreferredVersion",
  "msForceBrowserSignIn",
];

/** Starts a browser. Returns `null` if there is none or it cannot run here. */
export async function launchBrowser(): Promise<Browser | null> {
  const executablePath = await provideBrowser();
  if (executablePath === null) return null;
  const { chromium } = await import("playwright-core");
  const args = [
    "--disable-background-networking",
    "--disable-component-update",
    `--disable-features=${disabledFeatures.join(",")}`,
    "--disable-sync",
    "--no-first-run",
  ];
  const unprotected = [...args, "--no-sandbox"];
  // Chromium's sandbox refuses to run as root and in many containers.
  const attempts = process.getuid?.() === 0 ? [unprotected] : [args, unprotected];
  for (const each of attempts) {
    const browser = await chromium.launch({ executablePath, args: each }).catch(() => null);
    if (browser !== null) return browser;
  }
  return null;
}

/** Vitest calls this before the first browser test so that its workers do not all unpack a browser at the same time. */
export async function setup(): Promise<void> {
  const path = await provideBrowser();
  if (path !== null) process.env.SKEIN_BROWSER = path;
}
