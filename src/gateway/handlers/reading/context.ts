import type { SessionContext } from "../../../core/context.ts";
import { SkeinError } from "../../../core/errors.ts";
import { present } from "../../../core/present.ts";
import type { Steps } from "../../../core/slices.ts";
import { Slices } from "../../../core/slices.ts";
import type { Result } from "../../../protocol/methods/method-table.ts";
import type { ContextPayload } from "../../../protocol/session-payloads.ts";
import type { SessionRecord } from "../../../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../../../store/rules.ts";
import { sessionHistoryLimit } from "../../../transcript/steps/limit-history.ts";
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
      const asked = present({ model, baseUrl, wire });
      const context = await contextInFrame(deps, call, session);
      const seen =
        (await deps.showRequest(session, asked)) ??
        (await seeContext(lookAt(deps, session, context), asked, deps.contextForModel));
      const shown = await new Slices(call.signal).run(masked(seen, maskFor(deps, call)));
      return shown as Result<"sessions.context">;
    },
  };
}

/** Refuses a context that one frame cannot hold. */
async function contextInFrame(
  { store }: FolderDeps,
  call: Call,
  { sessionId, key }: SessionRecord,
): Promise<SessionContext> {
  const context =
    (await store.sessions.context(scopeOf(call), sessionId, { byteBudget: contentBytes })) ??
    noSuchSession(sessionId);
  if (context.cut !== null) throw new SkeinError("too_large", { what: `The context of ${key}` });
  return context;
}

/** For a session whose agent is not known here, or is an ACP agent: its own model, and no tools. */
function lookAt(deps: FolderDeps, session: SessionRecord, context: SessionContext): Looked {
  const { config, clock } = deps;
  const known = {
    images: { blob: (sha256: string) => deps.store.blobs.get(scopeOfSession(session), sha256) },
    pruning: pruningBy(config, clock.now()),
    ...present({ thinkingLevel: session.meta.thinkingLevel }),
    ...present({ historyLimit: sessionHistoryLimit(session, config.channels) }),
  };
  return { context, config, known };
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
