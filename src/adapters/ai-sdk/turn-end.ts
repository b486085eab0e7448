import { usageOf } from "../../agents/models/assistant-message.ts";
import { codeOf } from "../../core/errors.ts";
import type { MessageDraft } from "../../core/seal.ts";
import type { SessionHandle } from "../../sessions/session-handle.ts";
import type { ModelRef } from "../../transcript/model-table.ts";
import type { AnswerEnd } from "./answer.ts";
import { awaitsAnswer, isConversation, readEntries } from "./entries.ts";

/**
 * Marks a turn that ended without an answer, for example at its step limit. The turn is not continued automatically.
 */
const endedType = "skein.turn_ended";

/** Records how an answer ended, unless its last recorded step already shows this. */
export async function recordEnd(
  session: SessionHandle,
  { state, partialText }: AnswerEnd,
  about: {
    readonly model: ModelRef;
    readonly messageId: string;
    readonly error?: string;
  },
): Promise<void> {
  if (state === "finished") {
    const isEnded = !awaitsAnswer(await readEntries(session, "branch"));
    if (!isEnded) await session.appendEntries([{ draft: { type: "custom", customType: endedType } }]);
    return;
  }
  const { provider, model, api = "unknown" } = about.model;
  const errorMessage =
    state === "aborted" ? "The answer was stopped." : (about.error ?? "The answer failed.");
  const message: MessageDraft = {
    role: "assistant",
    content: partialText === "" ? [] : [{ type: "text", text: partialText }],
    api,
    provider,
    model,
    usage: usageOf(undefined),
    stopReason: state === "aborted" ? "aborted" : "error",
    errorMessage,
    skein: { providerMetadata: { skein: { messageId: about.messageId } } },
  };
  await session.append([message]);
}

/** Whether the session's last turn was interrupted: it has neither an answer nor a recorded end. */
export async function isInterrupted(session: SessionHandle): Promise<boolean> {
  const branch = await readEntries(session, "branch");
  const last = branch.findLastIndex(isConversation);
  const isEnded = branch
    .slice(last)
    .some((entry) => entry.type === "custom" && entry.customType === endedType);
  return awaitsAnswer(branch) && !isEnded;
}

/** Opens a turn. Returns `false` if another loop or a run is answering. */
export async function claimTurn(session: SessionHandle): Promise<boolean> {
  try {
    return await session.startTurn();
  } catch (error) {
    if (codeOf(error) === "conflict") return false;
    throw error;
  }
}
