import type {
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";
import { isRateLimited, realTiming, retryWhileTransient } from "../../client/retry.ts";
import type { HandledMethod } from "../../gateway/methods/dispatch.ts";
import type { Calls, EventFilter, EventStream } from "../../protocol/calls.ts";
import type { MethodName } from "../../protocol/method-table.ts";

/** The methods and events that an ACP server uses. They come from a gateway or from this process. */
export interface ServerContext {
  readonly version: string;
  readonly calls: Calls<HandledMethod> & { events(filter?: EventFilter): EventStream };
  /** The user and agent that every call is made for. */
  readonly scope: { readonly userId?: string; readonly agentId?: string };
  canCall(method: MethodName): boolean;
  readonly commands: readonly EditorCommand[];
  /** The folder shown for sessions whose own folder the token is not allowed to see. */
  readonly cwd: string;
  /**
   * How often to check for changes that other processes make to the folder. Absent if events report all such changes.
   */
  readonly pollMs?: number;
  /** Reports an error that has no caller to report it to. */
  report(error: unknown): void;
}

/** A slash command offered to the editor. */
export interface EditorCommand {
  readonly name: string;
  readonly about: string;
  /** A hint for the input after the command, or `null` if it takes no input. */
  readonly hint: string | null;
  /** Returns the text to display. Errors are displayed to the user in the same way. */
  run(key: string, input: string, signal: AbortSignal): Promise<string>;
}

/** The editor's side of one session. */
export interface EditorSession {
  /** Never rejects. Updates to a disconnected editor are dropped. */
  sendUpdate(update: SessionUpdate): Promise<void>;
  /** Asks the user. Aborting the signal withdraws the question. */
  requestPermission(
    request: Omit<RequestPermissionRequest, "sessionId">,
    signal: AbortSignal,
  ): Promise<RequestPermissionResponse>;
}

/**
 * Retries calls that a gateway rejected because of its rate limit. A rejected call has no other effect, so retrying
 * is safe.
 */
export function retryRateLimited<C extends Pick<ServerContext, "calls">>(context: C): C {
  const { calls } = context;
  const call: ServerContext["calls"]["call"] = (method, params, options) =>
    retryWhileTransient(
      realTiming,
      options?.signal ?? null,
      () => calls.call(method, params, options),
      isRateLimited,
    );
  return { ...context, calls: { call, events: (filter) => calls.events(filter) } };
}
