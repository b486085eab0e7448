import type { Content, TextBlock, UserMessage } from "../core/messages.ts";
import type {
  Change,
  ContextMessage,
  StepResult,
  TranscriptMessage,
  TranscriptOptions,
  TranscriptPolicy,
} from "./contract.ts";

/** Records the origin of a message that a step created. A symbol property is never written to disk or sent. */
const originKey = Symbol("about");

interface Origin {
  /** The context message that it was derived from, or `null` if a step inserted it. */
  readonly source: object | null;
  /** For merged messages, the context messages that they were derived from, in order. */
  readonly merged?: readonly object[];
  /**
   * `true` for a message from the session itself. `false` for a summary, a hook's text or a step's note with the user
   * role.
   */
  readonly said: boolean;
  /**
   * `true` if step 1 has added the source session or the sender. A line that only imitates this does not set the mark.
   */
  readonly annotated: boolean;
  /** `true` for a user message that contains tool results as text. */
  readonly holdsResults?: boolean;
}

type Marked = { readonly [originKey]?: Origin };

/** Copies a message with some fields replaced. The copy still belongs to the same entry. */
export function derive<M extends TranscriptMessage>(message: M, fields: Partial<M>): M {
  return { ...message, ...fields, [originKey]: originOf(message) };
}

/** Copies a message without one field. */
export function removeField<M extends TranscriptMessage>(message: M, field: keyof M): M {
  const copy = { ...message, [originKey]: originOf(message) };
  delete copy[field];
  return copy;
}

/** Copies a message and marks it as annotated. */
export function markAnnotated<M extends TranscriptMessage>(message: M, fields: Partial<M>): M {
  return { ...message, ...fields, [originKey]: { ...originOf(message), annotated: true } };
}

/** Merges messages into one message, which belongs to the last one's entry. */
export function mergeMessages<M extends TranscriptMessage>(
  messages: readonly [M, ...M[]],
  fields: Partial<M>,
): M {
  const last = messages.at(-1) ?? messages[0];
  const each = messages.map(originOf);
  const said = each.some((one) => one.said);
  const source = originOf(last).source ?? each.findLast((one) => one.source !== null)?.source ?? null;
  const annotated = each.some((one) => one.annotated);
  const holdsResults = each.some((one) => one.holdsResults === true);
  return {
    ...last,
    ...fields,
    [originKey]: { source, merged: messages.flatMap(sourcesOf), said, annotated, holdsResults },
  };
}

/** Converts a context message whose role no provider supports. */
export function replaceMessage<M extends TranscriptMessage>(source: ContextMessage, message: M): M {
  return { ...message, [originKey]: { source, said: false, annotated: false } };
}

/** Marks a message as inserted by a step. */
export function insertMessage<M extends TranscriptMessage>(message: M): M {
  return { ...message, [originKey]: { source: null, said: false, annotated: false } };
}

/** Marks a user message as inserted in place of a tool result. */
export function insertResult<M extends UserMessage>(message: M): M {
  return { ...message, [originKey]: { source: null, said: false, annotated: false, holdsResults: true } };
}

/** Whether this is a tool result, or a user message that contains one as text. */
export function holdsResults(message: TranscriptMessage): boolean {
  return message.role === "toolResult" || (message as Marked)[originKey]?.holdsResults === true;
}

/** Whether this is a user message from the session itself. */
export function isSaid(message: TranscriptMessage): boolean {
  return message.role === "user" && ((message as Marked)[originKey]?.said ?? true);
}

/** Whether a step inserted the message. An inserted message does not start a turn. */
export function isInserted(message: TranscriptMessage): boolean {
  return (message as Marked)[originKey]?.source === null;
}

export function isAnnotated(message: TranscriptMessage): boolean {
  return (message as Marked)[originKey]?.annotated === true;
}

/** Returns the context messages that a message was derived from, or an empty list if a step inserted it. */
export function sourcesOf(message: TranscriptMessage | ContextMessage): readonly object[] {
  const origin = (message as Marked)[originKey];
  if (origin === undefined) return [message];
  return origin.merged ?? (origin.source === null ? [] : [origin.source]);
}

