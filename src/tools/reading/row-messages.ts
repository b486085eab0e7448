import type { Redactor } from "../../access/redaction/redactor.ts";
import { SkeinError } from "../../core/errors.ts";
import { Slices } from "../../core/slices.ts";
import type { App } from "../../sessions/app.ts";
import { readHistoryRange } from "../../sessions/history-range.ts";
import type { Asker } from "../../sessions/session-access.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { cappingMessages } from "./cap-messages.ts";
import { scopeOf } from "./scope.ts";
import { entryReading } from "./shown-message.ts";

/** What a row of a list has of its session's last messages. */
export interface RowMessages {
  readonly messages?: readonly Readonly<Record<string, unknown>>[];
  /** To be allowed to list is not to be allowed to read: the code of the refusal. */
  readonly messagesRefused?: string;
  readonly messagesError?: string;
}

type Deps = Pick<App, "access" | "store" | "report"> & { readonly redactor: Redactor };

/** The last messages of a session, tool messages left out before they are counted. Never throws: a failure is the row's. */
export async function rowMessages(
  asker: Asker,
  session: SessionRecord,
  limit: number,
  { access, store, redactor, report }: Deps,
): Promise<RowMessages> {
  try {
    const refusal = await access.check(asker, session, "history");
    if (refusal !== null) return { messagesRefused: refusal.code };
    const { isWanted, clean } = entryReading(redactor, false);
    const { sessionId } = session;
    const { entries } = await readHistoryRange(
      store.sessions,
      scopeOf(asker),
      sessionId,
      { limit },
      isWanted,
    );
    const { messages } = await new Slices().run(cappingMessages(entries, clean));
    return { messages };
  } catch (error) {
    report(error);
    // No more than the code: the text of a failure names files of this machine.
    const code = error instanceof SkeinError ? error.code : "internal";
    return { messagesError: `The messages could not be read (${code}); sessions_history may say more.` };
  }
}
