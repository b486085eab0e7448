import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { skeinProgram, supportProgram } from "../support/programs.ts";
import { sessionText, userLine } from "../support/session-text.ts";

const holder = supportProgram("signal-child");
const started: ChildProcess[] = [];
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-signals-"));
});
afterAll(() => {
  for (const child of started) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Resolves to a process that holds a session file's lock, once it has acquired the lock. */
async function holding(file: string): Promise<ChildProcess> {
  writeFileSync(file, sessionText(userLine("a", null)));
  const child = spawn(process.execPath, [holder, `${file}.lock`], { stdio: ["ignore", "pipe", "inherit"] });
  started.push(child);
  await once(child.stdout as NodeJS.ReadableStream, "data");
  return child;
}

describe("signals", () => {
  test.each(["SIGINT", "SIGTERM", "SIGQUIT", "SIGABRT"] as const)(
    "[CLI22] %s ends a process that holds a lock by an exit, and the lock is gone",
    async (signal) => {
      const file = join(folder, `${signal}.jsonl`);
      const child = await holding(file);
      expect(existsSync(`${file}.lock`)).toBe(true);
      child.kill(signal);
      expect(await once(child, "exit")).toEqual([128 + constants.signals[signal], null]);
      expect(existsSync(`${file}.lock`)).toBe(false);
    },
  );

  test("[CLI22] the command itself exits in the same way, and leaves the locks of others", async () => {
    const file = join(folder, "waited-for.jsonl");
    const other = await holding(file);
    const command = spawn(process.execPath, [skeinProgram, "sessions", "repair", file], { stdio: "ignore" });
    started.push(command);
    await expect.poll(() => existsSync(`${file}.lock.wait`)).toBe(true);
    command.kill("SIGTERM");
    expect(await once(command, "exit")).toEqual([128 + constants.signals.SIGTERM, null]);
    expect(existsSync(`${file}.lock`)).toBe(true);
    other.kill("SIGTERM");
    await once(other, "exit");
  });
});
