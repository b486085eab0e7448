import { SkeinError } from "../../../core/errors.ts";
import { present } from "../../../core/present.ts";
import { keyMeant } from "../../../core/references.ts";
import type { Params } from "../../../protocol/methods/method-table.ts";
import type { AcceptedPayload, SentPayload } from "../../../protocol/runs.ts";
import type { DeliveryTarget, Run, RunOptions, RunWaits } from "../../../runs/contract.ts";
import { checkSameRequest } from "../../../runs/same-request.ts";
import { outsideChannel } from "../../../sessions/outside-channel.ts";
import type { RuntimeContext } from "../../../sessions/runtime-context.ts";
import type { SendOptions, SessionHandle } from "../../../sessions/session-handle.ts";
import { withImages } from "../../../sessions/session-handle.ts";
import { isLocal } from "../../auth/principal.ts";
import type { Call, HandlersOf, SkeinDeps } from "../../calls/contract.ts";
import { askerOf, contextOf, findSession, spokenTo } from "../shared/session-of.ts";
import type { Attachment } from "./attached-images.ts";
import { attachedImages } from "./attached-images.ts";
import { shownTo } from "./shown.ts";

type Method = "sessions.send" | "chat.send" | "chat.inject" | "agent" | "agent.wait";

/** What is said to sessions, and how it stands. */
export function chatHandlers(deps: SkeinDeps): HandlersOf<Method> {
  const { skein } = deps;
  return {
    "sessions.send": async (params, call) => {
      const { timeoutMs = 0, model, thinking, system, runTimeoutSeconds } = params;
      const run = await accepted(deps, call, params, async () => ({
        to: await spokenTo(deps, call, params),
        options: present({ model, thinking, system, runTimeoutSeconds }),
      }));
      return ended(deps, call, run.runId, timeoutMs);
    },
    "chat.send": async (params, call) =>
      acceptedPayload(
        deps,
        await accepted(deps, call, params, async () => ({
          to: await spokenTo(deps, call, params),
          options: {},
        })),
      ),
    "chat.inject": async (params, call) => {
      const { message, idempotencyKey } = params;
      const known = await skein.runFor(idempotencyKey, call.userId);
      if (known !== null) {
        checkSameRequest(known, { content: message, isNote: true, ...keyIn(deps, params) });
        return acceptedPayload(deps, known);
      }
      const session = await findSession(deps, call, params);
      return acceptedPayload(deps, await skein.session(contextOf(session)).note(message, { idempotencyKey }));
    },
    agent: async (params, call) =>
      acceptedPayload(deps, await accepted(deps, call, params, () => asked(deps, call, params))),
    "agent.wait": ({ runId, timeoutMs = 30_000 }, call) => ended(deps, call, runId, timeoutMs),
  };
}

interface Said
  extends Pick<RunOptions, "model" | "thinking" | "runTimeoutSeconds" | "system" | "extraSystemPrompt"> {
  readonly key?: string;
  readonly sessionKey?: string;
  readonly agentId?: string;
  readonly message: string;
  readonly idempotencyKey: string;
  readonly queueMode?: NonNullable<SendOptions["queueMode"]>;
  readonly attachments?: readonly Attachment[];
}

interface Meant {
  readonly to: RuntimeContext;
  readonly options: SendOptions;
}

/** The same request under the same key is the same run, whatever became of its session since: nothing is resolved then. */
async function accepted(
  deps: SkeinDeps,
  call: Call,
  { message, idempotencyKey, queueMode, attachments = [], ...said }: Said,
  meant: () => Promise<Meant>,
): Promise<Run> {
  const { skein } = deps;
  const known = await skein.runFor(idempotencyKey, call.userId);
  const images = attachedImages(attachments);
  if (known !== null) {
    const { model, thinking, runTimeoutSeconds, system, extraSystemPrompt } = said;
    const options = present({ model, thinking, runTimeoutSeconds, system, extraSystemPrompt });
    checkSameRequest(known, {
      content: withImages(message, images),
      options,
      isNote: false,
      ...present({ queueMode }),
      ...keyIn(deps, said),
    });
    return known;
  }
  const { to, options } = await meant();
  return skein.session(to).accept(message, {
    ...options,
    ...present({ queueMode }),
    idempotencyKey,
    images,
    // Paths in the message are those of the client's machine, and name nothing here; whoever has the folder is here.
    origin: isLocal(call.principal) ? "cli" : "api",
  });
}

/** The session that params name by a key. Labels and session IDs may mean another session by now, and are not compared. */
function keyIn(
  deps: SkeinDeps,
  { key, sessionKey = key, agentId }: Pick<Said, "key" | "sessionKey" | "agentId">,
): { readonly sessionKey?: string } {
  if (sessionKey === undefined) return {};
  return present({ sessionKey: keyMeant(sessionKey, askerOf(deps, { agentId })) });
}

/** Only an agent: its main session. */
async function asked(deps: SkeinDeps, call: Call, params: Params<"agent">): Promise<Meant> {
  const { sessionKey, agentId, model, thinking, runTimeoutSeconds, deliver, provenance } = params;
  const to: RuntimeContext =
    sessionKey === undefined
      ? present({ userId: call.userId, agentId })
      : await spokenTo(deps, call, { sessionKey, agentId });
  const deliverTo = deliver === true ? await channelOf(deps.skein.session(to)) : undefined;
  const { system, extraSystemPrompt } = params;
  const options = { model, thinking, runTimeoutSeconds, deliverTo, provenance, system, extraSystemPrompt };
  return { to, options: present(options) };
}

/** Where the session's people are. */
async function channelOf(session: SessionHandle): Promise<DeliveryTarget> {
  const { key, meta } = (await session.record()) ?? { key: session.key, meta: {} };
  const target = outsideChannel({ key, meta });
  if (target !== null) return target;
  const problem = `The session ${key} is on no channel that a reply could go to`;
  throw new SkeinError("invalid_arguments", { problem, advice: "Leave deliver out" });
}

/** The run when it has ended, or as it is after `timeoutMs` or when the client no longer waits. */
async function ended(deps: SkeinDeps, call: Call, runId: string, timeoutMs: number): Promise<SentPayload> {
  const { skein } = deps;
  const run = await skein.ended(runId, { timeoutMs, signal: call.signal }, call.userId);
  return shownTo(deps, call).sent(run, await waitsOfApp(skein, run));
}

async function acceptedPayload({ skein }: SkeinDeps, run: Run): Promise<AcceptedPayload> {
  const { runId, session } = run;
  const waitsForApp = (await waitsOfApp(skein, run))?.app;
  return { runId, status: "accepted", sessionKey: session.key, ...present({ waitsForApp }) };
}

/** `null`: it belongs to no app, or does not wait any more. */
async function waitsOfApp(skein: SkeinDeps["skein"], { runId, app, state }: Run): Promise<RunWaits | null> {
  return app === null || state !== "queued" ? null : skein.waits(runId);
}
