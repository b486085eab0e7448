import type { Line } from "./lines.ts";

/** Load from many concurrent connections. A request's number determines what it asks for. */

export type Question = (number: number) => { readonly method: string; readonly params: string };

export interface Loaded {
  readonly perSecond: number;
  /** Ascending. */
  readonly times: readonly number[];
  readonly bytes: number;
}

/** Each connection sends its next request as soon as it receives a response. */
export async function fullLoad(lines: readonly Line[], question: Question, ms: number): Promise<Loaded> {
  const times: number[] = [];
  let [number, bytes] = [0, 0];
  const started = performance.now();
  const work = async (line: Line) => {
    while (performance.now() - started < ms) {
      const asked = performance.now();
      const { method, params } = question(number++);
      const length = await line.ask(method, params);
      bytes += length;
      times.push(performance.now() - asked);
    }
  };
  await Promise.all(lines.map(work));
  return loaded(times, bytes, performance.now() - started);
}

/**
 * Sends a fixed number of requests per second, whether or not they are answered. Latency is measured from the time at
 * which a request was due, so that no waiting time is missed.
 */
export async function pacedLoad(
  lines: readonly Line[],
  question: Question,
  perSecond: number,
  ms: number,
): Promise<Loaded> {
  const times: number[] = [];
  const free = [...lines];
  const due: number[] = [];
  let [asked, bytes] = [0, 0];
  const started = performance.now();
  const all = Math.floor((perSecond * ms) / 1000);
  return new Promise((resolve, reject) => {
    const serve = () => {
      while (due.length > 0 && free.length > 0) {
        const at = due.shift() as number;
        const line = free.pop() as Line;
        const { method, params } = question(asked++);
        line.ask(method, params).then((length) => {
          bytes += length;
          times.push(performance.now() - at);
          free.push(line);
          if (times.length < all) serve();
          else resolve(loaded(times, bytes, performance.now() - started));
        }, reject);
      }
    };
    let counted = 0;
    const timer = setInterval(() => {
      const now = performance.now() - started;
      for (; counted < all && (counted * 1000) / perSecond <= now; counted++)
        due.push(started + (counted * 1000) / perSecond);
      serve();
      if (counted === all) clearInterval(timer);
    }, 1);
  });
}

function loaded(times: number[], bytes: number, ms: number): Loaded {
  return {
    perSecond: (times.length / ms) * 1000,
    times: times.toSorted((a, b) => a - b),
    bytes: bytes / Math.max(1, times.length),
  };
}

export function at(times: ArrayLike<number>, part: number): number {
  return times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0;
}
