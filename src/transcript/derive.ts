import type { TextBlock } from "../core/messages.ts";
import type { Change, ContextMessage, TranscriptMessage } from "./contract.ts";

/** Where a message that a step made comes from. Never on disk, never on the wire: the key is a symbol. */
const originKey = Symbol("about");

interface Origin {
  /** The message of the context that it was made from; `null`: a step put it in. */
  readonly source: object | null;
  /** Said by somebody, and not a summary, a hook's text or a step's note in a user's role. */
  readonly said: boolean;
  /** It names the session that it comes from; what looks like such a line in it is ours. */
  readonly annotated: boolean;
}

type Marked = { readonly [originKey]?: Origin };

/** The same message with other fields, still known to be of the same entry. */
export function derive<M extends TranscriptMessage>(message: M, fields: Partial<M>): M {
  return { ...message, ...fields, [originKey]: originOf(message) };
}

/** The same message without a field. */
export function removeField<M extends TranscriptMessage>(message: M, field: keyof M): M {
  const copy = { ...message, [originKey]: originOf(message) };
  delete copy[field];
  return copy;
}

/** The message, known to be annotated. */
export function markAnnotated<M extends TranscriptMessage>(message: M, fields: Partial<M>): M {
  return { ...message, ...fields, [originKey]: { ...originOf(message), annotated: true } };
}

/** One message made of several; it counts as the last one's. */
export function mergeMessages<M extends TranscriptMessage>(
  messages: readonly [M, ...M[]],
  fields: Partial<M>,
): M {
  const last = messages.at(-1) ?? messages[0];
  const each = messages.map(originOf);
  const said = each.some((one) => one.said);
  const source = originOf(last).source ?? each.findLast((one) => one.source !== null)?.source ?? null;
  return { ...last, ...fields, [originKey]: { source, said, annotated: each.some((one) => one.annotated) } };
}

/** A message that stands for one of the context which is no user's, assistant's or tool's. */
export function replaceMessage<M extends TranscriptMessage>(source: ContextMessage, message: M): M {
  return { ...message, [originKey]: { source, said: false, annotated: false } };
}

/** A message that a step puts in. */
export function insertMessage<M extends TranscriptMessage>(message: M): M {
  return { ...message, [originKey]: { source: null, said: false, annotated: false } };
}

/** Whether somebody said it: a message of the role `user` in the session itself. */
export function isSaid(message: TranscriptMessage): boolean {
  return message.role === "user" && ((message as Marked)[originKey]?.said ?? true);
}

/** Whether a step put it in: it begins no turn of the conversation. */
export function isInserted(message: TranscriptMessage): boolean {
  return (message as Marked)[originKey]?.source === null;
}

export function isAnnotated(message: TranscriptMessage): boolean {
  return (message as Marked)[originKey]?.annotated === true;
}

function originOf(message: TranscriptMessage): Origin {
  return (
    (message as Marked)[originKey] ?? { source: message, said: message.role === "user", annotated: false }
  );
}

/** Makes change records for one step. */
export type Recorder = (kind: string, note: string, message?: TranscriptMessage | ContextMessage) => Change;

/** Which entry a message comes from. Built when it is first asked for: a clean transcript never pays for it. */
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
    if (source === null || this.#entryIds.length === 0) return undefined;
    this.#bySource ??= new Map(
      this.#messages.map((each, index) => [each, this.#entryIds[index] ?? ""] as const),
    );
    return this.#bySource.get(source) || undefined;
  }

  recorder(step: string): Recorder {
    return (kind, note, message) => {
      const entryId = message === undefined ? undefined : this.of(message);
      return { step, ...(entryId === undefined ? {} : { entryId }), kind, note };
    };
  }
}

/** A content as blocks. */
export function toBlocks<B>(content: string | readonly B[]): readonly (B | TextBlock)[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
