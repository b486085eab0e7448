import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Answer, Order } from "./child.ts";
import type { Figures } from "./side.ts";

const childFile = fileURLToPath(new URL(".build/bench/child.js", import.meta.url));

/** Longer than any act or fixture takes. */
const longestMs = 30 * 60_000;

export class ChildProblem extends Error {}

/** Runs one act in a new process, from compiled JavaScript, so that memory and warm-up are not shared. */
export async function inChild(order: Order, options: { heapMb?: number; env?: Record<string, string> } = {}) {
  if (!existsSync(childFile)) throw new Error("the benchmark is not compiled; begin with bench/run.ts");
  const execArgv = options.heapMb === undefined ? [] : [`--max-old-space-size=${options.heapMb}`];
  const child = fork(childFile, { execArgv, env: { ...process.env, ...options.env }, silent: true });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (bytes) => (said += String(bytes)));
  return new Promise<Figures>((resolve, reject) => {
    const overdue = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new ChildProblem(`${order.act} did not end within ${longestMs / 60_000} minutes`));
    }, longestMs);
    child.once("message", (answer: Answer) => {
      if ("figures" in answer) resolve(answer.figures);
      else reject(new ChildProblem(answer.problem));
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      clearTimeout(overdue);
      reject(new ChildProblem(`it ended with ${signal ?? code}: ${said.slice(-400)}`));
    });
    child.send(order);
  });
}
