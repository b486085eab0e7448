import { escapeUnprintable } from "../core/text.ts";
import type { Channel } from "./contract.ts";

/** Writes messages to a terminal. Control characters are escaped so that a message cannot move the cursor. */
export function createCliChannel(write: (text: string) => void | Promise<void>, id = "cli"): Channel {
  return {
    id,
    deliver: async ({ text }) => {
      await write(`${escapeUnprintable(text)}\n`);
      return { written: true };
    },
  };
}

/** The console shows the session itself, so a message in the session has already been delivered. */
export function createConsoleChannel(id = "console"): Channel {
  return { id, deliver: async ({ sessionKey }) => ({ sessionKey }) };
}
