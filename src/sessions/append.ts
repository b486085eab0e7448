import { imageBytes } from "../core/base64.ts";
import { KeyedMutex } from "../core/concurrency.ts";
import type { Entry } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import type {
  AssistantMessage,
  BlobRef,
  ImageBlock,
  Message,
  TextBlock,
  ToolCallBlock,
} from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { EntryDraft, MessageDraft, ResultDraft } from "../core/seal.ts";
import { cutText } from "../core/text.ts";
import type { AppendItem, AppendOptions, EntryPage, Scope, Store } from "../store/contract.ts";
import type { FenceOption, WorkingSessions } from "../store/work.ts";
import { createMissingResult } from "../transcript/steps/repair-tool-pairing.ts";
import { capTexts, maxResultCharacters } from "../transcript/steps/truncate-tool-results.ts";
import type { HookRegistry } from "./hooks.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/** A change that the guard made to a message before writing it. Shown in events, the log and `runs show`. */
export interface GuardNote {
  readonly kind: "call_removed" | "result_capped" | "image_to_blob" | "image_left_out" | "synthetic_result";
  readonly note: string;
}

/** The result of {@link guardedAppend}. */
export interface GuardedAppend {
  /**
   * The entries: synthetic results, the messages, and a note that informs the model about invalid calls. Entries that
   * already existed come first. The list is empty if the message was rejected.
   */
  readonly entries: readonly Entry[];
  readonly notes: readonly GuardNote[];
  /** Why a message was rejected. The run continues. */
  readonly refused: string | null;
  /** `true` if entries with the given IDs already existed and nothing was written. */
  readonly wasThere?: true;
}

/** The store that {@link guardedAppend} writes to, and the hooks that can change or reject a message. */
export interface GuardDeps {
  readonly store: Store;
  /** If absent, no hooks are called. */
  readonly hooks?: HookRegistry;
}

/** Options for {@link guardedAppend}. */
export interface GuardOptions extends Pick<AppendOptions, "fence"> {
  readonly id?: string;
  /** `true` if the message was accepted as input. Like a user message, it then unarchives the session. */
  readonly isInput?: boolean;
  /** The context for hooks. Defaults to the user, agent and session being written to. */
  readonly ctx?: RuntimeContext;
}

/** The position of the last message on a branch. `lastMessageId` is `null` if the branch has no message. */
export interface BranchPosition {
  lastMessageId: string | null;
}

/** Options for a run's writes. `fence` can also be a script (see `FenceScript`). */
interface FencedOptions extends Omit<GuardOptions, "fence">, FenceOption {
  /** A write throws `fenced` unless the branch ends at this position. A successful write updates the position. */
  readonly position?: BranchPosition;
}

/** 64 KB in base64. Images of at least this size are stored as blobs. */
const imageLimit = Math.ceil((64 * 1024 * 4) / 3);
/** How many entries are read first, and how many at a time before them. */
const pageSize = 200;
const maxPageSize = 1000;
const maxTries = 20;
/** The maximum number of characters that a note quotes from an invalid name. */
const maxQuotedName = 80;
/** The type of the message that informs a model that all calls in its answer were invalid. */
export const invalidCallsType = "skein.invalid_calls";

/**
 * Appends a message in such a way that the session can always be sent to a model. Calls that can never be valid are
 * removed. A result must answer a pending call. Calls that are still pending get a synthetic result before any other
 * message is written. Large content is moved to blobs. `store.sessions.append` does none of this.
 *
 * @example
 * ```ts
 * import { createStore, guardedAppend } from "skein/store";
 * const store = await createStore({ memory: true });
 * const scope = { userId: "ann", agentId: "main" };
 * const { sessionId } = await store.sessions.create(scope, { key: "agent:main:main", cwd: "/home/ann" });
 * const { refused } = await guardedAppend({ store }, scope, sessionId, { role: "user", content: "Tea or coffee?" });
 * ```
 */
