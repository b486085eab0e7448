import { hashedId } from "../../core/hashed-id.ts";
import { isRecord } from "../../core/is-record.ts";
import type { ToolCallBlock } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";
import { shortHash } from "../../core/short-hash.ts";
import { fitJson, lineText, resultContent, titleText } from "./tool-content.ts";

type Fields = Readonly<Record<string, unknown>>;
type ResultDraft = Extract<MessageDraft, { role: "toolResult" }>;

export const maxArgumentChars = 200_000;
const maxLocations = 100;
/** An update contains only the fields that it changes. */
const fieldNames = [
  "title",
  "name",
  "kind",
  "rawInput",
  "rawOutput",
  "content",
  "locations",
  "_meta",
] as const;

/** An agent's tool call, assembled from a series of updates. */
export class AgentCall {
  readonly id: string;
  readonly startedAt: number;
  isEmitted = false;
  #fields: Fields = {};
  #status = "pending";
  /** Rebuilt after each update. */
  #block: ToolCallBlock | null = null;
  /** The block as written to the session's log. Later updates do not change it. */
  #written: ToolCallBlock | null = null;
  #maxArgumentChars = maxArgumentChars;
  #result: ResultDraft | null = null;

  constructor(id: string, startedAt: number) {
    this.id = id;
    this.startedAt = startedAt;
  }

  take(update: Fields): void {
    const changed = fieldNames.filter((name) => update[name] !== undefined && update[name] !== null);
    this.#fields = { ...this.#fields, ...Object.fromEntries(changed.map((name) => [name, update[name]])) };
    this.#block = null;
    if (typeof update.status === "string") this.#status = update.status;
  }

  get hasEnded(): boolean {
    return this.#status === "completed" || this.#status === "failed";
  }

  /** Whether the call's input is known or will not become known before the call runs. */
  get isKnown(): boolean {
    const { rawInput } = this.#fields;
    const hasInput = isRecord(rawInput) ? Object.keys(rawInput).length > 0 : rawInput !== undefined;
    return hasInput || this.#status !== "pending";
  }

  get block(): ToolCallBlock {
    this.#block ??= this.#written ?? {
      type: "toolCall",
      id: this.id,
      name: nameOf(this.#fields),
      arguments: argumentsOf(this.#fields, this.#maxArgumentChars),
    };
    return this.#block;
  }

  /** Freezes the block for the log, with arguments of about `maxChars` characters. */
  write(maxChars: number): ToolCallBlock {
    if (maxChars < this.#maxArgumentChars) {
      this.#maxArgumentChars = maxChars;
      this.#block = null;
    }
    this.#written = this.block;
    return this.#written;
  }

  /** Builds the result once. `interruption` explains why the agent will never send a result for the call. */
  end(terminalText: (terminalId: string) => string | null, interruption: string | null): ResultDraft {
    if (this.#result !== null) return this.#result;
    const { content, rawOutput } = this.#fields;
    const blocks = resultContent({ content, rawOutput }, terminalText);
    const isError = interruption !== null || this.#status === "failed";
    const note = interruption ?? (blocks.length > 0 ? null : isError ? failedText : emptyText);
    this.#result = {
      role: "toolResult",
      toolCallId: this.id,
      toolName: this.block.name,
      content: note === null ? blocks : [{ type: "text", text: note }, ...blocks],
      details: this.#details(isError),
      isError,
    };
    // The result might not be written for a long time, so its sources are released from memory.
    this.#fields = { ...this.#fields, content: undefined, rawOutput: undefined };
    return this.#result;
  }

  /** `null` until the call has ended. */
  get result(): ResultDraft | null {
    return this.#result;
  }

  #details(isError: boolean): Fields {
    const { kind, rawInput } = this.#fields;
    const hasLateInput = this.#written !== null && rawInput !== undefined;
    const input = hasLateInput ? argumentsOf(this.#fields, this.#maxArgumentChars) : null;
    const isChanged = JSON.stringify(input) !== JSON.stringify(this.#written?.arguments);
    return {
      // Never a status that Skein's own tools use, because recovery looks for `yielded` here.
      status: isError ? "failed" : "completed",
      ...(typeof kind === "string" && { kind: lineText(kind, 64) }),
      ...descriptionOf(this.#fields),
      ...(input !== null && isChanged && { input }),
    };
  }
}

const failedText = "The tool failed, and the agent gave no reason.";
const emptyText = "(no output)";

function argumentsOf(fields: Fields, maxChars: number): Record<string, unknown> {
  if (fields.rawInput === undefined) return descriptionOf(fields);
  const input = fitJson(fields.rawInput, maxChars);
  return isRecord(input) ? input : { input };
}

function descriptionOf({ title, locations }: Fields): Record<string, unknown> {
  const places = (Array.isArray(locations) ? locations : []).slice(0, maxLocations).filter(isRecord);
  return {
    ...(typeof title === "string" && { title: titleText(title) }),
    ...(places.length > 0 && {
      locations: places.map(({ path, line }) => ({
        path: lineText(path),
        ...(typeof line === "number" && Number.isFinite(line) && { line }),
      })),
    }),
  };
}

/** Returns the agent's own name for the tool if it sends one, otherwise the tool's kind. */
function nameOf({ name, kind, _meta: meta }: Fields): string {
  const claudeName = isRecord(meta) && isRecord(meta.claudeCode) ? meta.claudeCode.toolName : undefined;
  return [name, claudeName, kind].map(toolName).find((each) => each !== "") ?? "other";
}

/** Returns a name that the guard accepts, or an empty string if there is none. */
function toolName(value: unknown): string {
  if (typeof value !== "string") return "";
  const clean = value.slice(0, 64).replace(/[^A-Za-z0-9_-]/g, "_");
  return /[A-Za-z0-9]/.test(clean) ? clean : "";
}

const maxAgentIdChars = 200;

/** Turns an ID chosen by the agent into a map key. A long ID is replaced with its hash. */
export function boundedId(id: string): string {
  return id.length > maxAgentIdChars ? hashedId(id) : id;
}

/** Assigns call IDs that are safe to store and unique in the turn, regardless of the IDs that the agent uses. */
export class CallIds {
  readonly #used = new Set<string>();
  /** The last number tried for each base, so that a thousand equal IDs take only a thousand attempts. */
  readonly #counts = new Map<string, number>();

  take(agentId: string): string {
    const base = /^[A-Za-z0-9_.:-]{1,64}$/.test(agentId) ? agentId : `call_${shortHash(agentId)}`;
    for (let count = (this.#counts.get(base) ?? 0) + 1; ; count++) {
      const id = count === 1 ? base : `${base}-${count}`;
      if (this.#used.has(id)) continue;
      this.#counts.set(base, count);
      this.#used.add(id);
      return id;
    }
  }
}
