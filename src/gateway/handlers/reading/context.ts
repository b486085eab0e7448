import type { SessionContext } from "../../../core/context.ts";
import { SkeinError } from "../../../core/errors.ts";
import { parseKey } from "../../../core/keys.ts";
import { present } from "../../../core/present.ts";
import type { Steps } from "../../../core/slices.ts";
import { Slices } from "../../../core/slices.ts";
import type { Result } from "../../../protocol/methods/method-table.ts";
import type { ContextPayload } from "../../../protocol/session-payloads.ts";
import type { SessionRecord } from "../../../store/contract.ts";
import { noSuchSession } from "../../../store/refusals.ts";
import { historyLimitFor } from "../../../transcript/history-limit.ts";
import type { Call, FolderDeps, HandlersOf } from "../../calls/contract.ts";
import type { Mask } from "../../masking/mask.ts";
import { maskFor } from "../../masking/mask.ts";
import { findSession, scopeOf } from "../shared/session-of.ts";
import { contentBytes } from "./frame-room.ts";
import type { Looked } from "./see-context.ts";
import { pruningBy, seeContext } from "./see-context.ts";

/** To mask a message takes at least as long as to read so much. */
const messageBytes = 1024;

/** The X-ray of a session. */
export function contextHandlers(deps: FolderDeps): HandlersOf<"sessions.context"> {
  return {
    "sessions.context": async (params, call) => {
      const { model, baseUrl, wire } = params;
      const session = await findSession(deps, call, params);
      const looked = await lookAt(deps, call, session);
      const seen = await seeContext(looked, present({ model, baseUrl, wire }), deps.contextForModel);
      const shown = await new Slices(call.signal).run(masked(seen, maskFor(deps, call)));
      return shown as Result<"sessions.context">;
    },
  };
}

async function lookAt(deps: FolderDeps, call: Call, session: SessionRecord): Promise<Looked> {
  const { store, config, clock } = deps;
  const { sessionId, agentId, key } = session;
  const context =
    (await store.sessions.context(scopeOf(call), sessionId, { byteBudget: contentBytes })) ??
    noSuchSession(sessionId);
  if (context.cut !== null) throw new SkeinError("too_large", { what: `The context of ${key}` });
  const agent = Object.hasOwn(config.agents, agentId) ? config.agents[agentId] : undefined;
  const offered = await deps.offeredTools(session);
  const known = {
    ...present({ offered }),
    images: { blob: deps.blobs(session) },
    pruning: pruningBy(config, clock.now()),
    ...present({ system: context.system ?? agent?.system }),
    ...present({ thinkingLevel: await levelOf(deps, session, context, agent?.thinking ?? null) }),
    ...present({ historyLimit: historyLimitFor(parseKey(key), config.channels) }),
  };
  return { context, config, known, agentModel: agent?.model ?? null };
}

/** The level that was set for the session, else what its entries say, else the agent's; `null`: the context's. */
async function levelOf(
  deps: FolderDeps,
  session: SessionRecord,
  { thinkingLevel }: SessionContext,
  agents: string | null,
): Promise<string | null> {
  const { meta } = session;
  if (meta.thinkingLevel !== undefined) return meta.thinkingLevel;
  if (agents === null || thinkingLevel !== "off") return null;
  // A context says off whether somebody chose it or nobody said anything.
  const isChosen = (await deps.readTree(session)).path().some(({ type }) => type === "thinking_level_change");
  return isChosen ? null : agents;
}

function* masked(seen: ContextPayload, mask: Mask): Steps<ContextPayload> {
  if (mask.isOff) return seen;
  const { request, changes, diagnostics, wire } = seen;
  const { system, tools } = request;
  const messages: (typeof request.messages)[number][] = [];
  for (const message of request.messages) {
    messages.push(mask.value(message));
    yield messageBytes;
  }
  return {
    ...seen,
    request: {
      ...request,
      ...present({ system: system === undefined ? null : mask.text(system) }),
      ...present({ tools: tools === undefined ? null : mask.value(tools) }),
      messages,
    },
    changes: changes.map((each) => ({ ...each, note: mask.text(each.note) })),
    diagnostics: diagnostics.map((each) => ({ ...each, note: mask.text(each.note) })),
    ...(wire === undefined ? {} : { wire: mask.value(wire) }),
  };
}
