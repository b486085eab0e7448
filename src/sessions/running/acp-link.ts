import type { AcpLink } from "../../agents/contract.ts";
import { contextMessage } from "../../core/context.ts";
import type { Entry } from "../../core/entries.ts";
import type { UserMessage } from "../../core/messages.ts";
import type { Claim } from "../../runs/contract.ts";
import type { EntryPage, EntryRange } from "../../store/contract.ts";
import { noSuchSession } from "../../store/rules.ts";
import { visibleMessage } from "../../transcript/visible-message.ts";
import { acpMetaOf } from "../acp-meta.ts";
import type { RunningDeps, RunPlace } from "./contract.ts";

const pageSize = 200;

/** What a session knows of the ACP agent that it stands for; `null`: it stands for none. */
export function acpLink(
  deps: Pick<RunningDeps, "store">,
  place: RunPlace,
  { how }: Pick<Claim, "how">,
): AcpLink | null {
  const { scope, session } = place;
  const known = acpMetaOf(session.meta, session.sessionId);
  if (known === null) return null;
  return {
    agent: session.agentId,
    ...known,
    mode: session.meta.spawnMode === "session" ? "session" : "run",
    wasBegun: how === "recovered",
    remember: async (agentSessionId, processMark) => {
      const { sessions } = deps.store;
      const acp = {
        ...(session.meta.acp as object),
        agentSessionId,
        processMark,
        linkedFrom: session.sessionId,
      };
      await sessions.patch(scope, session.sessionId, { acp });
    },
    unanswered: () => unanswered(deps, place),
    blob: (sha256) => deps.store.blobs.get(scope, sha256),
  };
}

/** From the end of the branch back to the last that the agent said or did. */
async function unanswered(
  { store }: Pick<RunningDeps, "store">,
  place: RunPlace,
): Promise<readonly UserMessage[]> {
  const { scope, session } = place;
  const { sessionId } = session;
  const found: UserMessage[] = [];
  let before: string | null = null;
  for (;;) {
    const range: EntryRange = { along: "branch", limit: pageSize, ...(before === null ? {} : { before }) };
    const page: EntryPage = (await store.sessions.page(scope, sessionId, range)) ?? noSuchSession(sessionId);
    for (const entry of page.entries.toReversed()) {
      if (isAgents(entry)) return found.toReversed();
      const said = saidTo(entry);
      if (said !== null) found.push(said);
    }
    before = page.entries[0]?.id ?? null;
    if (!page.hasEarlier || before === null) return found.toReversed();
  }
}

function isAgents(entry: Entry): boolean {
  return (
    entry.type === "message" && (entry.message.role === "assistant" || entry.message.role === "toolResult")
  );
}

/** As a model of ours would see it; notes of ours say that they are. */
function saidTo(entry: Entry): UserMessage | null {
  if (entry.type !== "message" && entry.type !== "custom_message") return null;
  const message = contextMessage(entry, new Map());
  const seen = message === null ? null : visibleMessage(message);
  if (seen?.role !== "user") return null;
  return entry.type === "message" ? seen : { ...seen, provenance: { kind: "internal_system" } };
}
