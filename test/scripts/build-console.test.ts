import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import {
  buildStaleConsole,
  checkConsoleSize,
  isConsoleFresh,
  measureConsole,
} from "../../scripts/build-console.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { skeinProgram } from "../support/programs.ts";

/** Writes a file with the given modification time in seconds. */
function writeAt(folder: string, path: string, seconds: number): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "");
  utimesSync(file, seconds, seconds);
}

describe("the build of the console for npm start", () => {
  test("[CLI69] runs if there is none, and not again until a source changes", async () => {
    using folder = temporaryFolder();
    const lines: string[] = [];
    const build = async (to = "") => writeAt(to, "dist/console/index.html", 2000);
    const start = () => buildStaleConsole((line) => lines.push(line), { folder: folder.path, build });
    writeAt(folder.path, "console/src/app.tsx", 1000);
    writeAt(folder.path, "src/protocol/method-table.ts", 1000);
    await start();
    expect(lines).toEqual(["Building the console …", expect.stringMatching(/^The console is built \(\d/)]);
    await start();
    expect(lines).toHaveLength(2);
    writeAt(folder.path, "src/store/memory/store.ts", 3000);
    writeAt(folder.path, "src/protocol/method-table.test.ts", 3000);
    expect(isConsoleFresh(folder.path)).toBe(true);
    for (const path of ["src/protocol/method-table.ts", "console/index.html", "src/client/deep/feed.ts"]) {
      writeAt(folder.path, path, 3000);
      expect(isConsoleFresh(folder.path)).toBe(false);
      writeAt(folder.path, path, 1000);
    }
  });

  test("[CLI69] a build that fails is printed, and the start goes on", async () => {
    using folder = temporaryFolder();
    const lines: string[] = [];
    const build = () => Promise.reject(new Error("app.tsx is broken"));
    await buildStaleConsole((line) => lines.push(line), { folder: folder.path, build });
    expect(lines.at(-1)).toMatch(/could not be built.*\napp\.tsx is broken/);
  });
});

describe("the size of the console", () => {
  test("the build fails if the first view exceeds its budget, whatever later views load", () => {
    using folder = temporaryFolder();
    const assets = join(folder.path, "dist/console/assets");
    mkdirSync(assets, { recursive: true });
    // Random bytes, which gzip cannot shrink.
    writeFileSync(join(assets, "first-1.js"), randomBytes(200_000));
    writeFileSync(join(assets, "later-2.js"), randomBytes(200_000));
    const page = (...names: readonly string[]) => {
      const tags = names.map((name) => `<script src="./assets/${name}"></script>`).join("");
      writeFileSync(join(folder.path, "dist/console/index.html"), tags);
    };
    page("first-1.js");
    expect(measureConsole(folder.path).totalBytes).toBeGreaterThan(400_000);
    expect(() => checkConsoleSize(folder.path)).not.toThrow();
    page("first-1.js", "later-2.js");
    expect(() => checkConsoleSize(folder.path)).toThrow(/first view .* more than its budget of 250000/);
  });

  test("is within its budget in the build that the browser tests use", () => {
    const built = dirname(dirname(skeinProgram));
    expect(measureConsole(built).firstLoadBytes).toBeGreaterThan(50_000);
    expect(() => checkConsoleSize(built)).not.toThrow();
  });
});

test("the package contains the page and every file that it loads", async () => {
  // This folder has the layout and the package.json of the package.
  const cwd = dirname(dirname(skeinProgram));
  const pack = ["pack", "--dry-run", "--ignore-scripts", "--json"];
  const { stdout } = await promisify(execFile)("npm", pack, { cwd, maxBuffer: 64_000_000 });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const packed = files.map(({ path }) => path);
  const built = readdirSync(join(cwd, "dist/console"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(cwd, join(entry.parentPath, entry.name)));
  expect(built).toContain("dist/console/index.html");
  expect(packed).toEqual(expect.arrayContaining(built));
});
