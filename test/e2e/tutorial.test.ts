import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import { StartedInside } from "../support/cli-inside.ts";
import type { CommandOutput } from "../support/cli-process.ts";
import { Started } from "../support/cli-process.ts";
import { freePort } from "../support/gateway-clients-process.ts";

const execute = promisify(execFile);
const fromRoot = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const tutorial = readFileSync(fromRoot("docs/tutorial.md"), "utf8");

interface Block {
  readonly language: string;
  /** The file that a reader saves the block as, or the program whose output it shows. */
  readonly name: string;
  readonly code: string;
}

const blocks: readonly Block[] = [
  ...tutorial.matchAll(/(?:Save this as `([^`]+)`:\s+)?^```(\w+)(?: (\S+))?\n([\s\S]*?)^```$/gm),
].map(([, file, language = "", program, code = ""]) => ({ language, name: file ?? program ?? "", code }));

let home: TemporaryFolder;
let folder: string;
const programs = new Map<string, Started>();
let gateway: StartedInside | null = null;

beforeEach(() => {
  home = temporaryFolder();
  folder = join(home.path, "repairs");
});
afterEach(async () => {
  for (const { child } of programs.values()) child.kill("SIGKILL");
  await Promise.all([...programs.values()].map((each) => each.end()));
  programs.clear();
  await gateway?.stop();
  gateway = null;
  home.remove();
});

/** Takes the place of building and installing: a package whose client is the source. */
function installSkein(): void {
  const installed = join(home.path, "package");
  mkdirSync(installed);
  mkdirSync(folder);
  const exports = { "./client": "./client.ts" };
  writeFileSync(join(installed, "package.json"), JSON.stringify({ name: "skein", type: "module", exports }));
  const client = pathToFileURL(fromRoot("src/entry-client.ts"));
  writeFileSync(join(installed, "client.ts"), `export * from "${client}";\n`);
}

/** Node resolves the package from the folder, but compiles TypeScript only outside node_modules. */
function saveFile(name: string, code: string): void {
  const client = pathToFileURL(join(home.path, "package/client.ts")).href;
  writeFileSync(join(folder, name), code.replace('"skein/client"', JSON.stringify(client)));
}

function words(command: string): string[] {
  return (command.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));
}

/** Runs a line of a shell block. Returns its output, or the program that it leaves running. */
async function runLine(line: string): Promise<string | CommandOutput> {
  if (line === "npx skein start") {
    gateway = new StartedInside(["start"], folder, { SKEIN_GATEWAY__PORT: "0" });
    return gateway;
  }
  if (line.startsWith("npx skein ")) {
    const env = { PATH: process.env.PATH, HOME: home.path };
    const { out, err, exit } = await run(words(line).slice(2), { cwd: folder, home: home.path, env });
    expect({ line, exit, err }).toMatchObject({ exit: expect.any(Number), err: "" });
    return out;
  }
  const [, name = ""] = /^node .*?(\S+\.mts)$/.exec(line) ?? [];
  if (name !== "") {
    const started = new Started(words(line).slice(1), {}, { cwd: folder });
    programs.set(name, started);
    return started;
  }
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
  return (await execute("sh", ["-c", line], { cwd: folder, env })).stdout;
}

function escapePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** The lines of a text block in order, with anything between them. An ellipsis stands for any text. */
function patternOf(lines: readonly string[]): RegExp {
  const parts = lines.map((line) => line.trim().split("…").map(escapePattern).join("[\\s\\S]*?"));
  return new RegExp(parts.join("[\\s\\S]*?"));
}

async function expectOutput(output: string | CommandOutput, text: string): Promise<void> {
  const lines = text.trimEnd().split("\n");
  if (typeof output === "string") return expect(output).toMatch(patternOf(lines));
  const seen: string[] = [];
  for (const line of lines) {
    const [, typed] = /^you: (.+)$/.exec(line) ?? [];
    seen.push(typed === undefined ? line : "you:");
    await output.until(patternOf(seen));
    if (typed !== undefined) (output as Started).write(`${typed}\n`);
  }
}

test("[WRD12] the tutorial, from an empty folder to a chat with two agents", async () => {
  const door = String(await freePort());
  let port = "18790";
  let output: string | CommandOutput = "";
  for (const { language, name, code } of blocks) {
    const text = code.replaceAll("18790", port).replaceAll("18791", door);
    if (code.includes("npm run build")) continue;
    if (code.includes("npm install ../skein-*.tgz")) installSkein();
    else if (language === "yaml" || language === "ts") saveFile(name, text);
    else if (language === "text") await expectOutput(programs.get(name) ?? output, text);
    else {
      output = "";
      for (const line of text.trim().split("\n")) {
        const printed = await runLine(line);
        output = typeof printed === "string" ? `${output}${printed}` : printed;
      }
      if (output === gateway) [, port = ""] = await gateway.until(/http:\/\/127\.0\.0\.1:(\d+)/);
    }
  }
  expect(blocks.length).toBeGreaterThan(15);
  expect([...programs.keys()]).toEqual(["watch.mts", "door.mts"]);
});

test("[WRD12] a block of the tutorial that does not work as shown fails", async () => {
  await expect(expectOutput("refused", "accepted")).rejects.toThrow();
  await expect(expectOutput("one\ntwo", "two\none")).rejects.toThrow();
});
