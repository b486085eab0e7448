import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { describe, expect, test } from "vitest";
import { disabledFeatures, findBrowser } from "../../scripts/find-browser.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";

describe("the browser of the tests", () => {
  test("is the one that SKEIN_BROWSER names, or one in the PATH", () => {
    const folder = temporaryFolder("skein-browser-");
    try {
      const path = join(folder.path, "chromium");
      writeFileSync(path, "");
      chmodSync(path, 0o755);
      const PATH = ["", join(folder.path, "missing"), folder.path].join(delimiter);
      expect(findBrowser({ PATH })).toBe(path);
      expect(findBrowser({ PATH, SKEIN_BROWSER: "/opt/browser" })).toBe("/opt/browser");
    } finally {
      folder.remove();
    }
  });

  test("runs without every feature that Playwright disables, whose list ours replaces", () => {
    const bundle = readFileSync(
      createRequire(import.meta.url).resolve("playwright-core/lib/coreBundle"),
      "utf8",
    );
    const list = /disabledFeatures = \[(?<features>[^\]]+)\]/.exec(bundle)?.groups?.features ?? "";
    const features = [...list.replaceAll(/^ *\/\/.*$/gm, "").matchAll(/"(?<name>\w+)"/g)];
    expect(features.length).toBeGreaterThan(5);
    expect(disabledFeatures).toEqual(expect.arrayContaining(features.map(({ groups }) => groups?.name)));
  });
});
