import { parseKey } from "../../core/keys.ts";
import { present } from "../../core/present.ts";
import type { Claim } from "../../runs/contract.ts";
import type { Scope, SessionRecord, Store } from "../../store/contract.ts";
import { isRealInput } from "../../store/digest.ts";
import { decideReset } from "../decide-reset.ts";
import type { RunningDeps, RunPlace } from "./contract.ts";

type Deps = Pick<RunningDeps, "store" | "ends" | "settings" | "clock">;

const pageSize = 200;
const fromPeople: readonly string[] = ["user", "channel"];

/**
 * The session that the key has moved on to, before this input is taken; `null`: it stays. The run goes along: its owner
 * asks for it, under the run's fence.
 */
export async function resetIfDue(
  { store, ends, settings, clock }: Deps,
  { scope, session, ctx }: RunPlace,
  { run, how }: Claim,
  fence: () => boolean,
): Promise<SessionRecord | null> {
  if (settings.reset.mode === "none" && isEmpty(settings.reset)) return null;
  if (how === "woken" || !fromPeople.includes(run.kind)) return null;
  const { key, sessionId, kind, meta } = session;
  // Its key has moved on already.
  if (parseKey(key).form === "reset") return null;
  // Its turn has begun here already.
  if ((await store.sessions.entry(scope, sessionId, run.entryId)) !== null) return null;
  const { reset, why } = decideReset({
    rules: settings.reset,
    kind,
    channel: meta.channel ?? null,
    lastInputAt: await lastInputAt(store, scope, sessionId),
    now: clock.now(),
  });
  if (!reset) return null;
  const done = await ends.reset(scope, session, { why, ctx, fence });
  return "cancel" in done ? null : done.fresh;
}

function isEmpty({ byKind, byChannel }: RunningDeps["settings"]["reset"]): boolean {
  return Object.keys(byKind).length === 0 && Object.keys(byChannel).length === 0;
}

/** When a person last said something in it, on its branch; read from the end, however far the index is behind. */
async function lastInputAt({ sessions }: Store, scope: Scope, sessionId: string): Promise<number | null> {
  for (let before: string | undefined; ; ) {
    const range = { along: "branch", limit: pageSize, ...present({ before }) } as const;
    const page = await sessions.page(scope, sessionId, range);
    const found = page?.entries.findLast((entry) => entry.type === "message" && isRealInput(entry.message));
    if (found !== undefined) return Date.parse(found.timestamp) || null;
    before = page?.entries[0]?.id;
    if (page === null || !page.hasEarlier) return null;
  }
}
