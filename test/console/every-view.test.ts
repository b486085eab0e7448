import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { CDPSession, Locator, Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { sessionRoute } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, createFamily, startGateway } = await useConsole();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let gateway: GatewayProcess;

beforeAll(async () => {
  gateway = await startGateway({ config: await createFamily() });
});

const main = "agent:main:main";

/** Each view, with an element that is present once the view has loaded. */
const views: readonly { name: string; route: string; part: (page: Page) => Locator }[] = [
  { name: "home", route: "/", part: (page) => page.getByText("summarize what is ready for spring") },
  {
    name: "session",
    route: sessionRoute(main),
    part: (page) => page.getByText("summarize what is ready for spring"),
  },
  { name: "desk", route: "/sessions", part: (page) => page.locator("[data-roving]") },
  {
    name: "family as lanes",
    route: sessionRoute(main, "family"),
    part: (page) => page.locator("svg [data-mark]"),
  },
  {
    name: "family as a graph",
    route: sessionRoute(main, "family", { tab: "graph" }),
    part: (page) => page.locator(".react-flow__node"),
  },
  {
    name: "family as a table",
    route: sessionRoute(main, "family", { tab: "table" }),
    part: (page) => page.getByText("Between sessions"),
  },
  { name: "x-ray", route: sessionRoute(main, "context"), part: (page) => page.getByText(/^[\d,]+ tokens/) },
  { name: "tree", route: sessionRoute(main, "tree"), part: (page) => page.getByText("for families") },
  { name: "runs", route: "/runs", part: (page) => page.getByText("fail with status 429") },
  { name: "approvals", route: "/runs?tab=approvals", part: (page) => page.getByText("sessions_send") },
  {
    name: "outbox",
    route: "/runs?tab=outbox",
    part: (page) => page.getByText("No channel messages are waiting for delivery."),
  },
  { name: "search", route: "/search?q=garden", part: (page) => page.getByRole("list", { name: "Results" }) },
  { name: "usage", route: "/usage", part: (page) => page.getByText("Unpriced") },
  { name: "access", route: "/access", part: (page) => page.locator("[data-place]") },
];

interface Checker {
  run(options: {
    runOnly?: readonly string[];
    resultTypes: readonly ["violations"];
    selectors: false;
  }): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

/** The problems that axe finds, one per line. */
async function violations(page: Page, rules: readonly string[] = []): Promise<string[]> {
  // Injected through the debugging protocol, to which the content security policy does not apply.
  if (await page.evaluate(() => !("axe" in globalThis))) await page.evaluate(axe);
  return page.evaluate(async (only) => {
    const { axe: checker } = globalThis as unknown as { axe: Checker };
    const { violations: found } = await checker.run({
      ...(only.length === 0 ? {} : { runOnly: only }),
      // Most of the time of axe goes into selectors for the elements that pass.
      resultTypes: ["violations"],
      selectors: false,
    });
    return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  }, rules);
}

/** The controls that are in view although a part of their focus ring is not, because something around them cuts it off. */
async function cutRings(page: Page): Promise<string[]> {
  await page.keyboard.press("Tab");
  return page.evaluate(() => {
    const isRingCut = (control: Element) => {
      const { left, top, right, bottom } = control.getBoundingClientRect();
      const { outlineStyle, outlineOffset, outlineWidth } = getComputedStyle(control);
      if (outlineStyle === "none") return false;
      const reach = Number.parseFloat(outlineOffset) + Number.parseFloat(outlineWidth);
      for (let around = control.parentElement; around !== null; around = around.parentElement) {
        if (getComputedStyle(around).overflow === "visible") continue;
        const box = around.getBoundingClientRect();
        const [x, y] = [box.left + around.clientLeft, box.top + around.clientTop];
        const room = Math.min(
          left - x,
          top - y,
          x + around.clientWidth - right,
          y + around.clientHeight - bottom,
        );
        if (room > -0.5 && room - reach < -0.5) return true;
      }
      return false;
    };
    return [...document.querySelectorAll<HTMLElement>("a, button, input, select, summary, [tabindex]")]
      .filter((control) => {
        control.focus();
        return control.matches(":focus-visible") && isRingCut(control);
      })
      .map(({ outerHTML }) => outerHTML.slice(0, 160));
  });
}

/** Returns the controls that extend beyond the window, unless they can be scrolled into view. */
function cutControls(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const canScroll = (element: Element | null): boolean =>
      element !== null &&
      (/auto|scroll/.test(getComputedStyle(element).overflowX) || canScroll(element.parentElement));
    return [...document.querySelectorAll("main :is(a, button, input, select)")]
      .filter((control) => control.checkVisibility() && control.closest(".visually-hidden") === null)
      .filter((control) => control.getBoundingClientRect().right > innerWidth + 0.5 && !canScroll(control))
      .map(({ outerHTML }) => outerHTML.slice(0, 160));
  });
}

