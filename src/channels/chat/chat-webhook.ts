import { SkeinError } from "../../core/errors.ts";
import { gatherStream } from "../../core/gather-bytes.ts";
import { maxBodyBytes } from "../webhook-inbound.ts";
import type { WebhookOptions } from "./chat-sdk.ts";
import type { ChatState } from "./chat-state.ts";

interface WebhookPorts {
  readonly state: ChatState;
  report(error: unknown): void;
  ask(request: Request, options: WebhookOptions): Promise<Response>;
}

/**
 * Passes a platform's request to the Chat SDK, whose adapter checks its signature. The response is sent only after
 * everything in the request has been accepted, so that the platform repeats a request whose messages might be lost.
 */
export async function answerWebhook(
  request: Request,
  { state, report, ask }: WebhookPorts,
): Promise<Response> {
  try {
    const given = await withBody(request);
    return await state.holdMarks(async () => {
      const tasks: Promise<unknown>[] = [];
      const response = await ask(given, {
        waitUntil: (task) => {
          task.catch(() => undefined);
          tasks.push(task);
        },
        propagateHandlerErrors: true,
        // Skein recognizes a repeated message by its run. The SDK would recognize it for only a few minutes.
        deduplicate: false,
      });
      // A task can add more tasks.
      for (let index = 0; index < tasks.length; index++) await tasks[index];
      return response;
    });
  } catch (error) {
    report(error);
    const isTooLarge = error instanceof SkeinError && error.code === "body_too_large";
    const text = isTooLarge ? error.message : "The request was not accepted. Send it again.";
    return new Response(text, { status: isTooLarge ? 413 : 503, headers: { "cache-control": "no-store" } });
  }
}

/** Reads the body first, because adapters read it without a limit. */
async function withBody(request: Request): Promise<Request> {
  const { method, headers, url } = request;
  if (method === "GET" || method === "HEAD") return request;
  const body = await gatherStream(request.body, maxBodyBytes);
  if (body === null) throw new SkeinError("body_too_large", { bytes: maxBodyBytes });
  return new Request(url, { method, headers, body: body as Uint8Array<ArrayBuffer> });
}
