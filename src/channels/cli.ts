import { escapeUnprintable } from "../core/text.ts";
import type { Channel } from "./contract.ts";

/** Channels to people who sit before this program. */

/** Writes messages for a terminal; they cannot move its cursor. */
export function createCliChannel(write: (text: string) => void | Promise<void>, id = "cli"): Channel {
  return {
    id,
    deliver: async ({ text }) => {
      await write(`${escapeUnprintable(text)}\n`);
      return { written: true };
    },
  };
}

/** The console shows the session itself: what stands there is delivered. */
export function createConsoleChannel(id = "console"): Channel {
  return { id, deliver: async ({ sessionKey }) => ({ sessionKey }) };
}
