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
  /** Another token than the gateway's own; `null`: none. */
  readonly token?: string | null;
  readonly timeZone?: string;
  /** The address to open, in place of the route. */
  readonly link?: string;
}

/** A real browser with pages of the console. */
export class ConsoleBrowser {
  readonly #browser: Browser;
  readonly #contexts: BrowserContext[] = [];
  /** Errors that pages logged, among them what the content security policy refused. */
  readonly problems: string[] = [];

  /** `null`: no browser can start here. */
  static async launch(): Promise<ConsoleBrowser | null> {
    const browser = await launchBrowser();
    // The whole proof has a browser; elsewhere the tests are skipped, and the run says what to install.
    if (browser === null && process.env.SKEIN_NEEDS_BROWSER === "1") throw new Error(missingBrowser);
    return browser === null ? null : new ConsoleBrowser(browser);
  }

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  /** Opens the console at a route, in a browser profile of its own. */
  async open(gateway: Gateway, route = "/", options: PageOptions = {}): Promise<Page> {
    const context = await this.#browser.newContext({
      viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
      colorScheme: options.isDark === true ? "dark" : "light",
      hasTouch: options.hasTouch ?? false,
      timezoneId: options.timeZone ?? "Europe/Berlin",
      reducedMotion: "reduce",
    });
    this.#contexts.push(context);
    const token = options.token === undefined ? gateway.token : options.token;
    if (token !== null)
      await context.addInitScript((given) => {
        sessionStorage.setItem(`skein.token:${location.pathname}`, given);
      }, token);
    const page = await this.#watch(context);
    await page.goto(options.link ?? `${gateway.url}/#${route}`);
    return page;
  }

  /** One browser profile with a tab for each token. */
  async openTabs(gateway: Gateway, tokens: readonly string[]): Promise<Page[]> {
    const context = await this.#browser.newContext({ reducedMotion: "reduce" });
    this.#contexts.push(context);
    const pages: Page[] = [];
    for (const token of tokens) {
      const page = await this.#watch(context);
      // As a sign-in by link stores it.
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

  /** Ends the pages of a test, and fails if one of them logged an error. */
  async closePages(): Promise<void> {
    for (const context of this.#contexts.splice(0)) await context.close();
    expect(this.problems.splice(0)).toEqual([]);
  }

  async close(): Promise<void> {
    await this.#browser.close();
  }
}

/** The address of a session's page. */
export function sessionRoute(key: string, view = "", query: Readonly<Record<string, string>> = {}): string {
  const text = new URLSearchParams(query).toString();
  return `/s/${encodeURIComponent(key)}${view === "" ? "" : `/${view}`}${text === "" ? "" : `?${text}`}`;
}

/** The IDs of the entries that a page shows, from top to bottom. */
export function shownEntries(page: Page): Promise<string[]> {
  return page
    .locator("[data-entry-id]")
    .evaluateAll((rows) => rows.map((row) => row.getAttribute("data-entry-id") ?? ""));
}
