import { spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startChild } from "./start-agent.ts";

let folder = "";
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "start-child-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const own = { PATH: process.env.PATH };
const start = (command: string, args: readonly string[] = []) =>
  startChild({ name: "toy", command, args, env: {}, cwd: folder }, own);

describe("an agent that cannot be started", () => {
  test.each([
    ["nowhere on PATH", "no-such-agent", 'the command "no-such-agent" was not found on PATH'],
    ["no such path", "./agent", 'the command "./agent" does not exist or is not executable'],
    ["not executable", "./text", 'the command "./text" does not exist or is not executable'],
    ["a folder", "./", 'the command "./" does not exist or is not executable'],
  ])("a command that is %s is reported with a remedy", async (_, command, problem) => {
    writeFileSync(join(folder, "text"), "");
    await expect(start(command)).rejects.toMatchObject({
      code: "acp_unavailable",
      details: { agent: "toy", problem, advice: "Install it, or correct acp.agents.toy.command" },
    });
  });

  test("explains how to install a well-known agent", async () => {
    const known = { name: "toy", command: "codex-acp", args: [], env: {}, cwd: folder };
    await expect(startChild(known, { PATH: folder })).rejects.toThrow(
      /Install it \(npm install -g @agentclientprotocol\/codex-acp\), or correct acp\.agents\.toy\.command/,
    );
  });

  test("names a program that cannot be loaded, an invalid argument or a missing folder", async () => {
    writeFileSync(join(folder, "odd"), "#!/no/such/interpreter\n", { mode: 0o755 });
    await expect(start("./odd")).rejects.toThrow(/could not be started: .*ENOENT/);
    await expect(start("sh", ["\0"])).rejects.toThrow(/could not be started/);
    const nowhere = { command: "sh", args: [], env: {}, cwd: join(folder, "gone") };
    await expect(startChild(nowhere, own)).rejects.toThrow(/working directory .* does not exist/);
  });
});

test.skipIf(process.platform !== "linux")(
  "fails without side effects when no more files can be opened",
  async () => {
    const program = fileURLToPath(
      new URL("../../../test/support/acp/start-without-files.ts", import.meta.url),
    );
    const args = ["-c", 'ulimit -n 64; exec "$0" "$1" "$2"', process.execPath, program, folder];
    const started = spawn("sh", args, { stdio: ["ignore", "pipe", "inherit"] });
    const said = await text(started.stdout);
    expect(said).toMatch(/^acp_unavailable .*could not be started: spawn \S+ E[MN]FILE/);
  },
);
