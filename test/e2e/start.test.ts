import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { Started } from "../support/cli-process.ts";
import { signalTo } from "../support/proc.ts";
import { skeinProgram } from "../support/programs.ts";
import { findRunning, runningPath } from "../support/running-gateway.ts";

const script = (name: string) => fileURLToPath(new URL(`../support/${name}.ts`, import.meta.url));
const gateway = script("gateway-child");
/** Started without npm. */
const byHand = { npm_lifecycle_event: "", SKEIN_LOGGING__LEVEL: "silent" };
const started: Started[] = [];
let folder: TemporaryFolder;
let dir: string;
beforeEach(() => {
  folder = temporaryFolder();
  dir = join(folder.path, "root");
});
afterEach(() => {
  const left = findRunning(dir)?.pid;
  for (const { child } of started.splice(0)) child.kill("SIGKILL");
  if (left !== undefined) signalTo(left, "SIGKILL");
  folder.remove();
});

function start(args: readonly string[], env: NodeJS.ProcessEnv = byHand): Started {
  const process = new Started(args, env);
  started.push(process);
  return process;
}

/** Resolves to the folder's gateway once it is running. */
async function running(): Promise<{ pid: number; url: string }> {
  await expect.poll(() => findRunning(dir)).not.toBe(null);
  const { pid, url } = JSON.parse(readFileSync(runningPath(dir), "utf8")) as { pid: number; url: string };
  return { pid, url };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false; // there is no such process
  }
}

const ready = async (url: string) => (await fetch(`${url}/readyz`)).status;
const over = () => expect.poll(() => existsSync(runningPath(dir)));

describe("skein start, as a process", () => {
  test.each(["SIGTERM", "SIGINT"] as const)("[GST4] %s stops it, with exit code 0", async (signal) => {
    const one = start([gateway, dir]);
    await one.until(/Press Ctrl-C to stop it/);
    const { url, pid } = await running();
    expect(pid).toBe(one.child.pid);
    expect(one.out).toContain(`${url}/#code=skein_code_`);
    expect(one.out).not.toContain(readFileSync(join(dir, "token"), "utf8").trim());
    expect(await ready(url)).toBe(200);
    one.child.kill(signal);
    expect(await one.end()).toBe(0);
    expect(one.out).toContain(`Stopping (${signal})`);
    expect(existsSync(runningPath(dir))).toBe(false);
  });

  test("[GST1] with all its parts it accepts the token that it created", async () => {
    const one = start([skeinProgram, "start", "--dir", dir, "--port", "0"]);
    await one.until(/Press Ctrl-C to stop it/);
    const { url } = await running();
    const token = readFileSync(join(dir, "token"), "utf8").trim();
    const call = async (method: string, params: object) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const answer = await fetch(`${url}/rpc/${method}`, {
        method: "POST",
        headers,
        body: JSON.stringify(params),
      });
      return (await answer.json()) as Record<string, unknown>;
    };
    const params = { sessionKey: "main", message: "hello", idempotencyKey: "a" };
    const { runId } = await call("chat.send", params);
    expect(await call("agent.wait", { runId, timeoutMs: 150_000 })).toMatchObject({
      finished: true,
      state: "ok",
    });
    expect(await call("maintenance.run", {})).toMatchObject({ mode: "warn" });
    one.child.kill("SIGTERM");
    expect(await one.end()).toBe(0);
    expect(one.err).toBe("");
  });

  test.runIf(process.platform === "linux")(
    "[CLI70] --open opens the printed link in the browser",
    async () => {
      const opened = join(folder.path, "opened");
      const browser = join(folder.path, "xdg-open");
      writeFileSync(
        browser,
        `#!/bin/sh\nprintf %s "$1" > '${opened}.part' && mv '${opened}.part' '${opened}'\n`,
        {
          mode: 0o755,
        },
      );
      const path = `${folder.path}:${process.env.PATH}`;
      const one = start([skeinProgram, "start", "--dir", dir, "--port", "0", "--open"], {
        ...byHand,
        PATH: path,
      });
      await one.until(/Press Ctrl-C to stop it/);
      await expect.poll(() => existsSync(opened)).toBe(true);
      const link = readFileSync(opened, "utf8");
      expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#code=skein_code_/);
      expect(one.out).toContain(link);
      one.child.kill("SIGTERM");
      expect(await one.end()).toBe(0);
      expect(one.err).toBe("");
    },
  );

  test("[GST2] started again it prints the address of the running gateway, and exits with 0", async () => {
    const one = start([gateway, dir]);
    await one.until(/Press Ctrl-C to stop it/);
    const { url, pid } = await running();
    const again = start([gateway, dir]);
    expect(await again.end()).toBe(0);
    expect(again.out).toContain(`is already running for this folder (process ${pid})`);
    expect(again.out).toContain(`${url}/#code=`);
    expect(await ready(url)).toBe(200);
  });

  test("[GST4] a second signal ends it at once, unless it is an echo of the first", async () => {
    const one = start([gateway, dir, "--stuck"]);
    await one.until(/Press Ctrl-C to stop it/);
    const { pid } = await running();
    one.child.kill("SIGINT");
    one.child.kill("SIGINT");
    // The folder has been released, so neither signal was treated as a second one. The stuck part follows.
    await over().toBe(false);
    expect(isAlive(pid)).toBe(true);
    const again = () => {
      one.child.kill("SIGTERM");
      return isAlive(pid);
    };
    await expect.poll(again).toBe(false);
    expect(await one.end()).toBe(0);
  });

  test("[GST6] a killed npm ends it, even with a shell in between", async () => {
    const npm = start([script("npm-like"), "start", gateway, dir]);
    await npm.until(/Press Ctrl-C to stop it/);
    const { pid } = await running();
    npm.child.kill("SIGKILL");
    await over().toBe(false);
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test("[GST6] a killed shell that called npm ends it", async () => {
    const call = `'${process.execPath}' '${script("npm-like")}' start '${gateway}' '${dir}'; exit $?`;
    const shell = start([
      "-e",
      `process.title = "sh"; require("node:child_process").spawn("sh", ["-c", process.argv[1]], { stdio: "inherit" }).on("spawn", () => undefined)`,
      call,
    ]);
    await shell.until(/Press Ctrl-C to stop it/);
    const { pid } = await running();
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const parentOf = (text: string) => Number(/^PPid:\s+(\d+)/m.exec(text)?.[1]);
    // The gateway, npm's shell, npm, and the shell that called it.
    let above = parentOf(status);
    for (let step = 0; step < 2; step++) above = parentOf(readFileSync(`/proc/${above}/status`, "utf8"));
    process.kill(above, "SIGKILL");
    await over().toBe(false);
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test("[GST6] a gateway that npm did not start outlives its parent", async () => {
    const parent = start([script("npm-like"), "", gateway, dir]);
    await parent.until(/Press Ctrl-C to stop it/);
    const { pid, url } = await running();
    parent.child.kill("SIGKILL");
    await expect.poll(() => isAlive(parent.child.pid ?? 0)).toBe(false);
    // Waits as long as another process takes to start and find the gateway.
    const again = start([gateway, dir]);
    expect(await again.end()).toBe(0);
    expect(again.out).toContain(url);
    expect(await ready(url)).toBe(200);
    // The gateway still receives signals.
    process.kill(pid, "SIGTERM");
    await over().toBe(false);
  });
});
