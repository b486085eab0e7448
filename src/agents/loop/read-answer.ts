import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4ResponseMetadata,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { unlessAborted } from "../../core/concurrency.ts";
import type { ToolNames } from "../../transcript/tool-names.ts";
import type { ResponseFacts } from "../models/assistant-message.ts";
import { errorMessageOf } from "../models/assistant-message.ts";
import { isContextOverflow } from "../models/context-overflow.ts";
import { mergeMetadata } from "../models/metadata.ts";
import { AnswerTooLong, maxAnswerBytes } from "../models/open-model.ts";
import { StreamFailure } from "./failure.ts";
import type { LoopServices } from "./services.ts";

/** The longest time that reading can block the event loop. */
const maxBusyMs = 50;

interface ReadOptions {
  readonly signal: AbortSignal;
  /** A stream that sends nothing for this long is treated as failed. */
  readonly stallMs: number;
  readonly onDelta: (delta: Delta) => void;
}

/**
 * Sends one request and reads its stream into the collector. Throws if the stream stalls, breaks off or ends with an
 * error. The collector keeps the parts received so far. An abort takes effect immediately, even if the provider's
 * package ignores it.
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
  const watch = new StallWatch(stallMs, services, request);
  try {
    const asked = model.doStream({ ...options, abortSignal: request.signal });
    const { stream } = await unlessAborted(asked, request.signal);
    const reader = stream.getReader();
    try {
      for (let yieldedAt = performance.now(); ; ) {
        // A stream that always has data ready would starve timers, leases and aborts.
        if (performance.now() - yieldedAt > maxBusyMs) {
          await nextTick();
          yieldedAt = performance.now();
        }
        const { done, value } = await unlessAborted(reader.read(), request.signal);
        if (done) break;
        watch.reset();
        if (value.type === "error") throw value.error;
        const delta = collector.add(value);
        if (delta !== null) onDelta(delta);
      }
    } catch (error) {
      // Closes the connection.
      reader.cancel(error).catch(() => undefined);
      throw error;
    }
    return checkFinish(collector.facts);
  } finally {
    signal.removeEventListener("abort", stop);
    watch.end();
  }
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Throws if the answer did not finish normally. */
function checkFinish(facts: ResponseFacts | null): ResponseFacts {
  if (facts === null) throw new StreamFailure("cut", "The answer ended before it was complete.");
  const { unified, raw = "" } = facts.finishReason;
  // Some servers accept a request that is too long and then end the answer immediately with this reason.
  if (unified !== "length" && isContextOverflow(null, [raw]))
    throw new StreamFailure("overflow", `The provider ended the answer with ${raw}.`);
  const problem = errorMessageOf(facts.finishReason);
  if (problem === undefined) return facts;
  const isFiltered = unified === "content-filter";
  throw new StreamFailure(isFiltered ? "filtered" : "cut", problem);
}

/** Aborts a request if no part arrives for too long. Uses one timer at a time, regardless of how many parts arrive. */
class StallWatch {
  readonly #services: LoopServices;
  readonly #ended = new AbortController();
  #last: number;

  constructor(stallMs: number, services: LoopServices, request: AbortController) {
    this.#services = services;
    this.#last = services.clock.now();
    this.#run(stallMs, request).catch(() => undefined);
  }

  reset(): void {
    this.#last = this.#services.clock.now();
  }

  end(): void {
    // Passing a reason avoids creating an error whose stack is never read.
    this.#ended.abort("ended");
  }

  async #run(stallMs: number, request: AbortController): Promise<void> {
    for (;;) {
      const left = this.#last + stallMs - this.#services.clock.now();
      if (left <= 0) break;
      await this.#services.sleep(left, this.#ended.signal);
    }
    const seconds = Math.round(stallMs / 1000);
    request.abort(new StreamFailure("stalled", `The model sent nothing for ${seconds} seconds.`));
  }
}

type Block = Extract<LanguageModelV4Content, { type: "text" | "reasoning" }>;
type OpenBlock = { -readonly [K in keyof Block]: Block[K] };
type Metadata = Block["providerMetadata"];

/** A chunk of the answer to show while it streams. */
interface Delta {
  readonly kind: "text" | "thinking";
  readonly delta: string;
}

/** Assembles an answer from the parts of its stream, in the order in which they started. */
export class PartCollector {
  readonly #content: LanguageModelV4Content[] = [];
  /** Text and thinking blocks that have not ended, by kind and ID. */
  readonly #open = new Map<string, OpenBlock>();
  readonly #response: LanguageModelV4ResponseMetadata = {};
  readonly #toolNames: Pick<ToolNames, "original"> | null;
  readonly #callIds = new Set<string>();
  #facts: ResponseFacts | null = null;
  #bytes = 0;
  /** Bytes of streamed arguments, by call ID. */
  readonly #inputs = new Map<string, number>();

  /** `toolNames` maps tool names in calls back to their original names. */
  constructor(toolNames: Pick<ToolNames, "original"> | null = null) {
    this.#toolNames = toolNames;
  }

  /**
   * Adds a part and returns the chunk to show, or `null` if there is none. Throws `AnswerTooLong` when the answer
   * exceeds its limit.
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
        this.#content.push({
          ...part,
          toolCallId: this.#uniqueCallId(part.toolCallId),
          toolName: this.#toolNames?.original(part.toolName) ?? part.toolName,
        });
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

  /** `null` until the stream has finished. */
  get facts(): ResponseFacts | null {
    return this.#facts;
  }

  /** The text received so far. */
  get texts(): readonly string[] {
    return this.#content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  }

  /** Some models repeat an ID within an answer. A result names its call by its ID, so each call needs its own. */
  #uniqueCallId(given: string): string {
    let id = given;
    for (let count = 2; this.#callIds.has(id); count++) id = `${given}_${count}`;
    this.#callIds.add(id);
    return id;
  }

  #count(part: LanguageModelV4StreamPart): void {
    this.#bytes += sizeOf(part);
    if (part.type === "tool-input-delta") {
      this.#inputs.set(part.id, (this.#inputs.get(part.id) ?? 0) + sizeOf(part));
    } else if (part.type === "tool-call") {
      // The complete arguments repeat the streamed pieces, which must not be counted twice.
      this.#bytes -= this.#inputs.get(part.toolCallId) ?? 0;
      this.#inputs.delete(part.toolCallId);
    }
    if (this.#bytes > maxAnswerBytes) throw new AnswerTooLong("answer", maxAnswerBytes);
  }

  #begin(type: Block["type"], id: string, metadata: Metadata): OpenBlock {
    const block: OpenBlock = {
      type,
      text: "",
      ...(metadata === undefined ? {} : { providerMetadata: metadata }),
    };
    this.#content.push(block as Block);
    this.#open.set(`${type} ${id}`, block);
    return block;
  }

  /** A delta that arrives without a start opens the block. */
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

/** Returns the number of bytes that a part adds to an answer. */
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

/** Whether parts of this kind are neither content nor data to send back to the provider. */
function isBookkeeping(kind: string): boolean {
  return kind === "anthropic.message_start";
}

function kindOf(type: string): Block["type"] {
  return type.startsWith("text-") ? "text" : "reasoning";
}

/** Signatures arrive with a later delta or at the end. */
function addMetadata(block: OpenBlock, metadata: Metadata): void {
  const both = mergeMetadata(block.providerMetadata, metadata);
  if (both !== undefined) block.providerMetadata = both;
}
