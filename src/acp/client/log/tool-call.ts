import type { ToolCallBlock } from "../../../core/messages.ts";
import type { MessageDraft } from "../../../core/seal.ts";
import { isRecord } from "../../../core/shape.ts";
import { oneLine, titleText } from "./content-text.ts";
import { fitJson } from "./fit-json.ts";
import { resultContent } from "./result-content.ts";

/** A call of a tool by an agent, from what is told of it piece by piece. */

type Fields = Readonly<Record<string, unknown>>;
type ResultDraft = Extract<MessageDraft, { role: "toolResult" }>;

/** Of the arguments of one call. */
export const mostArguments = 200_000;
const mostLocations = 100;
/** An update has those of them that it changes. */
const kept = ["title", "name", "kind", "rawInput", "rawOutput", "content", "locations", "_meta"] as const;

export class AgentCall {
  readonly id: string;
  readonly beganAt: number;
  /** Somebody watching was told of it. */
  isTold = false;
  #fields: Fields = {};
  #status = "pending";
  /** As far as it is known; made anew after each update. */
  #block: ToolCallBlock | null = null;
  /** As it was said: what comes later changes it no more. */
  #said: ToolCallBlock | null = null;
  /** Of its arguments. */
  #room = mostArguments;
  #result: ResultDraft | null = null;

  constructor(id: string, beganAt: number) {
    this.id = id;
    this.beganAt = beganAt;
  }

  take(update: Fields): void {
    const news = kept.filter((name) => update[name] !== undefined && update[name] !== null);
    this.#fields = { ...this.#fields, ...Object.fromEntries(news.map((name) => [name, update[name]])) };
    this.#block = null;
    if (typeof update.status === "string") this.#status = update.status;
  }

  get hasEnded(): boolean {
    return this.#status === "completed" || this.#status === "failed";
  }

  /** What it is called with is known, or will not be known before it is under way. */
  get isKnown(): boolean {
    const { rawInput } = this.#fields;
    const isGiven = isRecord(rawInput) ? Object.keys(rawInput).length > 0 : rawInput !== undefined;
    return isGiven || this.#status !== "pending";
  }

  get block(): ToolCallBlock {
    this.#block ??= this.#said ?? {
      type: "toolCall",
      id: this.id,
      name: nameOf(this.#fields),
      arguments: argumentsOf(this.#fields, this.#room),
    };
    return this.#block;
  }

  /** In about so many characters at the most. */
  say(room: number): ToolCallBlock {
    if (room < this.#room) [this.#room, this.#block] = [room, null];
    this.#said = this.block;
    return this.#said;
  }

  /** Its result, now that it has one or will get none any more: `cut` says why. Made once. */
  end(terminalText: (terminalId: string) => string | null, cut: string | null): ResultDraft {
    if (this.#result !== null) return this.#result;
    const { content, rawOutput } = this.#fields;
    const blocks = resultContent({ content, rawOutput, terminalText });
    const isError = cut !== null || this.#status === "failed";
    const lead = cut ?? (blocks.length > 0 ? null : isError ? failedText : emptyText);
    this.#result = {
      role: "toolResult",
      toolCallId: this.id,
      toolName: this.block.name,
      content: lead === null ? blocks : [{ type: "text", text: lead }, ...blocks],
      details: this.#details(isError),
      isError,
    };
    // It may wait long for its turn; what its result was made of need not.
    this.#fields = { ...this.#fields, content: undefined, rawOutput: undefined };
    return this.#result;
  }

  /** `null`: it has not ended. */
  get result(): ResultDraft | null {
    return this.#result;
  }

  /** For people: what a call and its result have no place for. */
  #details(isError: boolean): Fields {
    const { kind, rawInput } = this.#fields;
    const args = this.#said === null || rawInput === undefined ? null : argumentsOf(this.#fields, this.#room);
    // It was said before its input was told.
    const isLate = args !== null && JSON.stringify(args) !== JSON.stringify(this.#said?.arguments);
    return {
      // Never one of our own tools' words: recovery reads `yielded` here.
      status: isError ? "failed" : "completed",
      ...(typeof kind === "string" && { kind: oneLine(kind, 64) }),
      ...describedBy(this.#fields),
      ...(isLate && { input: args }),
    };
  }
}

const failedText = "The tool failed, and the agent did not say why.";
const emptyText = "(no output)";

function argumentsOf(fields: Fields, most: number): Record<string, unknown> {
  const { rawInput } = fields;
  if (rawInput === undefined) return describedBy(fields);
  const input = fitJson(rawInput, most);
  return isRecord(input) ? input : { input };
}

function describedBy({ title, locations }: Fields): Record<string, unknown> {
  const places = (Array.isArray(locations) ? locations : []).slice(0, mostLocations).filter(isRecord);
  return {
    ...(typeof title === "string" && { title: titleText(title) }),
    ...(places.length > 0 && {
      locations: places.map(({ path, line }) => ({
        path: oneLine(path),
        ...(typeof line === "number" && Number.isFinite(line) && { line }),
      })),
    }),
  };
}

/** The agent's own name of the tool where it tells one, else what kind of tool it is. */
function nameOf({ name, kind, _meta: meta }: Fields): string {
  const claude = isRecord(meta) && isRecord(meta.claudeCode) ? meta.claudeCode.toolName : undefined;
  const found = [name, claude, kind].map(toolName).find((each) => each !== "");
  return found ?? "other";
}

/** In the only form that the guard lets in. */
function toolName(value: unknown): string {
  if (typeof value !== "string") return "";
  const clean = value.slice(0, 64).replace(/[^A-Za-z0-9_-]/g, "_");
  return /[A-Za-z0-9]/.test(clean) ? clean : "";
}
