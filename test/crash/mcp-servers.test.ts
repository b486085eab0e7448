import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { Started } from "../support/cli-process.ts";
import { startCli } from "../support/cli-process.ts";
import { marked } from "../support/marked.ts";
import { supportProgram } from "../support/programs.ts";
import { soon } from "../support/soon.ts";

/** The real command with two MCP servers. One ignores SIGTERM, and the other has a child outside its group. */

const program = supportProgram("mcp-kill-server");
let folder: TemporaryFolder;
let skein: Started | null = null;

beforeEach(() => {
  folder = temporaryFolder("skein-mcp-kill-");
  const env = { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? "" };
  const server = (name: string) => ({ command: process.execPath, args: [program, folder.path, name], env });
  const mcpServers = { deaf: server("deaf"), plain: server("plain") };
  const config = { defaults: { model: "rehearsal/basic" }, mcpServers };
  writeFileSync(join(folder.path, "skein.yaml"), JSON.stringify(config));
});
afterEach(async () => {
  skein?.child.kill("SIGKILL");
  await skein?.end();
  skein = null;
  try {
    await soon(left).toEqual([]);
  } finally {
    for (const pid of left()) process.kill(pid, "SIGKILL");
    folder.remove();
  }
});

function send(words: string): Started {
  skein = startCli(
    join(folder.path, "skein"),
    "--config",
    join(folder.path, "skein.yaml"),
    "send",
    "main",
    words,
  );
  return skein;
}

/** Returns the servers' reports, one per line. */
function told(): string[] {
  const file = join(folder.path, "told");
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}

const marks = () => told().flatMap((line) => / mark (.+)$/.exec(line)?.[1] ?? []);
/** The servers, the processes they started, and their wardens. */
const left = () => marks().flatMap(marked);

describe.skipIf(process.platform !== "linux")("leftover processes of MCP servers", () => {
  test("[MCT11] are gone after Skein is killed during a call", async () => {
    const { child } = send("use the tool deaf__hold with {}");
    await soon(told).toContain("deaf called");
    expect(marks()).toHaveLength(2);
    // A server, its warden, and its leftover shell with the process that the shell waits for, each of them twice.
    await soon(() => left().length).toBe(8);
    child.kill("SIGKILL");
    await soon(left).toEqual([]);
  });

  test("[MCT8] are gone after Skein has finished its work", async () => {
    const done = send("repeat hello");
    expect(await done.end(), done.err).toBe(0);
    expect(marks()).toHaveLength(2);
    expect(left()).toEqual([]);
  });

  test("[MCT8] are gone after a call is aborted", async () => {
    const { child } = send("use the tool plain__hold with {}");
    await soon(told).toContain("plain called");
    child.kill("SIGINT");
    await skein?.end();
    expect(left()).toEqual([]);
  });
});
