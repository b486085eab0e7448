import type { LanguageModel, UIMessageChunk } from "ai";
import { KeyedMutex } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";
import type { RuntimeContext } from "../../sessions/runtime-context.ts";
import type { SessionHandle } from "../../sessions/session-handle.ts";
import type { Skein } from "../../sessions/skein.ts";
import type { ForeignTool } from "../../tools/tool-adapters.ts";
import { importPeer } from "../require-peer.ts";
import type { AnswerEnd } from "./answer.ts";
import { Answer } from "./answer.ts";
import {
  invalidRequest,
  noSuchMessage,
  placeRequest,
  readBody,
  readMessageRequest,
  selectBranch,
} from "./chat-requests.ts";
import type { Loop, LoopCall, LoopOptions } from "./loop.ts";
import { modelRefOf, openLoop } from "./loop.ts";
import { claimTurn, isInterrupted, recordEnd } from "./turn-end.ts";
import type { ErrorTextOptions } from "./ui-messages.ts";
import { chunksOf, errorTextFor, readUIMessages } from "./ui-messages.ts";

type Ai = typeof import("ai");

/** Settings for the call that answers a chat, with the model and the session tools. */
export interface ChatCall extends LoopCall {
  readonly model: LanguageModel;
  /** The session tools. Add your own. */
  readonly tools: Readonly<Record<string, ForeignTool>>;
}

/** The part of a `streamText` or `agent.stream` result that the chat reads. */
interface StreamedAnswer {
  /** A stream of `TextStreamPart`s, whose type depends on the tools. */
  readonly stream: ReadableStream<unknown>;
}

/** Options for {@link createChat}. */
export interface ChatOptions extends LoopOptions, ErrorTextOptions {
  /** Returns the session for a chat's ID after authenticating the request, or a response that rejects the request. */
  session(request: Request, chatId: string): RuntimeContext | Response | Promise<RuntimeContext | Response>;
  /** Calls the model: `(call) => streamText({ ...call, stopWhen: isStepCount(20) })`. */
  answer(call: ChatCall, request: Request): StreamedAnswer | PromiseLike<StreamedAnswer>;
}

/** Handlers for the requests of `useChat`, in the form of a Next.js route. */
export interface Chat {
  /** Answers a message. */
  readonly POST: (request: Request) => Promise<Response>;
  /** `…/<chatId>` returns the messages. `…/<chatId>/stream` continues the stream of the current answer. */
  readonly GET: (request: Request) => Promise<Response>;
  /** `…/<chatId>` with `{"entryId": …}` selects a branch and returns its messages. */
  readonly PATCH: (request: Request) => Promise<Response>;
  /** `…/<chatId>/stream` stops the current answer. */
  readonly DELETE: (request: Request) => Promise<Response>;
}

/**
 * Creates the handlers for a chat with `useChat`, whose messages are sessions.
 *
 * @example
 * ```ts
 * import { isStepCount, streamText } from "ai";
 * import { createSkein } from "skein";
 * import { createChat } from "skein/ai-sdk";
 * import { rehearsalModel } from "skein/testing";
 * const skein = await createSkein({ dir: ".skein" });
 * export const { GET, POST, PATCH, DELETE } = createChat(skein, {
 *   model: rehearsalModel(),
 *   session: (_request, chatId) => ({ userId: "ann", sessionId: chatId }),
 *   answer: (call) => streamText({ ...call, stopWhen: isStepCount(20) }),
 * });
 * ```
 */
export function createChat(skein: Skein, options: ChatOptions): Chat {
  const chats = new ChatServer(skein, options);
  const handled = (act: (request: Request) => Promise<Response>) => (request: Request) =>
    act(request).catch(errorResponse);
  return {
    POST: handled((request) => chats.answerMessage(request)),
    GET: handled((request) => chats.get(request)),
    PATCH: handled((request) => chats.select(request)),
    DELETE: handled((request) => chats.stop(request)),
  };
}

class ChatServer {
  readonly #skein: Skein;
  readonly #options: ChatOptions;
  /** The answers that are being written in this process, by the uid of their session. */
  readonly #answers = new Map<string, Answer>();
  readonly #mutex = new KeyedMutex();

  constructor(skein: Skein, options: ChatOptions) {
    this.#skein = skein;
    this.#options = options;
  }