export async function guardedAppend(
  deps: GuardDeps,
  scope: Scope & { readonly agentId: string },
  sessionId: string,
  message: MessageDraft,
  options: FencedOptions = {},
): Promise<GuardedAppend> {
  if (message.role === "toolResult") {
    const ready = await prepareResult(deps, scope, sessionId, message, options);
    if ("refused" in ready) return notWritten(ready.refused);
    const [done] = await appendResults(deps.store, scope, sessionId, [ready], options);
    return done as GuardedAppend;
  }
  const notes: GuardNote[] = [];
  const ctx = options.ctx ?? { ...scope, sessionId, store: deps.store };
  const prepared = await prepare(deps, scope, ctx, message, notes);
  if ("refused" in prepared) return { entries: [], notes, refused: prepared.refused };
  const ids = options.id === undefined ? [] : [options.id];
  const done = await appendOnLeaf(deps.store, scope, sessionId, ids, options, (path, known) => {
    if (known.size > 0) return nothing;
    const { calls } = pendingCalls(path);
    const synthetic = calls.map(syntheticResult);
    const synthesized = calls.map(missingResultNote);
    return {
      items: [
        ...synthetic,
        itemOf(prepared.message, options.id),
        ...invalidCallsNote(prepared.message, notes),
      ],
      notes: [...notes, ...synthesized],
    };
  });
  const isInput = options.isInput === true || prepared.message.role === "user";
  if (isInput) await unarchive(deps.store, scope, sessionId);
  return outcomeOf(done);
}

/** A tool result that the hooks have accepted. */
export interface ReadyResult {
  readonly item: AppendItem;
  readonly callId: string;
  readonly notes: readonly GuardNote[];
}

/** Calls the hooks for a tool result, and moves its large content to blobs. */
export async function prepareResult(
  deps: GuardDeps,
  scope: Scope & { readonly agentId: string },
  sessionId: string,
  message: ResultDraft,
  { id, ctx = { ...scope, sessionId, store: deps.store } }: Pick<GuardOptions, "id" | "ctx">,
): Promise<ReadyResult | { readonly refused: string }> {
  const notes: GuardNote[] = [];
  const prepared = await prepare(deps, scope, ctx, message, notes);
  if ("refused" in prepared) return prepared;
  const item = itemOf(prepared.message, id);
  return { item, callId: answeredCallOf(item.draft) ?? "", notes };
}

/**
 * Appends tool results in one write, in the order of their calls. The rules of {@link guardedAppend} apply to each
 * result. Returns the outcome of each result. If one is rejected, the others are still written.
 */
export async function appendResults(
  store: Store,
  scope: Scope,
  sessionId: string,
  results: readonly ReadyResult[],
  options: Pick<FencedOptions, "fence" | "position"> = {},
): Promise<readonly GuardedAppend[]> {
  const ids = results.flatMap(({ item: { id } }) => (id === undefined ? [] : [id]));
  let items: readonly (AppendItem | "there" | "unexpected")[] = [];
  let inOrder: readonly AppendItem[] = [];
  const { known, written } = await appendOnLeaf(store, scope, sessionId, ids, options, (path, found) => {
    const calls = pendingCalls(path).calls.map(({ id }) => id);
    const orderOf = ({ draft }: AppendItem) => calls.indexOf(answeredCallOf(draft) ?? "");
    items = itemsToWrite(results, calls, found);
    inOrder = items.filter((item) => typeof item === "object").toSorted((a, b) => orderOf(a) - orderOf(b));
    return { items: inOrder, notes: [] };
  });
  return results.map(({ item: { id = "" }, callId, notes }, index) => {
    const item = items[index] ?? "unexpected";
    if (item === "unexpected") return notWritten(`no pending call has the ID ${callId}`);
    if (item !== "there") return { entries: [written[inOrder.indexOf(item)] as Entry], notes, refused: null };
    const entry = known.get(id) ?? written.find((each) => each.id === id);
    return { entries: [entry as Entry], notes: [], refused: null, wasThere: true };
  });
}

