import type { WebSocket } from "ws";
import type { Figures, Job } from "../side.ts";
import { check, openSocket } from "./lines.ts";
import { at } from "./load.ts";
import type { Served } from "./served.ts";
import { withServer } from "./served.ts";

/** Many event readers, each on its own socket, and the latency of the events. */

const secondsHeard = 10;
const perToken = 50;
/** The prefix of the emission time in an event. */
const mark = '"toolCallId":"sent-';

export async function hear(job: Job): Promise<Figures> {
  const { folder, count = 1000, kind = "own", rate = 1000 } = job;
  return withServer({ wish: "gateway", folder }, async (served) => {
    const heard = new Heard();
    const sockets = await subscribed(served, count, kind, heard);
    const sessions = kind === "own" ? count : 1;
    await served.ask({ wish: "emit", perSecond: rate, sessions, count: rate });
    const { rssMb: before = 0 } = await served.ask({ wish: "used" });
    const expected = rate * secondsHeard * (kind === "own" ? 1 : count);
    heard.begin(expected);
    const started = performance.now();
    await served.ask({ wish: "emit", perSecond: rate, sessions, count: rate * secondsHeard });
    await heard.all;
    const ms = performance.now() - started;
    const { rssMb: after = 0, peakMb = 0 } = await served.ask({ wish: "used" });
    for (const socket of sockets) socket.terminate();
    const times = heard.times.toSorted();
    return {
      p50Ms: at(times, 0.5),
      p99Ms: at(times, 0.99),
      maxMs: times.at(-1) ?? 0,
      heardPerSecond: (times.length / ms) * 1000,
      lost: expected - times.length,
      grownMb: Math.max(0, after - before),
      peakMb,
    };
  });
}

/** The received events and their latency. Both processes use the clock of the same machine. */
class Heard {
  times = new Float64Array(0);
  all: Promise<void> = Promise.resolve();
  #count = -1;
  #done: (() => void) | null = null;

  begin(expected: number): void {
    this.times = new Float64Array(expected);
    this.#count = 0;
    const late = AbortSignal.timeout((secondsHeard + 30) * 1000);
    this.all = new Promise((resolve) => {
      this.#done = resolve;
      late.addEventListener("abort", () => {
        this.times = this.times.slice(0, this.#count);
        resolve();
      });
    });
  }

  take(data: Buffer): void {
    if (this.#count === -1 || this.#count >= this.times.length) return;
    const place = data.indexOf(mark);
    if (place === -1) return;
    const from = place + mark.length;
    const emitted = BigInt(data.toString("latin1", from, data.indexOf('"', from)));
    this.times[this.#count++] = Number(process.hrtime.bigint() - emitted) / 1e6;
    if (this.#count === this.times.length) this.#done?.();
  }
}

/** A token allows 64 sockets by default, so as many tokens as needed are created. */
async function subscribed(served: Served, count: number, kind: string, heard: Heard): Promise<WebSocket[]> {
  const sockets: WebSocket[] = [];
  let token = "";
  for (let number = 0; number < count; number++) {
    if (number % perToken === 0) token = await newToken(served);
    const socket = await openSocket({ ...served, token });
    const key = `agent:main:bench-${kind === "own" ? number : 0}`;
    const params = { keys: [key], events: ["run.*"] };
    const answered = new Promise<Buffer>((resolve) => socket.once("message", resolve));
    socket.send(JSON.stringify({ type: "req", id: "2", method: "sessions.subscribe", params }));
    check(await answered);
    socket.on("message", (data: Buffer) => heard.take(data));
    sockets.push(socket);
  }
  return sockets;
}

async function newToken({ url, token }: Served): Promise<string> {
  const answer = await fetch(new URL("/rpc/tokens.create", url), {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ label: "listener", scopes: ["read"] }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return ((await answer.json()) as { readonly token: string }).token;
}
