import { present } from "../../core/present.ts";
import type { LivePayload } from "../../protocol/chat.ts";
import type { Run } from "../../runs/contract.ts";
import { pendingMessages } from "../../sessions/history-range.ts";
import type { Mask } from "../auth/mask.ts";
import { maskFor } from "../auth/mask.ts";
import type { LiveRun } from "../events/live-runs.ts";
import type { Call, FolderApp, HandlersOf } from "./dispatch.ts";
import { findSession } from "./session-lookup.ts";

type LivePayloadRun = LivePayload["runs"][number];

/** Only one run in a session is active at a time, but others might be waiting for approvals. */
const mostRuns = 100;

/** Methods that return answers while they are being written. */
export function liveHandlers(app: FolderApp): HandlersOf<"chat.live"> {
  return {
    "chat.live": async (params, call) => {
      const session = await findSession(app, call, params);
      const { key: sessionKey, sessionId, uid, leafId } = session;
      const streamed = () => app.live?.liveRuns(session, call.isAdmin) ?? [];
      const before = new Set(streamed().map(({ runId }) => runId));
      const open = await app.runs.list(
        { sessionUid: uid, states: ["running", "waiting"], limit: mostRuns },
        call.userId,
      );
      const elsewhere = await runsElsewhere(app, call, open, before);
      const mask = maskFor(app, call);
      const pending = pendingMessages(await app.runs.pending(uid), (value) => mask.value(value)).messages;
      // There must be no `await` from here on. Otherwise, the text might not match the event `seq`.
      const openIds = new Set(open.map(({ runId }) => runId));
      // A run that was here before the query but is not in its result has ended or moved to another process.
      const here = streamed().filter(({ runId }) => openIds.has(runId) || !before.has(runId));
      const hereIds = new Set(here.map(({ runId }) => runId));
      return {
        ...{ sessionKey, sessionId, leafId },
        ...present({ seq: app.live?.seq }),
        runs: [
          ...here.map((run) => runHere(run, mask)),
          ...elsewhere.filter(({ runId }) => !hereIds.has(runId)),
        ],
        pending,
      };
    },
  };
}

function runHere({ step, tools, ...run }: LiveRun, mask: Mask): LivePayloadRun {
  return {
    ...run,
    isStreaming: true,
    ...present({ step: step === 0 ? null : step }),
    tools: tools.map(({ arguments: args, ...call }) => ({
      ...call,
      ...present({ arguments: args === undefined ? null : mask.plain(args) }),
    })),
  };
}

/** Returns runs whose events do not reach this process, with the answers that have been stored for them so far. */
async function runsElsewhere(
  { runs, redactor }: FolderApp,
  { isAdmin }: Call,
  open: readonly Run[],
  here: ReadonlySet<string>,
): Promise<readonly LivePayloadRun[]> {
  const others = open.filter(({ runId }) => !here.has(runId));
  return Promise.all(
    others.map(async ({ runId, state }) => {
      const stored = (await runs.partial(runId)) ?? "";
      // The end of the text might be the beginning of a secret, so it is held back like the end of a stream.
      const text = isAdmin ? stored : redactor.stream().push(stored);
      return {
        ...{ runId, state: state === "waiting" ? ("waiting" as const) : ("running" as const) },
        ...{ isStreaming: false, text, textOffset: 0, thinking: "", thinkingOffset: 0, tools: [] },
      };
    }),
  );
}