/** Returns the tables that continue beyond the right edge without a sign. */
function tablesWithoutCue(page: Page): Promise<string[]> {
  return page.locator("main table").evaluateAll((tables) =>
    tables
      .map(({ parentElement }) => parentElement as HTMLElement)
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .filter((box) => getComputedStyle(box).backgroundAttachment !== "local, scroll")
      .map(({ outerHTML }) => outerHTML.slice(0, 160)),
  );
}

describe.skipIf(browser === null)("the view", () => {
  let page: Page;
  let devtools: CDPSession;
  beforeAll(async () => {
    page = await browser.open(gateway, "/", { staysOpen: true });
    devtools = await page.context().newCDPSession(page);
  });

  test.each(views)(
    "$name is accessible in light, in dark and on a phone of 360 pixels, and shows the same after a reload",
    async ({ route, part }) => {
      const loaded = async () => {
        await part(page).locator("visible=true").first().waitFor();
        await expect.poll(() => page.locator("main [aria-busy=true]").count()).toBe(0);
      };
      await devtools.send("Emulation.setTouchEmulationEnabled", { enabled: false });
      await page.emulateMedia({ colorScheme: "light" });
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(`${gateway.url}/#${route}`);
      await loaded();
      await expect.poll(() => page.title()).toMatch(/ · Skein$/);
      expect(await violations(page)).toEqual([]);
      await page.emulateMedia({ colorScheme: "dark" });
      expect(await violations(page, ["color-contrast"])).toEqual([]);

      await devtools.send("Emulation.setTouchEmulationEnabled", { enabled: true });
      await page.emulateMedia({ colorScheme: "light" });
      await page.setViewportSize({ width: 360, height: 740 });
      await page.reload();
      await loaded();
      expect(new URL(page.url()).hash).toBe(`#${route}`);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
      expect(await violations(page)).toEqual([]);
      expect(await cutControls(page)).toEqual([]);
      expect(await tablesWithoutCue(page)).toEqual([]);
      expect(await cutRings(page)).toEqual([]);
    },
  );
});

