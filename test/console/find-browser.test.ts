import { execFile } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { disabledFeatures, findBrowser, missingBrowser, provideBrowser } from "../../scripts/find-browser.ts";
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

  test.runIf(process.platform === "linux" && process.arch === "x64")(
    "is the one from npm if none is installed",
    async () => {
      const path = (await provideBrowser({ PATH: "" })) ?? "";
      const { default: packed } = await import("@sparticuz/chromium");
      expect(path).toBe(await packed.executablePath());
      expect(findBrowser({ PATH: dirname(path) })).toBe(path);
    },
  );

  test("is missing in a run that skips its tests and says what to install, and fails where it must exist", async () => {
    const folder = temporaryFolder("skein-browser-");
    const root = join(import.meta.dirname, "../..");
    try {
      // Without the builds and services that only other tests need.
      const reporters = ["default", join(root, "test/support/list-skipped.ts")];
      const include = ["test/console/home.test.ts"];
      const config = join(folder.path, "vitest.config.mjs");
      writeFileSync(config, `export default ${JSON.stringify({ test: { include, reporters } })};\n`);
      const run = async (needsBrowser: string) => {
        const env = {
          ...process.env,
          SKEIN_BROWSER: join(folder.path, "none"),
          SKEIN_NEEDS_BROWSER: needsBrowser,
        };
        const vitest = join(root, "node_modules/vitest/vitest.mjs");
        const args = [vitest, "run", "--root", root, "--config", config];
        return promisify(execFile)(process.execPath, args, { env }).then(
          ({ stdout }) => ({ code: 0, text: stdout }),
          ({ code, stdout, stderr }) => ({ code, text: stdout + stderr }),
        );
      };
      const [skipping, failing] = await Promise.all([run(""), run("1")]);
      expect(skipping).toEqual({ code: 0, text: expect.stringMatching(/skipped \(\d+\): /) });
      expect(failing.code).toBe(1);
      for (const { text } of [skipping, failing]) {
        expect(text).toContain(missingBrowser);
        expect(text).toMatch(/^console tests: \d+\.\d s in 1 file$/m);
      }
      expect(readFileSync(join(root, ".ci/run"), "utf8")).toContain("export SKEIN_NEEDS_BROWSER=1");
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
