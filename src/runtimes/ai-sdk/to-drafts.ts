import type { ModelMessage } from "@ai-sdk/provider-utils";
import { present } from "../../core/present.ts";
import type { MessageDraft } from "../../core/seal.ts";
import type { StepUsage } from "../contract.ts";
import { fromModelMessages } from "./from-model-messages.ts";
import { usageOf } from "./usage.ts";

/** What is known of the answers among messages of the AI SDK. */
interface Origin {
  readonly provider?: string;
  readonly model?: string;
  readonly usage?: StepUsage;
}

interface Given {
  readonly role: string;
  readonly content?: unknown;
}

/** Messages of the AI SDK as drafts; drafts stay as they are. System messages at the start become messages that are not shown. */
export function toDrafts(given: readonly Given[], origin: Origin): readonly MessageDraft[] {
  const drafts = given.flatMap((message) =>
    isDraft(message) ? [message] : fromModel(message as ModelMessage, origin),
  );
  const { usage } = origin;
  const last = drafts.findLastIndex(({ role }) => role === "assistant");
  if (usage === undefined || last === -1) return drafts;
  return drafts.map((draft, index) =>
    index === last && draft.role === "assistant" ? { ...draft, usage: countsOf(usage) } : draft,
  );
}

function fromModel(message: ModelMessage, { provider, model }: Origin): MessageDraft[] {
  if (message.role === "system")
    return [{ role: "custom", customType: "skein.system", content: message.content, display: false }];
  // The AI SDK names the API behind the provider: "anthropic.messages".
  const options = present({ provider: provider?.split(".")[0], model });
  return fromModelMessages([message], options).messages;
}

const modelFields: ReadonlySet<string> = new Set(["role", "content", "providerOptions"]);
const ownBlocks: ReadonlySet<unknown> = new Set(["toolCall", "thinking"]);

/** The AI SDK has no other roles, no other fields in a message of the user, no stop reason, and other names for the blocks. */
function isDraft(message: Given): message is MessageDraft {
  if (!["user", "assistant", "tool", "system"].includes(message.role)) return true;
  const blocks = Array.isArray(message.content)
    ? (message.content as readonly Record<string, unknown>[])
    : [];
  if (message.role === "assistant")
    return "stopReason" in message || blocks.some(({ type }) => ownBlocks.has(type));
  if (message.role !== "user") return false;
  if (Object.keys(message).some((name) => !modelFields.has(name))) return true;
  return blocks.some(({ type, data }) => type === "image" && data !== undefined);
}

function countsOf(usage: NonNullable<Origin["usage"]>): ReturnType<typeof usageOf> {
  const {
    noCacheTokens: noCache,
    cacheReadTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
  } = usage.inputTokenDetails ?? {};
  return usageOf({
    inputTokens: { total: usage.inputTokens, noCache, cacheRead, cacheWrite },
    outputTokens: { total: usage.outputTokens, text: undefined, reasoning: undefined },
  });
}
