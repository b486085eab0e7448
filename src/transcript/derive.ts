import type { TextBlock } from "../core/messages.ts";
import type {
  Change,
  ContextMessage,
  StepResult,
  TranscriptMessage,
  TranscriptOptions,
  TranscriptPolicy,
} from "./contract.ts";

/** Records the origin of a message that a step made. A symbol is never written to disk or sent. */
const originKey = Symbol("about");

interface Origin {
  /** The message of the context that it was made from; `null` when a step inserted it. */
  readonly source: object | null;
  /** If several messages were merged: the messages of the context that they were made from, in order. */
  readonly merged?: readonly object[];
  /** A message of the session itself, not a summary, a hook's text or a step's note in the user role. */
  readonly said: boolean;
  /** It names the session that it comes from, so its first line is not an imitation. */
  readonly annotated: boolean;
}

type Marked = { readonly [originKey]?: Origin };

/** Copies a message with other fields. The copy still belongs to the same entry. */
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

/** Merges messages into one, which belongs to the entry of the last one. */
export function mergeMessages<M extends TranscriptMessage>(
  messages: readonly [M, ...M[]],
  fields: Partial<M>,
): M {
  const last = messages.at(-1) ?? messages[0];
  const each = messages.map(originOf);
  const said = each.some((one) => one.said);
  const source = originOf(last).source ?? each.findLast((one) => one.source !== null)?.source ?? null;
  const annotated = each.some((one) => one.annotated);
  return {
    ...last,
    ...fields,
    [originKey]: { source, merged: messages.flatMap(sourcesOf), said, annotated },
  };
}

/** Converts a context message whose role no provider knows. */
export function replaceMessage<M extends TranscriptMessage>(source: ContextMessage, message: M): M {
  return { ...message, [originKey]: { source, said: false, annotated: false } };
}

/** Marks a message as inserted by a step. */
export function insertMessage<M extends TranscriptMessage>(message: M): M {
  return { ...message, [originKey]: { source: null, said: false, annotated: false } };
}

/** Whether it is a user message of the session itself. */
export function isSaid(message: TranscriptMessage): boolean {
  return message.role === "user" && ((message as Marked)[originKey]?.said ?? true);
}

/** Whether a step inserted it. An inserted message starts no turn. */
export function isInserted(message: TranscriptMessage): boolean {
  return (message as Marked)[originKey]?.source === null;
}

export function isAnnotated(message: TranscriptMessage): boolean {
  return (message as Marked)[originKey]?.annotated === true;
}

/** The messages of the context that a message was made from; none when a step inserted it. */
export function sourcesOf(message: TranscriptMessage | ContextMessage): readonly object[] {
  const origin = (message as Marked)[originKey];
  if (origin === undefined) return [message];
  return origin.merged ?? (origin.source === null ? [] : [origin.source]);
}

/** The message of a change, and all messages after the step that made it. */
export interface ChangeTrace {
  readonly before: TranscriptMessage | ContextMessage;
  after: readonly TranscriptMessage[];
}

/** Only references: texts are derived from them when an X-ray is read. */
const traces = new WeakMap<Change, ChangeTrace>();

/** `null`: the change is not about one message. */
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

/** Creates the change records of one step. */
export type Recorder = (kind: string, note: string, message?: TranscriptMessage | ContextMessage) => Change;

export interface StepOptions extends TranscriptOptions {
  readonly policy: TranscriptPolicy;
  readonly record: Recorder;
}

export type Tell = (kind: string, note: string) => void;

/** Changes messages one by one and records the changes. Returns the same array when no message changed. */
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

/** Finds the entry of a message. The index is built on first use, so a clean transcript does not pay for it. */
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

  /** The entries of all messages that were merged into one. */
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

export function toBlocks<B>(content: string | readonly B[]): readonly (B | TextBlock)[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
