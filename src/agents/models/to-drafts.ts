import type { ModelMessage } from "@ai-sdk/provider-utils";
import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { present } from "../../core/present.ts";
import type { MessageDraft } from "../../core/seal.ts";
import { thrownText } from "../../core/text.ts";
import type { StepUsage } from "../contract.ts";
import { usageOf } from "./assistant-message.ts";
import { fromModelMessages } from "./from-model-messages.ts";

/** The model that produced the answers. */
interface Origin {
  readonly provider?: string;
  readonly model?: string;
  readonly usage?: StepUsage;
}

interface InputMessage {
  readonly role: string;
  readonly content?: unknown;
}

/** A draft and the path of its message, such as `messages[2]`. */
interface NamedDraft {
  readonly item: string;
  readonly draft: MessageDraft;
}

/**
 * Converts AI SDK messages to drafts. Drafts are passed through unchanged. System messages become hidden messages. A
 * message that is neither throws `invalid_arguments` with its path.
 */
export function toDrafts(given: unknown, origin: Origin): readonly NamedDraft[] {
  if (!Array.isArray(given)) throw invalidItem("messages", "must be an array");
  const drafts = given.flatMap((message: unknown, index) => {
    const item = `messages[${index}]`;
    checkMessage(message, item);
    return draftsOf(message, origin, item).map((draft) => ({ item, draft }));
  });
  const { usage } = origin;
  const last = drafts.findLastIndex(({ draft }) => draft.role === "assistant");
  if (usage === undefined || last === -1) return drafts;
  return drafts.map((each, index) =>
    index === last && each.draft.role === "assistant"
      ? { ...each, draft: { ...each.draft, usage: countsOf(usage) } }
      : each,
  );
}

function draftsOf(message: InputMessage, origin: Origin, item: string): readonly MessageDraft[] {
  if (isDraft(message)) return [message];
  try {
    return fromModel(message as ModelMessage, origin);
  } catch (error) {
    throw invalidItem(item, `cannot be read as an AI SDK message: ${thrownText(error)}`);
  }
}

function invalidItem(item: string, problem: string): SkeinError {
  return new SkeinError("invalid_arguments", {
    problem: `${item} ${problem}`,
    advice: "Pass AI SDK messages (ModelMessage) or messages in the library's format (MessageDraft)",
  });
}

const roles = ["user", "assistant", "tool", "system", "toolResult", "bashExecution", "custom"];
const userParts = ["text", "image", "file"];

function checkMessage(message: unknown, item: string): asserts message is InputMessage {
  if (!isRecord(message)) throw invalidItem(item, "must be an object");
  const { role, content } = message;
  if (typeof role !== "string" || !roles.includes(role))
    throw invalidItem(`${item}.role`, `must be one of ${roles.join(", ")}`);
  if (role === "bashExecution") return;
  const isText = typeof content === "string" && role !== "tool";
  if (!isText && !Array.isArray(content))
    throw invalidItem(
      `${item}.content`,
      role === "tool" ? "must be an array" : "must be a string or an array",
    );
  if (Array.isArray(content))
    for (const [index, part] of content.entries()) checkPart(part, role, `${item}.content[${index}]`);
}

function checkPart(part: unknown, role: string, item: string): void {
  if (!isRecord(part) || typeof part.type !== "string")
    throw invalidItem(item, "must be an object with a type");
  const { type } = part;
  if (role === "user" && !userParts.includes(type))
    throw invalidItem(item, `must be of type ${userParts.join(", ")}`);
  if (type === "text" && typeof part.text !== "string") throw invalidItem(item, "must have a text string");
  // Images and files can contain bytes, which JSON cannot represent. They are converted later.
  if (userParts.includes(type)) return;
  try {
    JSON.stringify(part);
  } catch (error) {
    throw invalidItem(item, `cannot be written as JSON: ${thrownText(error)}`);
  }
}

function fromModel(message: ModelMessage, { provider, model }: Origin): MessageDraft[] {
  if (message.role === "system")
    return [{ role: "custom", customType: "skein.system", content: message.content, display: false }];
  // The AI SDK appends the API to the provider: "anthropic.messages".
  const options = present({ provider: provider?.split(".")[0], model });
  return fromModelMessages([message], options).messages;
}

const modelFields: ReadonlySet<string> = new Set(["role", "content", "providerOptions"]);
const ownBlocks: ReadonlySet<unknown> = new Set(["toolCall", "thinking"]);

/** Recognizes a draft by roles, fields and block types that do not exist in the AI SDK. */
function isDraft(message: InputMessage): message is MessageDraft {
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
