import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Figures, Job } from "../side.ts";

/** Measures the packaged `skein start` from the moment its process is spawned until `/readyz` answers. */

const pollMs = 5;
const longestMs = 120_000;

export async function ready({ folder, file = "" }: Job): Promise<Figures> {
  const port = await freePort();
  const started = performance.now();
  const env = { ...process.env, HOME: folder };
  const child = spawn(process.execPath, [file, "start", "--dir", folder, "--port", String(port)], {
    cwd: folder,
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (bytes) => (said += String(bytes)));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  try {
    while (!(await isReady(folder, port))) {
      if (child.exitCode !== null || performance.now() - started > longestMs) throw new Error(said);
      await sleep(pollMs);
    }
    return { ms: performance.now() - started };
  } finally {
    child.kill();
    await ended;
  }
}

async function isReady(folder: string, port: number): Promise<boolean> {
  const path = join(folder, "token");
  if (!existsSync(path)) return false;
  const headers = { authorization: `Bearer ${readFileSync(path, "utf8").trim()}`, connection: "close" };
  try {
    return (await fetch(`http://127.0.0.1:${port}/readyz`, { headers })).status === 200;
  } catch {
    return false; // not listening yet
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
