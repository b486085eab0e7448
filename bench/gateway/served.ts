import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A server in another process, and the other requests that it accepts. */

export type Wish =
  /** Serves the page from the folder `console` if it is given. */
  | { readonly wish: "gateway"; readonly folder: string; readonly console?: string }
  | { readonly wish: "bare"; readonly bytes: number }
  /** Emits events to this many sessions in turn. */
  | {
      readonly wish: "emit";
      readonly perSecond: number;
      readonly sessions: number;
      readonly count: number;
    }
  | { readonly wish: "used" };

export interface Told {
  readonly url?: string;
  readonly token?: string;
  readonly rssMb?: number;
  readonly peakMb?: number;
  /** The CPU time of all its threads since it started. */
  readonly cpuUs?: number;
}

export interface Served {
  readonly url: URL;
  readonly token: string;
  ask(wish: Wish): Promise<Told>;
}

const file = fileURLToPath(new URL("server-child.js", import.meta.url));

/** Starts a server, runs the work, and stops the server. */
export async function withServer<T>(wish: Wish, act: (served: Served) => Promise<T>): Promise<T> {
  const execArgv =
    process.env.BENCH_PROFILE === undefined
      ? []
      : ["--cpu-prof", `--cpu-prof-dir=${process.env.BENCH_PROFILE}`];
  const child = fork(file, { stdio: ["ignore", "ignore", "inherit", "ipc"], execArgv });
  try {
    const { url = "", token = "" } = await told(child, wish);
    return await act({ url: new URL(url), token, ask: (next) => told(child, next) });
  } finally {
    child.disconnect();
    await new Promise((resolve) => child.once("exit", resolve));
  }
}

function told(child: ChildProcess, wish: Wish): Promise<Told> {
  return new Promise((resolve, reject) => {
    const fail = (code: number | null) => reject(new Error(`the server ended with ${code}`));
    child.once("exit", fail);
    child.once("message", (answer: Told) => {
      child.off("exit", fail);
      resolve(answer);
    });
    child.send(wish);
  });
}
