import type { LanguageModel, ModelMessage, UserModelMessage } from "ai";
import { describeFailures, separateTexts, toModelMessages } from "../../agents/models/to-model-messages.ts";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { RuntimeContext } from "../../sessions/runtime-context.ts";
import type { SessionHandle } from "../../sessions/session-handle.ts";
import type { Skein } from "../../sessions/skein.ts";
import type { Xray, XrayOptions } from "../../sessions/xray.ts";
import { sessionTools } from "../../tools/session-tools.ts";
import type { ForeignTool } from "../../tools/tool-adapters.ts";
import type { ModelRef } from "../../transcript/model-table.ts";
import { parseModel } from "../../transcript/model-table.ts";
import { awaitsAnswer } from "./entries.ts";

/** Options for {@link openLoop}. */
export interface LoopOptions extends Pick<XrayOptions, "contextWindow" | "historyLimit" | "overrides"> {
  /** The model that the loop calls. It determines which messages are valid. */
  readonly model: LanguageModel;
}

/** Options for {@link Loop.start}. */
export interface StartOptions {
  /** Aborts the loop, in addition to the loop's own reasons. */
  readonly signal?: AbortSignal;
  /** The ID under which `readUIMessages` shows the answer. Defaults to the ID of its first entry. */
  readonly messageId?: string;
}

type FinishedStep = Parameters<SessionHandle["onStepFinish"]>[0];

/** Settings for `generateText`, `streamText`, `agent.generate` or `agent.stream`. */
export interface LoopCall {
  /** The session's messages, adapted to the rules of the model's provider. */
  readonly messages: ModelMessage[];
  /** Records a step. */
  readonly onStepEnd: (step: FinishedStep) => Promise<void>;
  /** Aborted when a step could not be recorded, because later steps would be lost too. */
  readonly abortSignal: AbortSignal;
}

/**
 * A loop that your program runs with the AI SDK. Its messages are a session. Create it with `openLoop`.
 *
 * @example
 * ```ts
 * import type { Loop } from "skein/ai-sdk";
 * const continueAfterCrash = async (loop: Loop) => ((await loop.isUnfinished()) ? loop.start() : null);
 * ```
 */
export class Loop {
  readonly session: SessionHandle;
  /** The session tools that the session is allowed to call, in the AI SDK's format. */
  readonly tools: Readonly<Record<string, ForeignTool>>;
  readonly #options: LoopOptions;
  #failure: unknown = null;

  constructor(session: SessionHandle, tools: Loop["tools"], options: LoopOptions) {
    this.session = session;
    this.tools = tools;
    this.#options = options;
  }

  /**
   * Starts a turn: appends the input, and returns the settings for the call to the AI SDK. Without input, continues a
   * turn that a crash or an error has left unfinished; its finished steps are among the messages. Throws `conflict` if
   * there is nothing to continue, or if the session is busy.
   */
  async start(input?: string | UserModelMessage, options: StartOptions = {}): Promise<LoopCall> {
    const { session } = this;
    this.#failure = null;
    if (input !== undefined) {
      const message = typeof input === "string" ? { role: "user" as const, content: input } : input;
      const { refused } = await session.append([message]);
      if (refused.length > 0) throw notRecorded("A message", session.key, refused);
    } else {
      if (!(await this.isUnfinished())) throw nothingToContinue(session.key);
      await session.startTurn();
    }
    const failed = new AbortController();
    const { signal, messageId } = options;
    return {
      messages: await this.messages(),
      onStepEnd: (step) => this.#record(step, messageId, failed),
      abortSignal: signal === undefined ? failed.signal : AbortSignal.any([failed.signal, signal]),
    };
  }

  /** Returns the session's messages, adapted to the rules of the model's provider. */
  async messages(): Promise<ModelMessage[]> {
    const { request } = await this.xray();
    const prompt = toModelMessages(request.messages, present({ api: request.api, system: request.system }));
    return describeFailures(separateTexts(prompt, request.api), request);
  }