/** The parts of a view that appear only on request. Each returns an element that is present once the part has loaded. */
const parts: readonly { name: string; show: (page: Page) => Promise<Locator> }[] = [
  {
    name: "the tokens",
    show: async (page) => {
      await goTo(page, "/access?tab=tokens");
      return page.getByRole("table").getByText("this browser");
    },
  },
  {
    name: "the form for a new token",
    show: async (page) => {
      await goTo(page, "/access?tab=tokens");
      await page.getByRole("button", { name: "Create a token…" }).click();
      return page.getByRole("dialog").getByRole("button", { name: "Create" });
    },
  },
  {
    name: "the link for a phone",
    show: async (page) => {
      await goTo(page, "/access?tab=tokens");
      await page.getByRole("button", { name: /phone/ }).click();
      return page.getByRole("dialog").getByRole("img");
    },
  },
  {
    name: "the palette",
    show: async (page) => {
      await goTo(page, "/usage");
      await page.getByRole("button", { name: "Go to…" }).click();
      const palette = page.getByRole("dialog", { name: "Go to" });
      await palette.getByRole("combobox").fill("spring");
      return palette.getByRole("option", { selected: true });
    },
  },
  {
    name: "the details of a failed run",
    show: async (page) => {
      const { runs } = await gateway.call("runs.list", { states: ["error"] });
      await goTo(page, `/runs?run=${runs[0]?.runId}`);
      return page.getByRole("complementary").getByText("Budget for the whole request");
    },
  },
  {
    name: "the details of a waiting run",
    show: async (page) => {
      const { runs } = await gateway.call("runs.list", { states: ["waiting"] });
      await goTo(page, `/runs?run=${runs[0]?.runId}`);
      return page.getByRole("complementary").getByText("Waiting for a person to approve");
    },
  },
  {
    name: "the rules of access",
    show: async (page) => {
      await goTo(page, `/access?from=agent:support:main&to=${main}`);
      return page.getByRole("complementary", { name: "Rules" }).getByRole("listitem");
    },
  },
  {
    name: "two branches side by side",
    show: async (page) => {
      await goTo(page, sessionRoute(main, "tree"));
      await page.getByText("Next branch").click();
      await page.getByRole("button", { name: /^Compare/ }).click();
      return page.getByRole("region", { name: "Comparison of two branches" });
    },
  },
  {
    name: "the find bar",
    show: async (page) => {
      await goTo(page, sessionRoute(main));
      await page.getByRole("button", { name: "Find" }).click();
      await page.getByLabel("Find in session").fill("spring");
      return page.getByRole("main").getByText(/^\d+ of \d+$/);
    },
  },
];

/** Opens a view, without anything that the page before it has opened. */
async function goTo(page: Page, route: string): Promise<void> {
  await page.goto(`${gateway.url}/#${route}`);
  await page.reload();
}

describe.skipIf(browser === null)("what opens on request", () => {
  test("is accessible in light and dark and on a phone of 360 pixels", async () => {
    const page = await browser.open(gateway, "/");
    for (const { name, show } of parts) {
      await page.setViewportSize({ width: 1280, height: 800 });
      const part = await show(page);
      await part.first().waitFor();
      await expect.poll(() => page.locator("[aria-busy=true]").count()).toBe(0);
      expect([name, await violations(page)]).toEqual([name, []]);
      await page.emulateMedia({ colorScheme: "dark" });
      expect([name, await violations(page, ["color-contrast"])]).toEqual([name, []]);
      await page.emulateMedia({ colorScheme: "light" });
      await page.setViewportSize({ width: 360, height: 740 });
      await part.first().waitFor();
      expect([name, await violations(page)]).toEqual([name, []]);
      expect([name, await cutControls(page)]).toEqual([name, []]);
    }
  });

  test("and the page without a token is accessible", async () => {
    for (const [width, isDark] of [
      [1280, false],
      [360, true],
    ] as const) {
      const page = await browser.open(gateway, "/", { token: null, width, isDark });
      await page.getByText("skein link").first().waitFor();
      expect(await violations(page)).toEqual([]);
    }
  });
});

describe.skipIf(browser === null)("the look of the console", () => {
  const style = (locator: Locator, ...names: readonly string[]) =>
    locator.first().evaluate((element, properties) => {
      const computed = getComputedStyle(element);
      return properties.map((name) => computed.getPropertyValue(name));
    }, names);
  const heightOf = async (locator: Locator) => (await locator.first().boundingBox())?.height;

  test("has controls of 13 pixels, prose of 15 pixels in 72 characters, tabular figures, and rows for mouse and touch", async () => {
    const page = await browser.open(gateway, sessionRoute(main));
    const prose = page.locator("[data-kind=agent] [class*=prose]").first();
    await prose.waitFor();
    expect(await style(page.locator("body"), "font-size", "font-variant-numeric")).toEqual([
      "13px",
      "tabular-nums",
    ]);
    // The width of 72 zeros in the font of the prose.
    const measure = await prose.evaluate((text) => {
      const ruler = text.appendChild(document.createElement("i"));
      ruler.style.cssText = "max-width: 72ch; font-style: normal";
      const { maxWidth } = getComputedStyle(ruler);
      ruler.remove();
      return maxWidth;
    });
    expect(await style(prose, "font-size", "max-width")).toEqual(["15px", measure]);

    const rowOf = (each: Page) => each.getByRole("main").locator("li:has(a[data-roving]) > *");
    const desk = await browser.open(gateway, "/sessions");
    await expect.poll(() => heightOf(rowOf(desk))).toBe(28);
    const onPhone = await browser.open(gateway, "/sessions", { width: 1024, hasTouch: true });
    await expect.poll(() => heightOf(rowOf(onPhone))).toBe(44);
  });

  test("moves nothing but what arrives, once, and nothing under reduced motion", async () => {
    const page = await browser.open(gateway, sessionRoute(main, "family"));
    await page.locator("svg [data-mark]").first().waitFor();
    /** Every kind of motion in the page. */
    const motions = () =>
      page.evaluate(() => {
        const all = [...document.querySelectorAll("*")].map((element) => {
          const { animationName, animationDuration, animationIterationCount, transitionDuration } =
            getComputedStyle(element);
          return [animationName, animationDuration, animationIterationCount, transitionDuration].join(" ");
        });
        return [...new Set(all)].sort();
      });
    const none = "none 0s 1 0s";
    expect(await motions()).toEqual([none]);
    await page.emulateMedia({ reducedMotion: "no-preference" });
    await expect.poll(motions).toEqual([expect.stringMatching(/arrive\S* 0\.12s 1 0s$/), none]);
  });
});

