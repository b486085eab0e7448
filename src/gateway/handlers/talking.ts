import type { HandlersOf, SkeinDeps } from "../calls/contract.ts";
import type { TalkingMethod } from "./families.ts";
import { abortingHandlers } from "./talking/aborting.ts";
import { chatHandlers } from "./talking/chat.ts";
import { compactHandlers } from "./talking/compact.ts";
import { directoryHandlers } from "./talking/directory.ts";
import { outboxHandlers } from "./talking/outbox.ts";
import { runHandlers } from "./talking/runs.ts";

/** What sets agents to work, and how that stands. */
export function talkingHandlers(deps: SkeinDeps): HandlersOf<TalkingMethod> {
  return {
    ...chatHandlers(deps),
    ...abortingHandlers(deps),
    ...runHandlers(deps),
    ...outboxHandlers(deps),
    ...directoryHandlers(deps),
    ...compactHandlers(deps),
  };
}
