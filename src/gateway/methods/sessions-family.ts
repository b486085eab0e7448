import { readFamily } from "../../sessions/family.ts";
import { maskFor } from "../auth/mask.ts";
import type { FolderApp, HandlersOf } from "./dispatch.ts";
import { findSession } from "./session-lookup.ts";

/**
 * Returns the sessions related to a session. They all belong to the call's user, so every caller who may read the
 * session may read them; only texts are masked.
 */
export function familyHandlers(app: FolderApp): HandlersOf<"sessions.family"> {
  const { runs } = app;
  return {
    "sessions.family": async (params, call) => {
      const session = await findSession(app, call, params);
      const mask = maskFor(app, call);
      const source = { sessions: app.store.sessions, runs, show: (text: string) => mask.text(text) };
      return readFamily(source, session);
    },
  };
}