  /** Shows what the model would be sent, and every change made for its provider. */
  async xray(): Promise<Xray> {
    const { model, ...options } = this.#options;
    return this.session.xray(modelRefOf(model), options);
  }

  /** Whether the last turn has no answer yet: its process died, its model failed, or it reached its step limit. */
  async isUnfinished(): Promise<boolean> {
    if ((await this.session.record()) === null) return false;
    const { entries } = await this.session.entries({ along: "branch", limit: 100 });
    return awaitsAnswer(entries);
  }

  /**
   * Ends the turn, so that waiting runs can start. Always call it after the loop has stopped. Rejects if a step could
   * not be recorded.
   */
  async end(): Promise<void> {
    await this.session.endTurn();
    if (this.#failure !== null) throw this.#failure;
  }

  async #record(step: FinishedStep, messageId: string | undefined, failed: AbortController): Promise<void> {
    // The AI SDK calls the next step even if this callback rejects.
    if (this.#failure !== null) return;
    const { response, model, usage } = step;
    const messages = response.messages.map((message) =>
      messageId === undefined ? message : withMessageId(message as ModelMessage, messageId),
    );
    const origin = present({ provider: model?.provider, model: model?.modelId ?? response.modelId, usage });
    try {
      const { refused } = await this.session.append(messages, origin);
      if (refused.length > 0) throw notRecorded("A step", this.session.key, refused);
    } catch (error) {
      this.#failure = error;
      failed.abort(error);
      throw error;
    }
  }
}

/**
 * Opens a loop on a session, which is created if it does not exist.
 *
 * @example
 * ```ts
 * import { generateText, isStepCount } from "ai";
 * import { createSkein } from "skein";
 * import { openLoop } from "skein/ai-sdk";
 * import { rehearsalModel } from "skein/testing";
 * const skein = await createSkein({ dir: ".skein" });
 * const model = rehearsalModel();
 * const loop = await openLoop(skein, { userId: "ann", sessionId: "trip" }, { model });
 * const call = await loop.start("list the sessions");
 * await generateText({ model, tools: loop.tools, stopWhen: isStepCount(20), ...call });
 * await loop.end();
 * ```
 */
export async function openLoop(skein: Skein, session: RuntimeContext, options: LoopOptions): Promise<Loop> {
  return new Loop(skein.session(session), await sessionTools(skein, session), options);
}

/** Adds the ID to every message of an answer, so that its entries can later be recognized as one answer. */
function withMessageId(message: ModelMessage, messageId: string): ModelMessage {
  const { providerOptions } = message;
  return {
    ...message,
    providerOptions: { ...providerOptions, skein: { ...providerOptions?.skein, messageId } },
  };
}

/**
 * Returns the model's provider and wire format. A model of the AI gateway is identified by its provider, as in
 * `openai/gpt-5`.
 */
export function modelRefOf(model: LanguageModel): ModelRef {
  if (typeof model === "string") return parseModel(model);
  const { provider, modelId } = model;
  if (provider === "gateway") return parseModel(modelId);
  const [name = provider, api] = provider.split(".");
  return {
    provider: name,
    model: modelId,
    ...present({ api: name === "openai" ? openaiApis[api ?? ""] : undefined }),
  };
}

const openaiApis: Readonly<Record<string, string>> = {
  responses: "openai-responses",
  chat: "openai-completions",
};

function nothingToContinue(key: string): SkeinError {
  const problem = `The session ${key} has no unfinished turn`;
  return new SkeinError("conflict", { problem, advice: "Pass the user's next message to start" });
}

function notRecorded(what: string, key: string, refused: readonly string[]): SkeinError {
  const problem = `${what} in session ${key} was not recorded: ${refused.join("; ")}`;
  return new SkeinError("conflict", { problem, advice: "Start the turn again" });
}