/**
 * Matches results with the pending calls. Each call is answered at most once, and each entry ID is used for at most one
 * call.
 */
function itemsToWrite(
  results: readonly ReadyResult[],
  calls: readonly string[],
  known: ReadonlyMap<string, Entry>,
): (AppendItem | "there" | "unexpected")[] {
  const pending = [...calls];
  const callOf = new Map([...known].map(([id, entry]) => [id, answeredCallOf(entry)]));
  return results.map(({ item, callId }) => {
    const { id, draft } = item;
    if (id !== undefined && callOf.get(id) === callId) return "there";
    const at = pending.indexOf(callId);
    if (at === -1) return "unexpected";
    pending.splice(at, 1);
    if (id === undefined) return item;
    if (callOf.has(id)) return { draft };
    callOf.set(id, callId);
    return item;
  });
}

/** Returns the ID of the call that an entry answers, or `null` if it is not a tool result. */
function answeredCallOf(entry: Entry | EntryDraft): string | null {
  return entry.type === "message" && entry.message.role === "toolResult" ? entry.message.toolCallId : null;
}

function notWritten(refused: string): GuardedAppend {
  return { entries: [], notes: [], refused };
}

/**
 * Appends a `custom_message` for the model. As with a message, pending calls get a synthetic result first, and the
 * branch must still end at `position`.
 */
export async function guardedNote(
  deps: Pick<GuardDeps, "store">,
  scope: Scope,
  sessionId: string,
  draft: EntryDraft,
  options: Omit<FencedOptions, "ctx"> = {},
): Promise<GuardedAppend> {
  const { id } = options;
  const done = await appendOnLeaf(
    deps.store,
    scope,
    sessionId,
    id === undefined ? [] : [id],
    options,
    (path, known) => {
      if (known.size > 0) return nothing;
      const { calls } = pendingCalls(path);
      return { items: [...calls.map(syntheticResult), { draft, ...present({ id }) }], notes: [] };
    },
  );
  if (options.isInput === true) await unarchive(deps.store, scope, sessionId);
  return outcomeOf(done);
}

/** Unarchives the session, because it has received input. */
async function unarchive(store: Store, scope: Scope, sessionId: string): Promise<void> {
  const session = await store.sessions.get(scope, sessionId);
  if (session?.meta.archived === true) await store.sessions.patch(scope, sessionId, { archived: null });
}

/** Appends a synthetic result for each call that is still pending when a run ends. */
export async function closeOpenCalls(
  deps: GuardDeps,
  scope: Scope,
  sessionId: string,
  options: Pick<FencedOptions, "fence" | "position"> = {},
): Promise<GuardedAppend> {
  const done = await appendOnLeaf(deps.store, scope, sessionId, [], options, (path) => {
    const { calls } = pendingCalls(path);
    return { items: calls.map(syntheticResult), notes: calls.map(missingResultNote) };
  });
  return outcomeOf(done);
}

function missingResultNote({ id, name }: ToolCallBlock): GuardNote {
  return { kind: "synthetic_result", note: `${name} (${id}) had no result` };
}

interface Decision {
  readonly items: readonly AppendItem[];
  readonly notes: readonly GuardNote[];
}

const nothing: Decision = { items: [], notes: [] };

interface LeafAppend {
  /** The entries with the given IDs that already existed. */
  readonly known: ReadonlyMap<string, Entry>;
  readonly written: readonly Entry[];
  readonly notes: readonly GuardNote[];
}

function outcomeOf({ known, written, notes }: LeafAppend): GuardedAppend {
  const wasThere = known.size > 0 ? { wasThere: true as const } : {};
  return { entries: [...known.values(), ...written], notes, refused: null, ...wasThere };
}

/**
 * Serializes writes to a session within this process. If another process writes at the same time, the write is retried.
 */
const queues = new WeakMap<Store, KeyedMutex>();

