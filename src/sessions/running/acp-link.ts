import type { Message } from "../../core/messages.ts";
import { isRecord } from "../../core/shape.ts";
import type { Run } from "../../runs/contract.ts";
import type { AcpLink } from "../../runtimes/contract.ts";
import type { EntryPage, EntryRange } from "../../store/contract.ts";
import { noSuchSession } from "../../store/refusals.ts";
import type { RunningDeps, RunPlace } from "./contract.ts";

const pageSize = 200;

/** What a session knows of the ACP agent that it stands for; `null`: it stands for none. */
export function acpLink(
  deps: Pick<RunningDeps, "store">,
  place: RunPlace,
  { lost }: Pick<Run, "lost">,
): AcpLink | null {
  const { scope, session } = place;
  const kept = session.meta.acp;
  if (!isRecord(kept)) return null;
  const word = (name: string) => (typeof kept[name] === "string" ? (kept[name] as string) : null);
  return {
    agent: session.agentId,
    agentSessionId: word("agentSessionId"),
    resumeSessionId: word("resumeSessionId"),
    model: word("model"),
    thinking: word("thinking"),
    mode: session.meta.spawnMode === "session" ? "session" : "run",
    wasLost: lost > 0,
    remember: async (agentSessionId) => {
      const { sessions } = deps.store;
      await sessions.patch(scope, session.sessionId, { acp: { ...kept, agentSessionId } });
    },
    unanswered: () => unanswered(deps, place),
  };
}

async function unanswered(
  { store }: Pick<RunningDeps, "store">,
  place: RunPlace,
): Promise<readonly Message[]> {
  const { scope, session } = place;
  const { sessionId } = session;
  const found: Message[] = [];
  let before: string | null = null;
  for (;;) {
    const range: EntryRange = { along: "branch", limit: pageSize, ...(before === null ? {} : { before }) };
    const page: EntryPage = (await store.sessions.page(scope, sessionId, range)) ?? noSuchSession(sessionId);
    for (const entry of page.entries.toReversed()) {
      if (entry.type !== "message") continue;
      if (entry.message.role !== "user") return found.toReversed();
      found.push(entry.message);
    }
    before = page.entries[0]?.id ?? null;
    if (!page.hasEarlier || before === null) return found.toReversed();
  }
}
