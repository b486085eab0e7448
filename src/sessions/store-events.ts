import type { Emit } from "../core/events.ts";
import type { StoreChange } from "../store/contract.ts";

/** What a store tells, as events of the bus. */
export function storeEvents(emit: Emit, now: () => number): (change: StoreChange) => void {
  return (change) => {
    const { userId, key, sessionId } = change.session;
    const about = { at: now(), userId, sessionKey: key, sessionId };
    switch (change.type) {
      case "created":
        return emit({ type: "session.created", ...about });
      case "patched": {
        const isArchived =
          change.session.meta.archived === true && change.changed?.includes("archived") === true;
        return emit({ type: isArchived ? "session.archived" : "session.updated", ...about });
      }
      // Under the key, which is the fresh one's now.
      case "reset": {
        const { key: sessionKey, sessionId: freshSessionId } = change.fresh;
        return emit({ type: "session.reset", ...about, sessionKey, freshSessionId });
      }
      case "redacted":
        return emit({ type: "session.updated", ...about, isRedacted: true });
      case "removed":
      case "purged":
        return emit({ type: "session.deleted", ...about });
      case "restored":
        return emit({ type: "session.restored", ...about });
      case "appended":
        for (const entry of change.entries) emit({ type: "entry.appended", ...about, entry });
    }
  };
}