function appendOnLeaf(...args: Parameters<typeof decideAndAppend>): Promise<LeafAppend> {
  const [store, scope, sessionId] = args;
  const queue = queues.get(store) ?? new KeyedMutex();
  queues.set(store, queue);
  return queue.run(JSON.stringify([scope.userId ?? null, sessionId.toLowerCase()]), () =>
    decideAndAppend(...args),
  );
}

/**
 * Decides what to write based on the current branch and on the entries that already have one of the IDs. Writes only if
 * the branch has not moved since it was read.
 */
async function decideAndAppend(
  store: Store,
  scope: Scope,
  sessionId: string,
  ids: readonly string[],
  { position, fence }: Pick<FencedOptions, "fence" | "position">,
  decide: (path: readonly Entry[], known: ReadonlyMap<string, Entry>) => Decision,
): Promise<LeafAppend> {
  const sessions: WorkingSessions = store.sessions;
  for (let tries = 1; ; tries++) {
    const page = await readLastTurn(store, scope, sessionId);
    if (page === null)
      throw new SkeinError("not_found", { what: "Session", name: sessionId, advice: "Create it first" });
    const known = new Map<string, Entry>();
    for (const id of ids) {
      const entry = await sessions.entry(scope, sessionId, id);
      if (entry !== null) known.set(id, entry);
    }
    const { items, notes } = decide(page.entries, known);
    if (items.length === 0 && known.size > 0) return { known, written: [], notes };
    if (position !== undefined && lastMessageOf(page.entries) !== position.lastMessageId)
      throw new SkeinError("fenced", { sessionId });
    try {
      const options = { ...present({ fence }), expectedLeafId: page.leafId };
      const { entries } = await sessions.append(scope, sessionId, items, options);
      if (position !== undefined) position.lastMessageId = lastMessageOf(entries) ?? position.lastMessageId;
      return { known, written: entries, notes };
    } catch (error) {
      const moved = error instanceof SkeinError && error.code === "conflict";
      if (!moved || tries === maxTries) throw error;
    }
  }
}

/**
 * Returns the end of the branch, at least from the last message that is not a tool result. With `until`, leaves out the
 * entries after that one. `leafId` is the leaf at the time the last entries were read.
 */
export async function readLastTurn(
  { sessions }: Pick<Store, "sessions">,
  scope: Scope,
  sessionId: string,
  until?: string,
): Promise<Pick<EntryPage, "entries" | "leafId"> | null> {
  const read = (limit: number, before?: string): Promise<EntryPage | null> =>
    sessions.page(scope, sessionId, { along: "branch", limit, ...present({ before }) });
  const last = await read(pageSize);
  const leafId = last?.leafId ?? null;
  const parts: (readonly Entry[])[] = [];
  let isFound = until === undefined;
  for (let page = last; page !== null; page = await read(maxPageSize, page.entries[0]?.id)) {
    const { entries, hasEarlier } = page;
    const end = isFound ? entries.length : entries.findIndex(({ id }) => id === until) + 1;
    isFound ||= end > 0;
    const part = entries.slice(0, end);
    parts.unshift(part);
    if (!hasEarlier || part.some(isTurnBegin)) return { entries: parts.flat(), leafId };
  }
  return null;
}

/** Whether every unanswered tool call on the branch is in this entry or a later one. */
function isTurnBegin(entry: Entry): boolean {
  return entry.type === "custom_message" || (entry.type === "message" && entry.message.role !== "toolResult");
}

/** Returns the ID of the last message of any kind on a branch, or `null` if there is none. */
export function lastMessageOf(path: readonly Entry[]): string | null {
  return path.findLast(({ type }) => type === "message" || type === "custom_message")?.id ?? null;
}

