import type { Redactor } from "../../access/redaction/redactor.ts";
import type { ShownEntry } from "../../sessions/history.ts";
import { messageOf } from "../../sessions/history.ts";
import { isToolMessage } from "./blocks.ts";
import type { CleanedMessage } from "./clean-message.ts";
import { cleanMessage } from "./clean-message.ts";

/** How a tool that reads shows entries. */
export interface EntryReading {
  isWanted(entry: ShownEntry): boolean;
  clean(entry: ShownEntry): CleanedMessage;
}

export function entryReading(redactor: Redactor, includeTools: boolean): EntryReading {
  return {
    isWanted: (entry) =>
      includeTools || entry.type !== "message" || !isToolMessage(entry.message as unknown as Fields),
    clean: (entry) => {
      const message: Fields = { ...messageOf(entry) };
      const timestamp = message.timestamp ?? (Date.parse(entry.timestamp) || 0);
      return cleanMessage({ ...message, timestamp }, { redactor, includeTools });
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;
