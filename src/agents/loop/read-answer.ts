import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4ResponseMetadata,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { unlessAborted } from "../../core/abort.ts";
import type { ToolNames } from "../../transcript/tool-names.ts";
import type { ResponseFacts } from "../models/assistant-message.ts";
import { errorMessageOf } from "../models/assistant-message.ts";
import { isContextOverflow } from "../models/context-overflow.ts";
import { joined } from "../models/metadata.ts";
import { AnswerTooLong, maxAnswerBytes } from "../models/open-model.ts";
import { StreamFailure } from "./failure.ts";
import type { LoopServices } from "./services.ts";

const longestBreathMs = 50;

interface ReadOptions {
  readonly signal: AbortSignal;
  /** A stream that says nothing for so long is given up. */
  readonly stallMs: number;
  readonly onDelta: (delta: Delta) => void;
}

/**
 * Asks once, and reads the answer to its end. What was streamed is in the collector whatever happens; a stream that
 * stalls, breaks off or ends badly throws. An abort leaves at once, whether or not the model's package heeds it.
 */
export async function readAnswer(
  model: LanguageModelV4,
  options: LanguageModelV4CallOptions,
  collector: PartCollector,
  { signal, stallMs, onDelta }: ReadOptions,
  services: LoopServices,
): Promise<ResponseFacts> {
  const request = new AbortController();
  const stop = () => request.abort(signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  const watch = new Watch(stallMs, services, request);
  try {
    const asked = model.doStream({ ...options, abortSignal: request.signal });
    const { stream } = await unlessAborted(asked, request.signal);
    const reader = stream.getReader();
    try {
      for (let breathed = performance.now(); ; ) {
        // A stream that always has more ready would let no timer, lease or abort through.
        if (performance.now() - breathed > longestBreathMs) {
          await immediately();
          breathed = performance.now();
        }
        const { done, value } = await unlessAborted(reader.read(), request.signal);
        if (done) break;
        watch.heard();
        if (value.type === "error") throw value.error;
        const delta = collector.add(value);
        if (delta !== null) onDelta(delta);
      }
    } catch (error) {
      // The connection is let go, whatever the stream thinks of it.
      reader.cancel(error).catch(() => undefined);
      throw error;
    }
    return ended(collector.facts);
  } finally {
    signal.removeEventListener("abort", stop);
    watch.end();
  }
}

function immediately(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** A reason for ending that is none is a failure, even where the stream came to its end. */
function ended(facts: ResponseFacts | null): ResponseFacts {
  if (facts === null) throw new StreamFailure("cut", "The answer ended before it was complete.");
  const { unified, raw = "" } = facts.finishReason;
  // Some servers accept a request that is too long, and end the answer at once with this reason.
  if (unified !== "length" && isContextOverflow(null, [raw]))
    throw new StreamFailure("overflow", `The provider ended the answer with ${raw}.`);
  const problem = errorMessageOf(facts.finishReason);
  if (problem === undefined) return facts;
  const isFiltered = unified === "content-filter";
  throw new StreamFailure(isFiltered ? "filtered" : "cut", problem);
}

/** Gives a request up when nothing has been heard for too long. One timer at a time, however many parts come. */
class Watch {
  readonly #services: LoopServices;
  readonly #over = new AbortController();
  #last: number;

  constructor(stallMs: number, services: LoopServices, request: AbortController) {
    this.#services = services;
    this.#last = services.clock.now();
    this.#run(stallMs, request).catch(() => undefined);
  }

  heard(): void {
    this.#last = this.#services.clock.now();
  }

  end(): void {
    // With a reason of its own: without one a new error is made, with its stack, for nobody.
    this.#over.abort("over");
  }

  async #run(stallMs: number, request: AbortController): Promise<void> {
    for (;;) {
      const left = this.#last + stallMs - this.#services.clock.now();
      if (left <= 0) break;
      await this.#services.sleep(left, this.#over.signal);
    }
    const seconds = Math.round(stallMs / 1000);
    request.abort(new StreamFailure("stalled", `The model said nothing for ${seconds} seconds.`));
  }
}

type Block = Extract<LanguageModelV4Content, { type: "text" | "reasoning" }>;
type Said = { -readonly [K in keyof Block]: Block[K] };
type Metadata = Block["providerMetadata"];

/** A piece of the answer that people may see at once. */
interface Delta {
  readonly kind: "text" | "thinking";
  readonly delta: string;
}

/** Puts an answer together from the parts of its stream, in the order in which they began. */
export class PartCollector {
  readonly #content: LanguageModelV4Content[] = [];
  /** Texts and thoughts that have not ended, by kind and id. */
  readonly #open = new Map<string, Said>();
  readonly #response: LanguageModelV4ResponseMetadata = {};
  readonly #toolNames: Pick<ToolNames, "original"> | null;
  #facts: ResponseFacts | null = null;
  #bytes = 0;
  /** Bytes of the arguments so far, by the call that they belong to. */
  readonly #inputs = new Map<string, number>();

  /** Names of calls are mapped back to those of the tools; left out: they are the same. */
  constructor(toolNames: Pick<ToolNames, "original"> | null = null) {
    this.#toolNames = toolNames;
  }

  /**
   * What there is to show of a part; `null`: nothing. A part of a kind that is not known says nothing. Throws `AnswerTooLong`
   * before it would hold more than an answer may.
   */
  add(part: LanguageModelV4StreamPart): Delta | null {
    this.#count(part);
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
        this.#begin(kindOf(part.type), part.id, part.providerMetadata);
        return null;
      case "text-delta":
      case "reasoning-delta":
        return this.#extend(kindOf(part.type), part.id, part.delta, part.providerMetadata);
      case "text-end":
      case "reasoning-end":
        this.#end(part);
        return null;
      case "tool-call":
        this.#content.push({ ...part, toolName: this.#toolNames?.original(part.toolName) ?? part.toolName });
        return null;
      case "tool-result":
      case "tool-approval-request":
      case "file":
      case "reasoning-file":
      case "source":
        this.#content.push(part);
        return null;
      case "custom":
        if (!isBookkeeping(part.kind)) this.#content.push(part);
        return null;
      case "response-metadata":
        this.#note(part);
        return null;
      case "finish":
        this.#finish(part);
        return null;
      default:
        return null;
    }
  }

  get content(): readonly LanguageModelV4Content[] {
    return this.#content;
  }

  /** `null`: the stream has not come to its end. */
  get facts(): ResponseFacts | null {
    return this.#facts;
  }

  /** All that was said in words so far. */
  get texts(): readonly string[] {
    return this.#content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  }

  #count(part: LanguageModelV4StreamPart): void {
    this.#bytes += sizeOf(part);
    if (part.type === "tool-input-delta") {
      this.#inputs.set(part.id, (this.#inputs.get(part.id) ?? 0) + sizeOf(part));
    } else if (part.type === "tool-call") {
      // The arguments come a second time, as a whole.
      this.#bytes -= this.#inputs.get(part.toolCallId) ?? 0;
      this.#inputs.delete(part.toolCallId);
    }
    if (this.#bytes > maxAnswerBytes) throw new AnswerTooLong("answer", maxAnswerBytes);
  }

  #begin(type: Block["type"], id: string, metadata: Metadata): Said {
    const block: Said = { type, text: "", ...(metadata === undefined ? {} : { providerMetadata: metadata }) };
    this.#content.push(block as Block);
    this.#open.set(`${type} ${id}`, block);
    return block;
  }

  /** A piece of something that never began begins it. */
  #extend(type: Block["type"], id: string, delta: string, metadata: Metadata): Delta | null {
    const block = this.#open.get(`${type} ${id}`) ?? this.#begin(type, id, undefined);
    block.text += delta;
    addMetadata(block, metadata);
    return delta === "" ? null : { kind: type === "text" ? "text" : "thinking", delta };
  }

  #end(part: Extract<LanguageModelV4StreamPart, { type: "text-end" | "reasoning-end" }>): void {
    const name = `${kindOf(part.type)} ${part.id}`;
    const block = this.#open.get(name);
    this.#open.delete(name);
    if (block === undefined) return;
    addMetadata(block, part.providerMetadata);
    if (part.type === "text-end" && part.citations !== undefined)
      Object.assign(block, { citations: part.citations });
  }

  #note({ id, modelId, timestamp }: LanguageModelV4ResponseMetadata): void {
    if (id !== undefined) this.#response.id = id;
    if (modelId !== undefined) this.#response.modelId = modelId;
    if (timestamp !== undefined) this.#response.timestamp = timestamp;
  }

  #finish(part: Extract<LanguageModelV4StreamPart, { type: "finish" }>): void {
    const { finishReason, usage, providerMetadata } = part;
    this.#facts = { finishReason, usage, providerMetadata, response: this.#response };
  }
}

/** The bytes that a part adds to an answer. */
function sizeOf(part: LanguageModelV4StreamPart): number {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta":
    case "tool-input-delta":
      return Buffer.byteLength(part.delta);
    case "tool-call":
      return Buffer.byteLength(part.input);
    case "tool-result":
      return Buffer.byteLength(JSON.stringify(part.result) ?? "");
    case "file":
    case "reasoning-file":
      return part.data.type === "data" ? part.data.data.length : 0;
    default:
      return 0;
  }
}

/** That an answer has begun is nothing that it says, and no request takes it back. */
function isBookkeeping(kind: string): boolean {
  return kind === "anthropic.message_start";
}

function kindOf(type: string): Block["type"] {
  return type.startsWith("text-") ? "text" : "reasoning";
}

/** Signatures come with a later piece, or with the end. */
function addMetadata(block: Said, metadata: Metadata): void {
  const both = joined(block.providerMetadata, metadata);
  if (both !== undefined) block.providerMetadata = both;
}
