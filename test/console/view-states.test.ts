import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { sessionRoute } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, startGateway } = await useConsole();
let gateway: GatewayProcess;

beforeAll(async () => {
  gateway = await startGateway({ config: "agents: { main: { model: rehearsal/basic } }\n" });
});

const main = "agent:main:main";

interface View {
  readonly name: string;
  readonly route: string;
  /** The call that the view needs first. */
  readonly method: string;
  /** What the view says when there is no session yet. */
  readonly empty: string | RegExp;
}

const views: readonly View[] = [
  { name: "home", route: "/", method: "agents.list", empty: "No messages yet. Write the first one below." },
  {
    name: "a session",
    route: sessionRoute(main),
    method: "sessions.entries",
    empty: "No messages yet. Write the first one below.",
  },
  {
    name: "the desk",
    route: "/sessions",
    method: "sessions.list",
    empty: "There are no sessions yet. To create one, send a message to main.",
  },
  { name: "the runs", route: "/runs", method: "runs.list", empty: /^No runs yet\. Each message/ },
  { name: "the lanes", route: "/runs", method: "lanes.list", empty: "Schedules" },
  {
    name: "the details of a run",
    route: "/runs?run=missing",
    method: "runs.get",
    empty: /not found/,
  },
  {
    name: "the approvals",
    route: "/runs?tab=approvals",
    method: "approvals.list",
    empty: /^Nothing needs your attention\. Tool calls that need approval appear here/,
  },
  {
    name: "the outbox",
    route: "/runs?tab=outbox",
    method: "outbox.list",
    empty: "No channel messages are waiting for delivery.",
  },
  {
    name: "the search",
    route: "/search?q=garden",
    method: "sessions.search",
    empty: "No results. Try fewer words or clear the filters.",
  },
  { name: "the usage", route: "/usage", method: "sessions.usage", empty: /^No usage in this period\. / },
  {
    name: "the access matrix",
    route: "/access",
    method: "access.matrix",
    empty: "There are no sessions yet. To create one, send a message to main.",
  },
  {
    name: "the rules of access",
    route: `/access?from=${encodeURIComponent(main)}&to=missing`,
    method: "access.explain",
    empty: /not found/,
  },
  {
    name: "the tokens",
    route: "/access?tab=tokens",
    method: "tokens.list",
    empty: "this browser",
  },
];

const first = "agent:main:first";

/** The views of a session that has no messages. */
const sessionViews: readonly View[] = [
  {
    name: "the lanes of a family",
    route: sessionRoute(first, "family"),
    method: "sessions.family",
    empty: "main:first",
  },
  {
    name: "the graph of a family",
    route: sessionRoute(first, "family", { tab: "graph" }),
    method: "sessions.family",
    empty: "main:first",
  },
  {
    name: "the X-ray",
    route: sessionRoute(first, "context"),
    method: "sessions.context",
    empty: "The next request",
  },
  {
    name: "the tree",
    route: sessionRoute(first, "tree"),
    method: "sessions.tree",
    empty: "No messages yet. Each message, answer and branch of this session appears here.",
  },
];

type Answer = "pass" | "fail";

/** Stands between the page and the gateway, and holds, fails or passes the calls of one method. */
class Calls {
  readonly #held: ((answer: Answer) => void)[] = [];
  #method = "";
  /** The calls of the method so far. */
  count = 0;
  #answer: Answer | null = "pass";

  async watch(page: Page): Promise<void> {
    await page.routeWebSocket(/./, (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((text) => {
        const { id, method } = JSON.parse(String(text));
        const error = { code: "internal", message: "The disk is full." };
        const settle = (answer: Answer) =>
          answer === "pass"
            ? server.send(text)
            : socket.send(JSON.stringify({ type: "res", id, ok: false, error }));
        if (method === this.#method) this.count += 1;
        if (method !== this.#method) settle("pass");
        else if (this.#answer === null) this.#held.push(settle);
        else settle(this.#answer);
      });
    });
  }

  get heldCount(): number {
    return this.#held.length;
  }

  hold(method: string): void {
    this.#held.length = 0;
    this.#method = method;
    this.#answer = null;
  }

  answer(answer: Answer): void {
    this.#answer = answer;
    for (const settle of this.#held.splice(0)) settle(answer);
  }
}

describe.skipIf(browser === null)("every view of the console", () => {
  test("says that it loads, that it could not be read, what is missing, and that the gateway is offline", async () => {
    const page = await browser.open(gateway, "/");
    const calls = new Calls();
    await calls.watch(page);
    const shown = (text: string | RegExp) =>
      page.getByRole("main").getByText(text).locator("visible=true").first().waitFor();
    const loading = page.locator("main [aria-busy=true]");
    const failure = page.getByText("The disk is full.");
    const check = async ({ name, route, method, empty }: View) => {
      calls.hold(method);
      await page.goto(`${gateway.url}/#${route}`);
      await page.reload();
      await expect.poll(() => calls.heldCount).toBeGreaterThan(0);
      await loading.first().waitFor();
      calls.answer("fail");
      await failure.first().waitFor();
      await expect.poll(async () => [name, await loading.count()]).toEqual([name, 0]);
      const { count } = calls;
      await page.getByRole("main").getByRole("button", { name: "Retry" }).first().click();
      await expect.poll(() => calls.count).toBeGreaterThan(count);
      calls.answer("pass");
      // The page also reads again on its own, so the button may be gone at any time.
      await expect
        .poll(async () => {
          await page
            .locator("main button")
            .evaluateAll((all: HTMLElement[]) =>
              all.find(({ textContent }) => textContent === "Retry")?.click(),
            );
          const content = page.getByRole("main").getByText(empty).locator("visible=true");
          return [name, await failure.count(), (await content.count()) > 0];
        })
        .toEqual([name, 0, true]);
    };
    for (const view of views) await check(view);
    for (const view of ["family", "tree", "context"]) {
      await page.goto(`${gateway.url}/#${sessionRoute(main, view)}`);
      await shown("No messages yet. The first one creates this session.");
    }
    await page.getByRole("link", { name: "Write a message" }).click();
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await gateway.call("sessions.create", { key: first });
    for (const view of sessionViews) await check(view);

    await gateway.stop("SIGKILL");
    for (const { route } of [...views, ...sessionViews]) {
      await page.goto(`${gateway.url}/#${route}`);
      await shown("Gateway offline. Reconnecting…");
    }
  });
});