async function prepare(
  { store, hooks }: GuardDeps,
  scope: Scope,
  ctx: RuntimeContext,
  given: MessageDraft,
  notes: GuardNote[],
): Promise<{ message: MessageDraft } | { refused: string }> {
  let message = given;
  if (message.role === "assistant")
    message = { ...message, content: message.content.filter((block) => keepBlock(block, notes)) };
  const accepted = hooks === undefined ? { message } : await askWriteHooks(hooks, ctx, message);
  if ("refused" in accepted) return accepted;
  return { message: await withBlobs(store, scope, accepted.message, notes) };
}

/** Calls the hooks that can replace or refuse a message before it is written. */
export async function askWriteHooks(
  hooks: HookRegistry,
  ctx: RuntimeContext,
  given: MessageDraft,
): Promise<{ message: MessageDraft } | { refused: string }> {
  let message = given as Message;
  if (message.role === "toolResult") {
    const asked = await hooks.ask("tool_result_persist", { message, ctx });
    if (asked.refuse !== null) return { refused: asked.refuse };
    message = asked.message;
  }
  const asked = await hooks.ask("before_message_write", { message, ctx });
  return asked.refuse === null ? { message: asked.message as MessageDraft } : { refused: asked.refuse };
}

function keepBlock(block: { type: string }, notes: GuardNote[]): boolean {
  if (block.type !== "toolCall") return true;
  const call = block as Partial<ToolCallBlock>;
  const problem = callProblem(call);
  const name = JSON.stringify(cutText(String(call.name ?? ""), maxQuotedName));
  if (problem !== null)
    notes.push({ kind: "call_removed", note: `the tool call ${name} was removed: ${problem}` });
  return problem === null;
}

/**
 * If none of the calls in an answer were valid, returns a message that informs the model. The message is part of the
 * write that adds the answer, so that a turn resumed after a crash sees it too.
 */
function invalidCallsNote(message: MessageDraft, notes: readonly GuardNote[]): AppendItem[] {
  const invalid = notes.filter(({ kind }) => kind === "call_removed");
  if (invalid.length === 0 || message.role !== "assistant") return [];
  if (message.content.some(({ type }) => type === "toolCall")) return [];
  const content = [
    "[Skein] None of your tool calls were valid:",
    ...invalid.map(({ note }) => `- ${note}.`),
    "Call tools by their exact names with an arguments object, or answer without calling tools.",
  ].join("\n");
  return [{ draft: { type: "custom_message", customType: invalidCallsType, content, display: true } }];
}

/** Moves content that is too large for one line of the log into blobs. */
export async function withBlobs(
  store: Store,
  scope: Scope,
  message: MessageDraft,
  notes: GuardNote[] = [],
): Promise<MessageDraft> {
  if (message.role !== "toolResult" && message.role !== "user" && message.role !== "custom") return message;
  // User messages are never truncated. One that exceeds the window is rejected when it is sent.
  const isCapped = message.role !== "user";
  if (typeof message.content === "string" && !(isCapped && message.content.length > maxResultCharacters))
    return message;
  const blocks =
    typeof message.content === "string"
      ? [{ type: "text" as const, text: message.content }]
      : message.content;
  const capped = isCapped ? await capResult(store, scope, blocks, notes) : blocks;
  const content = await Promise.all(capped.map((block) => imageToBlob(store, scope, block, notes)));
  return content.some((block, index) => block !== blocks[index]) ? { ...message, content } : message;
}

type Block = TextBlock | ImageBlock;