/** A direction change, a soft hyphen, a filler, an invisible operator, a tag, a mark, and a joiner that joins nothing. */
const invisible = "\u202e\u00ad\u3164\u2063\u{e0041}\u061c a\u200db";
const visible = "⟨U+202E⟩⟨U+00AD⟩⟨U+3164⟩⟨U+2063⟩⟨U+E0041⟩⟨U+061C⟩ a⟨U+200D⟩b";
const named =
  /^(?:label|displayName|model|agentId|userId|channel|preview|text|message|note|reason|description|toolName|name)$/;

/** Puts invisible characters into the names and texts of everything that the gateway sends. */
function withInvisible(value: unknown, name = "", isMatrix = false): unknown {
  if (typeof value === "string")
    return named.test(name) || (isMatrix && name === "key") ? `${value}${invisible}` : value;
  if (Array.isArray(value)) return value.map((each) => withInvisible(each, name, isMatrix));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([each, inner]) => [
      each,
      withInvisible(inner, each, isMatrix || "allowed" in value),
    ]),
  );
}

describe.skipIf(browser === null)("names and texts with invisible characters", () => {
  test("are shown with symbols for them in every view", async () => {
    const page = await browser.open(gateway, "/");
    await page.routeWebSocket(/./, (socket) => {
      socket
        .connectToServer()
        .onMessage((text) => socket.send(JSON.stringify(withInvisible(JSON.parse(String(text))))));
    });
    await page.reload();
    const query = encodeURIComponent(invisible);
    const other = (name: string, route: string) => ({
      name,
      route,
      part: () => page.locator("main").getByText(visible),
    });
    for (const { name, route, part } of [
      ...views,
      other("a missing run", `/runs?run=${query}`),
      other("a lane that is not there", `/runs?lane=${query}&show=failed`),
      other("a missing session", `/s/${query}`),
      { ...other("a filter", `/sessions?agent=${query}`), part: () => page.getByLabel("Agent") },
    ]) {
      await page.goto(`${gateway.url}/#${route}`);
      await part(page).locator("visible=true").first().waitFor();
      await expect.poll(() => page.locator("main [aria-busy=true]").count()).toBe(0);
      const read = () =>
        page.evaluate(() => {
          const all = [...document.querySelectorAll("*")].flatMap((element) => [
            ...["title", "alt", "placeholder", "aria-label", "aria-description"].map(
              (attribute) => element.getAttribute(attribute) ?? "",
            ),
            ...[...element.childNodes].map((node) => (node instanceof Text ? node.data : "")),
          ]);
          all.push(document.title);
          const hidden = /[\u202e\u00ad\u3164\u2063\u{e0041}\u061c]|a\u200d/u;
          return { texts: all.join("\n"), raw: all.filter((text) => hidden.test(text)) };
        });
      await expect.poll(async () => [name, (await read()).texts.includes(visible)]).toEqual([name, true]);
      expect([name, (await read()).raw]).toEqual([name, []]);
    }
  });
});

