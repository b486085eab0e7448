import type { Clock } from "./clock.ts";
import { systemClock } from "./clock.ts";

/** Returns a new UUIDv7 on each call. As a string, it is greater than all previous ones. */
export type IdSource = () => string;

type RandomBytes = (bytes: Uint8Array<ArrayBuffer>) => void;

const pool = new Uint8Array(4096);
let used = pool.length;

/** Requesting many random bytes costs as much as requesting a few. */
const systemRandom: RandomBytes = (bytes) => {
  if (used + bytes.length > pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  bytes.set(pool.subarray(used, used + bytes.length));
  used += bytes.length;
};

const counterLimit = 0x1000;

/**
 * IDs are ordered by time and always increase. If the clock stands still or runs backward, a 12-bit counter increases
 * instead. When the counter overflows, the time field increases.
 */
export function createIdSource(clock: Clock = systemClock, random: RandomBytes = systemRandom): IdSource {
  const bytes = new Uint8Array(16);
  let time = 0;
  let counter = 0;
  return () => {
    random(bytes);
    const now = clock.now();
    if (now > time) {
      time = now;
      counter = ((at(bytes, 6) & 0x07) << 8) | at(bytes, 7);
    } else if (++counter === counterLimit) {
      time += 1;
      counter = 0;
    }
    const timeHex = time.toString(16).padStart(12, "0");
    const variant = ((at(bytes, 8) & 0x3f) | 0x80).toString(16);
    return `${timeHex.slice(0, 8)}-${timeHex.slice(8)}-7${hex(counter, 3)}-${variant}${hexOf(bytes, 9, 10)}-${hexOf(bytes, 10, 16)}`;
  };
}

function at(bytes: Uint8Array, index: number): number {
  return bytes[index] ?? 0;
}

function hex(value: number, width: number): string {
  return value.toString(16).padStart(width, "0");
}

function hexOf(bytes: Uint8Array, from: number, to: number): string {
  let text = "";
  for (let i = from; i < to; i++) text += hex(at(bytes, i), 2);
  return text;
}