async function capResult(
  store: Store,
  scope: Scope,
  content: readonly Block[],
  notes: GuardNote[],
): Promise<Block[]> {
  const texts = content.map((block) => (block.type === "text" ? block.text : ""));
  const total = texts.reduce((sum, text) => sum + text.length, 0);
  if (total <= maxResultCharacters) return [...content];
  // Every note has the same length, so the truncation point does not depend on the hash.
  const noteOf = (sha256: string) =>
    `\n[… truncated from ${total} characters; the full text is stored as blob ${sha256} …]\n`;
  const isCut = capTexts(texts, () => noteOf(anyHash)).map((text, index) => text !== texts[index]);
  const blobs = await Promise.all(
    texts.map((text, index) => (isCut[index] === true ? textToBlob(store, scope, text) : null)),
  );
  const capped = capTexts(texts, (index) => noteOf(blobs[index]?.sha256 ?? anyHash));
  const hashes = blobs.flatMap((blob) => (blob === null ? [] : [blob.sha256]));
  notes.push({
    kind: "result_capped",
    note: `text of ${total} characters was truncated; the full text is stored as blob ${hashes.join(", ")}`,
  });
  return content.map((block, index) => {
    if (block.type !== "text") return block;
    const blob = blobs[index] ?? null;
    return { ...block, text: capped[index] ?? "", ...(blob === null ? {} : { skein: { blob } }) };
  });
}

const anyHash = "0".repeat(64);

async function textToBlob(store: Store, scope: Scope, text: string): Promise<BlobRef> {
  const bytes = new TextEncoder().encode(text);
  const sha256 = await store.blobs.put(scope, bytes);
  return { sha256, bytes: bytes.length, mimeType: "text/plain", was: "text" };
}

/** Replaces a large image with a text block that contains the blob's hash. Other programs can read the block. */
async function imageToBlob(store: Store, scope: Scope, block: Block, notes: GuardNote[]): Promise<Block> {
  if (block.type !== "image" || block.data.length < imageLimit) return block;
  const bytes = imageBytes(block.data);
  const sha256 = await store.blobs.put(scope, bytes);
  const blob = { sha256, bytes: bytes.length, mimeType: block.mimeType, was: "image" };
  notes.push({
    kind: "image_to_blob",
    note: `an image of ${bytes.length} bytes is stored as blob ${sha256}`,
  });
  return {
    type: "text",
    text: `[image ${block.mimeType}, ${bytes.length} bytes, blob ${sha256}]`,
    skein: { blob },
  };
}

function syntheticResult(call: ToolCallBlock): AppendItem {
  const details = { skein: { synthetic: true } };
  return { draft: { type: "message", message: { ...createMissingResult(call), details } } };
}

function itemOf(message: MessageDraft, id: string | undefined): AppendItem {
  return { draft: { type: "message", message }, ...(id === undefined ? {} : { id }) };
}

/** Tool calls on a branch that have no result yet, in call order. */
interface PendingCalls {
  readonly calls: readonly ToolCallBlock[];
  /** The entry of the assistant message that contains them. */
  readonly entryId: string | null;
}

const none: PendingCalls = { calls: [], entryId: null };
/** Calls in an answer that failed or was aborted need no result. */
const incompleteReasons = ["error", "aborted"];

/** Finds the calls that have no result yet, reading backward from the end of a branch. */
export function pendingCalls(path: readonly Entry[]): PendingCalls {
  const answered = new Set<string>();
  for (const entry of path.toReversed()) {
    if (entry.type === "custom_message") return none;
    if (entry.type !== "message") continue;
    const { message } = entry;
    if (message.role === "toolResult") answered.add(message.toolCallId);
    else if (message.role !== "assistant" || incompleteReasons.includes(message.stopReason ?? ""))
      return none;
    else return { calls: callsOf(message).filter((call) => !answered.has(call.id)), entryId: entry.id };
  }
  return none;
}

export function callsOf(message: AssistantMessage): ToolCallBlock[] {
  return message.content.filter((block) => block.type === "toolCall");
}

const toolName = /^[A-Za-z0-9_-]{1,64}$/;

/** Returns why a call is invalid, or `null` if it is valid. */
export function callProblem(call: {
  readonly id?: unknown;
  readonly name?: unknown;
  readonly arguments?: unknown;
}): string | null {
  if (typeof call.id !== "string" || call.id === "") return "it has no ID";
  if (typeof call.name !== "string" || !toolName.test(call.name))
    return `its name does not match ${toolName.source}`;
  return isRecord(call.arguments) ? null : "its arguments are not an object";
}