describe.skipIf(browser === null)("on a touch screen", () => {
  test("every page says how many tool calls need you, and the palette opens by a tap", async () => {
    const page = await browser.open(gateway, "/usage", { width: 360, height: 740, hasTouch: true });
    const badge = page.getByRole("link", { name: "Sessions 1 needs you" });
    await badge.waitFor();
    await page.getByRole("button", { name: "Go to…" }).tap();
    const palette = page.getByRole("dialog", { name: "Go to" });
    await palette.getByRole("option", { name: "Access", exact: true }).tap();
    await page.locator("[data-place]").first().waitFor();
    await badge.tap();
    await page.getByRole("main").getByRole("button", { name: "Approve" }).waitFor();
  });

  test("the palette closes by its button and by going back", async () => {
    const page = await browser.open(gateway, "/usage", { width: 360, height: 740, hasTouch: true });
    const palette = page.getByRole("dialog", { name: "Go to" });
    const openPalette = async () => {
      await page.getByRole("button", { name: "Go to…" }).tap();
      await palette.getByRole("option").first().waitFor();
    };
    await page.getByRole("link", { name: "Runs" }).tap();
    await openPalette();
    const close = palette.getByRole("button", { name: "Close" });
    await expect.poll(() => close.boundingBox()).toMatchObject({ width: 44, height: 44 });
    await close.tap();
    await palette.waitFor({ state: "detached" });
    await openPalette();
    await page.goBack();
    await palette.waitFor({ state: "detached" });
  });

  test("a finger can hit the buttons of an approval, and moves the lanes", async () => {
    const page = await browser.open(gateway, "/runs?tab=approvals", {
      width: 360,
      height: 740,
      hasTouch: true,
    });
    for (const name of ["Approve", "Deny…"]) {
      const button = page.getByRole("main").getByRole("button", { name }).first();
      await expect.poll(async () => (await button.boundingBox())?.height).toBeGreaterThanOrEqual(44);
    }
    await page.goto(`${gateway.url}/#${sessionRoute(main, "family")}`);
    const marks = page.locator("svg [data-mark]");
    await marks.first().waitFor();
    const places = async () =>
      new Map(
        await marks.evaluateAll((all) =>
          all.map((mark) => [mark.getAttribute("data-mark"), mark.getBoundingClientRect().x] as const),
        ),
      );
    const width = async () => {
      const all = [...(await places()).values()];
      return Math.max(...all) - Math.min(...all);
    };
    const whole = await width();
    await page.getByRole("button", { name: "Zoom in" }).tap();
    await expect.poll(width).toBeGreaterThan(whole * 1.1);
    const before = await places();
    // A finger hits what is near: a drag starts where there is neither a mark nor a name.
    const plot = page.locator("svg:has([data-mark])").first();
    const { x, y } = await plot.evaluate((svg) => {
      const { left, top, bottom } = svg.getBoundingClientRect();
      const near = [-12, 0, 12].flatMap((dx) => [-12, 0, 12].map((dy) => [dx, dy] as const));
      for (let at = left; at < left + 240; at += 4)
        for (let down = top; down < bottom; down += 4)
          if (near.every(([dx, dy]) => document.elementFromPoint(at + dx, down + dy) === svg))
            return { x: at, y: down };
      throw new Error("There is no free place on the lanes.");
    });
    const devtools = await page.context().newCDPSession(page);
    const touch = (type: "touchStart" | "touchMove" | "touchEnd", at: number | null) =>
      devtools.send("Input.dispatchTouchEvent", {
        type,
        touchPoints: at === null ? [] : [{ x: x + at, y }],
      });
    await touch("touchStart", 0);
    for (const at of [20, 40, 60, 80]) await touch("touchMove", at);
    await touch("touchEnd", null);
    // The drag moves them to the right, whereas the passage of time moves them to the left.
    await expect
      .poll(async () => [...(await places())].some(([id, at]) => at > (before.get(id) ?? at) + 40))
      .toBe(true);
  });
});
