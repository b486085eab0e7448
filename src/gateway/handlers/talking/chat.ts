import { SkeinError } from "../../../core/errors.ts";
import { present } from "../../../core/present.ts";
import type { Params } from "../../../protocol/methods/method-table.ts";
import type { AcceptedPayload } from "../../../protocol/runs.ts";
import type { DeliveryTarget, Run, RunOptions } from "../../../runs/contract.ts";
import { checkSameRequest } from "../../../runs/same-request.ts";
import { outsideChannel } from "../../../sessions/between/outside-channel.ts";
import type { RuntimeContext } from "../../../sessions/runtime-context.ts";
import type { SendOptions, SessionHandle } from "../../../sessions/skein/session-handle.ts";
import { withImages } from "../../../sessions/skein/session-handle.ts";
import { keyMeant } from "../../../sessions/skein/speak-to.ts";
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
      return shownTo(deps, call).sent(await ended(deps, call, run.runId, timeoutMs));
    },
    "chat.send": async (params, call) =>
      acceptedPayload(
        await accepted(deps, call, params, async () => ({
          to: await spokenTo(deps, call, params),
          options: {},
        })),
      ),
    "chat.inject": async (params, call) => {
      const { message, idempotencyKey } = params;
      const known = await skein.runFor(idempotencyKey, call.userId);
      if (known !== null) {
        checkSameRequest(known, { content: message, ...keyIn(deps, params) });
        return acceptedPayload(known);
      }
      const session = await findSession(deps, call, params);
      return acceptedPayload(await skein.session(contextOf(session)).note(message, { idempotencyKey }));
    },
    agent: async (params, call) =>
      acceptedPayload(await accepted(deps, call, params, () => asked(deps, call, params))),
    "agent.wait": async ({ runId, timeoutMs = 30_000 }, call) =>
      shownTo(deps, call).sent(await ended(deps, call, runId, timeoutMs)),
  };
}

interface Said extends Pick<RunOptions, "model" | "thinking" | "runTimeoutSeconds" | "extraSystemPrompt"> {
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
    const { model, thinking, runTimeoutSeconds, extraSystemPrompt } = said;
    const options = present({ model, thinking, runTimeoutSeconds, extraSystemPrompt });
    checkSameRequest(known, { content: withImages(message, images), options, ...keyIn(deps, said) });
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

/** However long it takes up to so long, or until nobody waits for the answer any more. */
function ended(
  { skein }: SkeinDeps,
  { userId, signal }: Call,
  runId: string,
  timeoutMs: number,
): Promise<Run> {
  return skein.ended(runId, { timeoutMs, signal }, userId);
}

function acceptedPayload({ runId, session }: Run): AcceptedPayload {
  return { runId, status: "accepted", sessionKey: session.key };
}