  async answerMessage(request: Request): Promise<Response> {
    const ai = await loadAi();
    const message = await readMessageRequest(request, ai);
    const context = await this.#options.session(request, message.id);
    if (context instanceof Response) return context;
    const loop = await openLoop(this.#skein, context, this.#options);
    return this.#alone(loop.session, async (uid) => {
      const input = await placeRequest(loop.session, message, ai);
      const answer = new Answer(crypto.randomUUID());
      await this.#begin({ request, ai, loop, uid, answer }, input);
      return ai.createUIMessageStreamResponse({ stream: answer.read() });
    });
  }

  async get(request: Request): Promise<Response> {
    const { chatId, isStream } = readPath(request);
    const context = await this.#options.session(request, chatId);
    if (context instanceof Response) return context;
    const session = this.#skein.session(context);
    if (!isStream) return Response.json(await readUIMessages(session, this.#options));
    const ai = await loadAi();
    const record = await session.record();
    const current = this.#answers.get(record?.uid ?? "") ?? null;
    const answer = current ?? (record === null ? null : await this.#continue(request, ai, context));
    return answer === null
      ? new Response(null, { status: 204 })
      : ai.createUIMessageStreamResponse({ stream: answer.read() });
  }

  async select(request: Request): Promise<Response> {
    const { entryId } = await readBody(request);
    const session = await this.#sessionFor(request);
    if (session instanceof Response) return session;
    if ((await session.record()) === null) throw noSuchMessage(String(entryId));
    return this.#alone(session, async () => {
      await selectBranch(session, entryId);
      return Response.json(await readUIMessages(session, this.#options));
    });
  }

  async stop(request: Request): Promise<Response> {
    const session = await this.#sessionFor(request);
    if (session instanceof Response) return session;
    const answer = this.#answers.get((await session.record())?.uid ?? "");
    if (answer === undefined) {
      const advice = "It has ended, or another process is writing it";
      throw new SkeinError("not_found", { what: "Answer in the session", name: session.key, advice });
    }
    answer.stop();
    return new Response(null, { status: 204 });
  }

  async #sessionFor(request: Request): Promise<SessionHandle | Response> {
    const context = await this.#options.session(request, readPath(request).chatId);
    return context instanceof Response ? context : this.#skein.session(context);
  }

  /** Calls `act`. Throws `conflict` if the session is being answered. */
  async #alone(session: SessionHandle, act: (uid: string) => Promise<Response>): Promise<Response> {
    const { uid, key } = await session.open();
    return this.#mutex.run(uid, () => {
      if (!this.#answers.has(uid)) return act(uid);
      const problem = `A message in the session ${key} is being answered`;
      throw new SkeinError("conflict", { problem, advice: "Wait for the answer, or stop it" });
    });
  }

  /** Continues the turn of a process that has died. Returns `null` if there is none. */
  async #continue(request: Request, ai: Ai, context: RuntimeContext): Promise<Answer | null> {
    const loop = await openLoop(this.#skein, context, this.#options);
    const { session } = loop;
    const { uid } = await session.open();
    return this.#mutex.run(uid, async () => {
      const current = this.#answers.get(uid);
      if (current !== undefined) return current;
      if (!(await isInterrupted(session)) || !(await claimTurn(session))) return null;
      const last = (await readUIMessages(session, this.#options)).at(-1);
      const earlier = last?.role === "assistant" ? last : null;
      const answer = new Answer(
        earlier?.id ?? crypto.randomUUID(),
        earlier === null ? [] : chunksOf(earlier),
      );
      await this.#begin({ request, ai, loop, uid, answer }, undefined);
      return answer;
    });
  }

  async #begin(begun: BegunAnswer, input: Parameters<Loop["start"]>[0]): Promise<void> {
    const { request, ai, loop, uid, answer } = begun;
    const { model } = this.#options;
    let failure: unknown = null;
    const onError = (error: unknown) => {
      failure = error;
      return errorTextFor(this.#options, error);
    };
    try {
      const call = await loop.start(input, { signal: answer.signal, messageId: answer.messageId });
      const { stream } = await this.#options.answer({ model, tools: loop.tools, ...call }, request);
      const parts = stream as Parameters<Ai["toUIMessageStream"]>[0]["stream"];
      const chunks = ai.toUIMessageStream({ stream: parts, sendStart: false, onError });
      this.#answers.set(uid, answer);
      // Reads the answer to its end even if no browser reads it.
      const finished = this.#finish(begun, answer.take(chunks), () => failure, onError);
      // Only `errorText` can throw, and by then the answer's streams have been closed.
      finished.catch(() => undefined);
    } catch (error) {
      await loop.session.endTurn();
      throw error;
    }
  }

  async #finish(
    { loop, uid, answer }: BegunAnswer,
    taken: Promise<AnswerEnd>,
    failure: () => unknown,
    onError: (error: unknown) => string,
  ): Promise<void> {
    let error: UIMessageChunk | undefined;
    try {
      const about = { model: modelRefOf(this.#options.model), messageId: answer.messageId };
      await taken
        .then((end) => {
          const thrown = failure();
          return recordEnd(loop.session, end, {
            ...about,
            ...(thrown === null ? {} : { error: thrownText(thrown) }),
          });
        })
        .finally(() => loop.end());
    } catch (thrown) {
      error = { type: "error", errorText: onError(thrown) };
    } finally {
      this.#answers.delete(uid);
      answer.close(error);
    }
  }
}

interface BegunAnswer {
  readonly request: Request;
  readonly ai: Ai;
  readonly loop: Loop;
  readonly uid: string;
  readonly answer: Answer;
}

function readPath(request: Request): { readonly chatId: string; readonly isStream: boolean } {
  const segments = new URL(request.url).pathname.split("/").filter((segment) => segment !== "");
  const isStream = segments.at(-1) === "stream";
  const chatId = decoded(segments.at(isStream ? -2 : -1) ?? "");
  if (chatId === "") throw invalidRequest("the path must end with the ID of the chat");
  return { chatId, isStream };
}

/** Decodes a part of a URL. Returns an empty string if the part is malformed. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function errorResponse(error: unknown): Response {
  if (!(error instanceof SkeinError)) throw error;
  const { code, message, status } = error;
  return Response.json({ error: { code, message } }, { status });
}

function loadAi(): Promise<Ai> {
  return importPeer("ai-sdk", "ai", ">=7.0.169 <8");
}
