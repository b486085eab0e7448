import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";
import { launchBrowser, missingBrowser } from "../../scripts/find-browser.ts";

interface Gateway {
  readonly url: string;
  readonly token: string;
}

export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
  readonly isDark?: boolean;
  readonly hasTouch?: boolean;
  /** A token to use instead of the gateway's own. `null` means no token. */
  readonly token?: string | null;
  readonly timeZone?: string;
  /** The URL to open instead of the route. */
  readonly link?: string;
  /** The page stays open until the browser closes, for tests that share it. */
  readonly staysOpen?: boolean;
}

/** A browser profile. */
interface Profile {
  readonly context: BrowserContext;
  /** Profiles with the same settings can replace each other. */
  readonly settings: string;
  /** Whether a test has changed what applies to all pages of the profile. */
  isSpent: boolean;
}

/** A real browser with console pages. */
export class ConsoleBrowser {
  readonly #browser: Browser;
  /** The profiles with the pages of the current test. */
  readonly #used: Profile[] = [];
  /** A new profile takes much of the time of a new page, so later tests use these again. */
  readonly #free: Profile[] = [];
  /** Errors that pages logged, including violations of the content security policy. */
  readonly problems: string[] = [];

  /** `null` if no browser can start here. */
  static async launch(): Promise<ConsoleBrowser | null> {
    const browser = await launchBrowser();
    // The full test run includes a browser. Without one, these tests are skipped, and the run reports what to install.
    if (browser === null && process.env.SKEIN_NEEDS_BROWSER === "1") throw new Error(missingBrowser);
    return browser === null ? null : new ConsoleBrowser(browser);
  }

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  /** Opens the console at a route, in a browser profile without data that no other page uses. */
  async open(gateway: Gateway, route = "/", options: PageOptions = {}): Promise<Page> {
    const address = options.link ?? `${gateway.url}/#${route}`;
    const profile = await this.#takeProfile({
      viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
      colorScheme: options.isDark === true ? "dark" : "light",
      hasTouch: options.hasTouch ?? false,
      timezoneId: options.timeZone ?? "Europe/Berlin",
      reducedMotion: "reduce",
    });
    const page = await this.#watch(profile.context);
    const devtools = await profile.context.newCDPSession(page);
    const { origin } = new URL(address);
    await devtools.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
    await devtools.detach();
    // A test's clock also applies to later pages of the profile.
    const { clock } = page;
    Object.defineProperty(page, "clock", {
      get: () => {
        profile.isSpent = true;
        return clock;
      },
    });
    if (options.staysOpen === true) this.#used.splice(this.#used.indexOf(profile), 1);
    const token = options.token === undefined ? gateway.token : options.token;
    if (token !== null)
      await page.addInitScript((given) => {
        sessionStorage.setItem(`skein.token:${location.pathname}`, given);
      }, token);
    await page.goto(address);
    return page;
  }

  async #takeProfile(options: BrowserContextOptions): Promise<Profile> {
    const settings = JSON.stringify(options);
    const at = this.#free.findIndex((profile) => profile.settings === settings);
    const [free] = at < 0 ? [] : this.#free.splice(at, 1);
    const profile = free ?? { context: await this.#browser.newContext(options), settings, isSpent: false };
    this.#used.push(profile);
    return profile;
  }

  /** Opens one browser profile with a tab for each token. */
  async openTabs(gateway: Gateway, tokens: readonly string[]): Promise<Page[]> {
    const profile = await this.#takeProfile({ reducedMotion: "reduce" });
    profile.isSpent = true;
    const pages: Page[] = [];
    for (const token of tokens) {
      const page = await this.#watch(profile.context);
      // Stored in the same form as by a sign-in link.
      await page.addInitScript((given) => {
        const slot = `skein.token:${location.pathname}`;
        if (sessionStorage.getItem(slot) !== null) return;
        sessionStorage.setItem(slot, given);
        localStorage.setItem(slot, given);
      }, token);
      await page.goto(gateway.url);
      pages.push(page);
    }
    return pages;
  }

  async #watch(context: BrowserContext): Promise<Page> {
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    page.on("pageerror", ({ message }) => this.problems.push(message));
    page.on("console", (message) => {
      if (message.type() === "error" && !/Failed to load resource|WebSocket connection/.test(message.text()))
        this.problems.push(message.text());
    });
    return page;
  }

  /** Closes a test's pages and fails if one of them logged an error. */
  async closePages(): Promise<void> {
    await Promise.all(
      this.#used.splice(0).map(async (profile) => {
        if (profile.isSpent) return profile.context.close();
        await Promise.all(profile.context.pages().map((page) => page.close()));
        this.#free.push(profile);
      }),
    );
    expect(this.problems.splice(0)).toEqual([]);
  }

  async close(): Promise<void> {
    await this.#browser.close();
  }
}

/** Returns the URL of a session's page. */
export function sessionRoute(key: string, view = "", query: Readonly<Record<string, string>> = {}): string {
  const text = new URLSearchParams(query).toString();
  return `/s/${encodeURIComponent(key)}${view === "" ? "" : `/${view}`}${text === "" ? "" : `?${text}`}`;
}

/** Returns the IDs of the entries on a page, from top to bottom. */
export function shownEntries(page: Page): Promise<string[]> {
  return page
    .locator("[data-entry-id]")
    .evaluateAll((rows) => rows.map((row) => row.getAttribute("data-entry-id") ?? ""));
}

export const transcript = (page: Page) => page.getByRole("region", { name: "Transcript", exact: true });

/** Waits until the transcript has not changed its place or its size for ten frames. */
export const settled = (page: Page) =>
  transcript(page).evaluate(async (list) => {
    let before = "";
    for (let calm = 0; calm < 10; calm += 1) {
      await new Promise(requestAnimationFrame);
      const now = [list.scrollTop, list.scrollHeight, list.clientHeight].join();
      if (now !== before) calm = 0;
      before = now;
    }
  });

/** The first visible row and its distance from the top of the transcript. */
export const firstRow = (page: Page) =>
  transcript(page).evaluate((list) => {
    const { top } = list.getBoundingClientRect();
    const row = [...list.querySelectorAll("[data-entry-id]")].find(
      (each) => each.getBoundingClientRect().bottom > top,
    );
    return [row?.getAttribute("data-entry-id"), (row?.getBoundingClientRect().top ?? 0) - top];
  });

/** Presses Tab until an element has the focus. */
export async function tabTo(page: Page, selector: string, key = "Tab"): Promise<void> {
  for (let presses = 0; presses < 80; presses += 1) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) === true, selector)) return;
    await page.keyboard.press(key);
  }
  throw new Error(`${selector} was not reached by ${key}.`);
}
