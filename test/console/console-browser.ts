import type { Browser, BrowserContext, Page } from "playwright-core";
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

/** A real browser with console pages. */
export class ConsoleBrowser {
  readonly #browser: Browser;
  readonly #contexts: BrowserContext[] = [];
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

  /** Opens the console at a route, in a separate browser profile. */
  async open(gateway: Gateway, route = "/", options: PageOptions = {}): Promise<Page> {
    const context = await this.#browser.newContext({
      viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
      colorScheme: options.isDark === true ? "dark" : "light",
      hasTouch: options.hasTouch ?? false,
      timezoneId: options.timeZone ?? "Europe/Berlin",
      reducedMotion: "reduce",
    });
    if (options.staysOpen !== true) this.#contexts.push(context);
    const token = options.token === undefined ? gateway.token : options.token;
    if (token !== null)
      await context.addInitScript((given) => {
        sessionStorage.setItem(`skein.token:${location.pathname}`, given);
      }, token);
    const page = await this.#watch(context);
    await page.goto(options.link ?? `${gateway.url}/#${route}`);
    return page;
  }

  /** Opens one browser profile with a tab for each token. */
  async openTabs(gateway: Gateway, tokens: readonly string[]): Promise<Page[]> {
    const context = await this.#browser.newContext({ reducedMotion: "reduce" });
    this.#contexts.push(context);
    const pages: Page[] = [];
    for (const token of tokens) {
      const page = await this.#watch(context);
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
    await Promise.all(this.#contexts.splice(0).map((context) => context.close()));
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
