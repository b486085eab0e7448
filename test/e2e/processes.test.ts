import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { userLine } from "../support/session-text.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const bin = join(root, "bin/skein.mjs");
const sample = join(root, "examples/family/food.jsonl");
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-e2e-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function node(args: string[], options: { env?: NodeJS.ProcessEnv; cwd?: string } = {}) {
  const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: "1", ...options.env };
  delete env.FORCE_COLOR;
  return spawnSync(process.execPath, args, { encoding: "utf8", cwd: options.cwd ?? folder, env });
}

describe("the skein command", () => {
  test("[CLI1] [CLI2] runs from source with plain node", () => {
    const { stdout, stderr, status } = node([bin, "context", sample, "--json"]);
    expect(JSON.parse(stdout).request.messages).toHaveLength(3);
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    expect(node([bin, "context", "./missing.jsonl"]).status).toBe(1);
    expect(node([bin, "nonsense"]).status).toBe(2);
  });

  test("[CLI4] NO_COLOR overrides a request for color", () => {
    const wish = { FORCE_COLOR: "1" };
    const tree = (env: NodeJS.ProcessEnv) =>
      spawnSync(process.execPath, [bin, "sessions", "tree", sample], {
        encoding: "utf8",
        env: { ...process.env, ...env },
      }).stdout;
    expect(tree({ ...wish, NO_COLOR: "" })).toContain("\u001b[");
    expect(tree({ ...wish, NO_COLOR: "1" })).not.toContain("\u001b");
    expect(tree({ FORCE_COLOR: undefined, NO_COLOR: undefined })).not.toContain("\u001b");
  });

  test("[CLI6] under npm run skein, paths are the caller's; under another script, the script's", () => {
    const env = {
      INIT_CWD: join(root, "examples/family"),
      npm_package_name: "skein",
      npm_lifecycle_event: "skein",
    };
    expect(node([bin, "context", "./food.jsonl"], { env }).status).toBe(0);
    expect(
      node([bin, "context", "./food.jsonl"], { env: { ...env, npm_package_name: "theirs" } }).status,
    ).toBe(1);
  });

  test("[CLI2] a reader that closes the pipe is not a failure", () => {
    const large = join(folder, "large.jsonl");
    const lines = Array.from({ length: 3000 }, (_, i) =>
      JSON.stringify(userLine(`e${i}`, i === 0 ? null : `e${i - 1}`, "x".repeat(1000))),
    );
    writeFileSync(large, `{"type":"session","version":3,"id":"large"}\n${lines.join("\n")}\n`);
    const command = `"${process.execPath}" "${bin}" context "${large}" --json | head -c 10; exit \${PIPESTATUS[0]}`;
    const { status, stderr } = spawnSync("bash", ["-c", command], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  test("[CLI3] an output that cannot be written is reported in one line", () => {
    const command = `"${process.execPath}" "${bin}" context "${sample}" > /dev/full`;
    const { status, stderr } = spawnSync("bash", ["-c", command], { encoding: "utf8" });
    expect(stderr).toMatch(/^error: The output cannot be written: .+\n$/);
    expect(status).toBe(1);
  });

  test("[SET3] an old Node gets one line and exit code 1, before anything is loaded", () => {
    const script = readFileSync(bin, "utf8").replace("process.versions.node", '"20.20.2"');
    const old = join(folder, "old.mjs");
    writeFileSync(old, script);
    const { stdout, stderr, status } = node([old, "context", sample]);
    expect(stderr).toMatch(
      /^skein requires Node 24 or newer, but this is Node 20\.20\.2\. .+npm run skein.+\n$/,
    );
    expect({ stdout, status }).toEqual({ stdout: "", status: 1 });
  });
});

describe("set-up", () => {
  /** A minimal checkout with the setup script, a lock file, and an npm that only records its calls. */
  function checkout(name: string, npm: string) {
    const home = join(folder, name);
    mkdirSync(join(home, "scripts"), { recursive: true });
    cpSync(join(root, "scripts/setup.mjs"), join(home, "scripts/setup.mjs"));
    writeFileSync(join(home, "package-lock.json"), "{}");
    writeFileSync(join(home, "package.json"), '{"dependencies":{"needed":"1"}}');
    const fake = join(home, "npm-cli.js");
    writeFileSync(
      fake,
      `require("node:fs").appendFileSync("calls.txt", process.argv.slice(2).join(" ") + "\\n");\n${npm}`,
    );
    const run = () => node([join(home, "scripts/setup.mjs")], { cwd: home, env: { npm_execpath: fake } });
    const calls = () =>
      existsSync(join(home, "calls.txt"))
        ? readFileSync(join(home, "calls.txt"), "utf8").split("\n").length - 1
        : 0;
    return { home, run, calls };
  }
  const installs = `
    const fs = require("node:fs");
    fs.rmSync("node_modules", { recursive: true, force: true });
    fs.mkdirSync("node_modules/node/bin", { recursive: true });
    fs.symlinkSync(process.execPath, "node_modules/node/bin/node");
    fs.mkdirSync("node_modules/needed");
    fs.writeFileSync("node_modules/needed/package.json", "{}");
    console.log("noise");`;

  test("[SET1] installs once, silently on stdout, and again when the lock file changes", () => {
    const { home, run, calls } = checkout("fresh", installs);
    const first = run();
    expect(first).toMatchObject({ status: 0, stdout: "" });
    expect(first.stderr).toContain("setting up");
    expect(readFileSync(join(home, "calls.txt"), "utf8")).toMatch(/^ci .*--include=dev/);
    expect(run()).toMatchObject({ status: 0, stdout: "", stderr: "" });
    expect(calls()).toBe(1);
    writeFileSync(join(home, "package-lock.json"), '{"changed":true}');
    expect(run().status).toBe(0);
    expect(calls()).toBe(2);
  });

  test("[SET1] an interrupted install is repeated", () => {
    const { home, run, calls } = checkout("half", installs);
    mkdirSync(join(home, "node_modules/node/bin"), { recursive: true });
    symlinkSync(process.execPath, join(home, "node_modules/node/bin/node"));
    expect(run().status).toBe(0);
    expect(calls()).toBe(1);
    rmSync(join(home, "node_modules/node"), { recursive: true });
    expect(run().status).toBe(0);
    expect(calls()).toBe(2);
    rmSync(join(home, "node_modules/needed"), { recursive: true });
    expect(run().status).toBe(0);
    expect(calls()).toBe(3);
  });

  test("[SET1] a failed install is reported, leaves no stamp and no lock, and is tried again", () => {
    const { home, run, calls } = checkout("failing", "process.exit(7);");
    expect(run()).toMatchObject({ status: 1, stdout: "" });
    expect(run().stderr).toContain("npm ci failed (exit 7)");
    expect(calls()).toBe(2);
    expect(existsSync(join(home, ".setup.lock"))).toBe(false);
  });

  test("[SET1] a lock left by a killed set-up is taken over", () => {
    const { home, run } = checkout("locked", installs);
    writeFileSync(join(home, ".setup.lock"), "999999999");
    expect(run().status).toBe(0);
    rmSync(join(home, "node_modules"), { recursive: true });
    writeFileSync(join(home, ".setup.lock"), "");
    utimesSync(join(home, ".setup.lock"), 1, 1);
    expect(run().status).toBe(0);
  });

  test("the lock file is complete and names no host", () => {
    const text = readFileSync(join(root, "package-lock.json"), "utf8");
    const lock = JSON.parse(text) as {
      packages: Record<string, { version?: string; integrity?: string; link?: boolean }>;
    };
    const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    expect(text).not.toMatch(/"resolved"|https?:\/\/[^"]*registry/);
    for (const [place, { version, integrity }] of Object.entries(lock.packages)) {
      if (place !== "")
        expect({ place, complete: version !== undefined && integrity !== undefined }).toEqual({
          place,
          complete: true,
        });
    }
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
      expect(lock.packages[`node_modules/${name}`]?.version).toBe(version);
    }
  });
});
