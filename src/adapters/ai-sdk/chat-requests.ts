import type { UIMessage, UserModelMessage } from "ai";
import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { present } from "../../core/present.ts";
import type { SessionHandle } from "../../sessions/session-handle.ts";
import { groupEntries, isConversation, messageIdOf, readEntries } from "./entries.ts";

type Ai = typeof import("ai");

/** The body of the request that `useChat` sends. */
interface MessageRequest {
  readonly id: string;
  readonly messages: readonly UIMessage[];
  readonly trigger: "submit-message" | "regenerate-message";
  /** The ID of the message to edit or to answer again. */
  readonly messageId?: string;
}

/** Reads a request for an answer. Throws `invalid_arguments` if it is not what `useChat` sends. */
export async function readMessageRequest(request: Request, ai: Ai): Promise<MessageRequest> {
  const body = await readBody(request);
  const { id, messages, trigger = "submit-message", messageId } = body;
  if (typeof id !== "string" || id === "") throw invalidRequest("id must be the ID of the chat");
  if (trigger !== "submit-message" && trigger !== "regenerate-message")
    throw invalidRequest(`trigger must be submit-message or regenerate-message`);
  if (messageId !== undefined && typeof messageId !== "string")
    throw invalidRequest("messageId must be a string");
  const checked = await ai.safeValidateUIMessages({
    messages: Array.isArray(messages) ? messages.slice(-2) : [],
  });
  if (!checked.success) throw invalidRequest(`messages must be UI messages: ${checked.error.message}`);
  return { id, messages: checked.data, trigger, ...present({ messageId }) };
}

/** Returns the JSON object in a request's body. The application can still read the body. */
export async function readBody(request: Request): Promise<Readonly<Record<string, unknown>>> {
  const body: unknown = await request
    .clone()
    .json()
    .catch(() => null);
  if (!isRecord(body)) throw invalidRequest("the body must be a JSON object");
  return body;
}

export function invalidRequest(problem: string): SkeinError {
  const advice = "Send requests with useChat and DefaultChatTransport";
  return new SkeinError("invalid_arguments", { problem: `In the chat request, ${problem}`, advice });
}

/**
 * Moves the session to the point where the request continues it, and returns the new message. Returns `undefined` if
 * the request asks for an answer to the branch's last message. Editing a message or requesting another answer starts a
 * branch.
 */
export async function placeRequest(
  session: SessionHandle,
  { messages, trigger, messageId }: MessageRequest,
  ai: Ai,
): Promise<UserModelMessage | undefined> {
  const groups = groupEntries(await readEntries(session, "branch"));
  const find = (id: string | undefined) => groups.findIndex((group) => messageIdOf(group) === id);
  const last = messages.at(-1);
  /** Continues after the group at this position. */
  const continueAfter = async (index: number) => {
    if (index === groups.length - 1) return;
    const end = groups[index]?.entries.at(-1)?.id ?? groups[0]?.entries[0].parentId ?? null;
    await session.branch(end);
  };
  if (trigger === "regenerate-message") {
    const named = find(messageId ?? last?.id);
    const question = groups.findLastIndex(({ role }, index) => role === "user" && index <= named);
    if (named === -1 || question === -1) throw notOnBranch(messageId ?? last?.id);
    await continueAfter(question);
    return undefined;
  }
  if (last?.role !== "user") throw invalidRequest("the last message must be the user's");
  if (messageId !== undefined) {
    const edited = find(messageId);
    if (edited === -1) throw notOnBranch(messageId);
    await continueAfter(edited - 1);
    return modelMessageOf(last, ai);
  }
  const known = find(last.id);
  const previous = known === -1 ? find(messages.at(-2)?.id) : known;
  // A message that the browser created itself, such as a greeting, is not in the session.
  if (previous !== -1) await continueAfter(previous);
  return known === -1 ? modelMessageOf(last, ai) : undefined;
}

function notOnBranch(messageId: string | undefined): SkeinError {
  const problem = `The message ${messageId} is not on the session's active branch`;
  return new SkeinError("conflict", { problem, advice: "Load the messages again" });
}

async function modelMessageOf(message: UIMessage, ai: Ai): Promise<UserModelMessage> {
  const { id, metadata, parts } = message;
  const [converted] = await ai.convertToModelMessages([message]);
  if (converted?.role !== "user" || converted.content.length === 0)
    throw invalidRequest("the message must have text or a file");
  const isWhole = parts.every(({ type }) => type === "text" || type === "file");
  const mark = { messageId: id, ...present({ metadata }), ...(isWhole ? {} : { parts }) };
  // The mark is JSON because it was parsed from the request's body.
  return { ...converted, providerOptions: { skein: mark as never } };
}

/** Moves the session to the newest end of the branch that contains the entry. */
export async function selectBranch(session: SessionHandle, entryId: unknown): Promise<void> {
  if (typeof entryId !== "string") throw invalidRequest("entryId must be one of a message's alternatives");
  const entries = await readEntries(session, "all");
  const below = new Set<string>();
  for (const entry of entries) {
    const { id, parentId } = entry;
    if (id === entryId ? isConversation(entry) : parentId !== null && below.has(parentId)) below.add(id);
  }
  const end = [...below].at(-1);
  if (end === undefined) throw noSuchMessage(entryId);
  await session.branch(end);
}

export function noSuchMessage(entryId: string): SkeinError {
  const what = "Message with the entry ID";
  return new SkeinError("not_found", { what, name: entryId, advice: "Load the messages again" });
}