/** Whether a message is a note from Skein or from a hook, which no person or session sent. */
export function isNote(message: TranscriptMessage): boolean {
  return sourcesOf(message).every((source) => (source as ContextMessage).role === "custom");
}

/** The message that a change affects, before the change, and all messages after the step that made the change. */
export interface ChangeTrace {
  readonly before: TranscriptMessage | ContextMessage;
  after: readonly TranscriptMessage[];
}

/** Stores only references. The text is derived when an X-ray is read. */
const traces = new WeakMap<Change, ChangeTrace>();

/** Returns `null` if the change does not affect exactly one message. */
export function traceOf(change: Change): ChangeTrace | null {
  return traces.get(change) ?? null;
}

/** Completes the traces of a step's changes. */
export function traceStep({ messages, changes }: StepResult): void {
  for (const change of changes) {
    const trace = traces.get(change);
    if (trace !== undefined) trace.after = messages;
  }
}

function originOf(message: TranscriptMessage): Origin {
  return (
    (message as Marked)[originKey] ?? { source: message, said: message.role === "user", annotated: false }
  );
}

/** Creates the change records for one step. */
export type Recorder = (kind: string, note: string, message?: TranscriptMessage | ContextMessage) => Change;

export interface StepOptions extends TranscriptOptions {
  readonly policy: TranscriptPolicy;
  readonly record: Recorder;
}

export type Tell = (kind: string, note: string) => void;

/** Maps messages one by one and records the changes. Returns the same array if no message changed. */
export function mapMessages(
  messages: readonly TranscriptMessage[],
  record: Recorder,
  change: (message: TranscriptMessage, tell: Tell) => TranscriptMessage,
): StepResult {
  const changes: Change[] = [];
  let isChanged = false;
  const after = messages.map((message) => {
    const changed = change(message, (kind, note) => changes.push(record(kind, note, message)));
    if (changed !== message) isChanged = true;
    return changed;
  });
  return { messages: isChanged ? after : messages, changes };
}

/** Finds the entry for a message. The index is built on first use, so a transcript without changes never builds it. */
export class EntryIds {
  readonly #messages: readonly ContextMessage[];
  readonly #entryIds: readonly string[];
  #bySource: Map<object, string> | null = null;

  constructor(messages: readonly ContextMessage[] = [], entryIds: readonly string[] = []) {
    this.#messages = messages;
    this.#entryIds = entryIds;
  }

  of(message: TranscriptMessage | ContextMessage): string | undefined {
    const mark = (message as Marked)[originKey];
    const source = mark === undefined ? message : mark.source;
    return source === null ? undefined : this.#entryOf(source);
  }

  /** Returns the entries for all messages that were merged into one. */
  allOf(message: TranscriptMessage): string[] {
    return sourcesOf(message).flatMap((source) => this.#entryOf(source) ?? []);
  }

  recorder(step: string): Recorder {
    return (kind, note, message) => {
      const entryId = message === undefined ? undefined : this.of(message);
      const change = { step, ...(entryId === undefined ? {} : { entryId }), kind, note };
      if (message !== undefined) traces.set(change, { before: message, after: [] });
      return change;
    };
  }

  #entryOf(source: object): string | undefined {
    if (this.#entryIds.length === 0) return undefined;
    this.#bySource ??= new Map(
      this.#messages.map((each, index) => [each, this.#entryIds[index] ?? ""] as const),
    );
    return this.#bySource.get(source) || undefined;
  }
}

/**
 * Whether a text block stands for an image that is stored as a blob. Text added to such a block would vanish, because
 * the image replaces the block before the request is sent.
 */
export function isImageBlob({ skein }: TextBlock): boolean {
  return skein?.blob?.was === "image";
}

/** Puts text before a message's content: into its first text block, or into a new block before an image. */
export function prependText(content: Content, text: string, separator: string): Content {
  if (typeof content === "string") return `${text}${separator}${content}`;
  const [first, ...rest] = content;
  if (first?.type !== "text" || isImageBlob(first)) return [{ type: "text", text }, ...content];
  return [{ ...first, text: `${text}${separator}${first.text}` }, ...rest];
}

export function toBlocks<B>(content: string | readonly B[]): readonly (B | TextBlock)[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
