import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { HandledMethod } from "../../gateway/methods/dispatch.ts";
import type { Calls, EventFilter, EventStream } from "../../protocol/methods/calls.ts";
import type { MethodName } from "../../protocol/methods/method-table.ts";

/** What an ACP agent stands on: methods and events, of a gateway or of this process, it makes no difference. */
export interface AcpParts {
  readonly version: string;
  readonly calls: Calls<HandledMethod> & { events(filter?: EventFilter): EventStream };
  /** On whose behalf, as params of methods have it. */
  readonly whose: { readonly userId?: string; readonly agentId?: string };
  /** Whether whoever we speak for may call a method. */
  may(method: MethodName): boolean;
  /** What an editor offers behind a slash. */
  readonly commands: readonly EditorCommand[];
  /** Where we are: named as the folder of sessions whose own is not told to us. */
  readonly cwd: string;
  /** How often is looked for what other processes on the folder did and no event here tells of; left out: all is told. */
  readonly lookMs?: number;
  /** Told of what nobody asked for and went wrong. */
  report(error: unknown): void;
}

export interface EditorCommand {
  readonly name: string;
  readonly about: string;
  /** What may be typed behind it; `null`: nothing. */
  readonly hint: string | null;
  /** Does it to the session of this key, and ends early where it can. What it throws is told to the user like what it says. */
  run(key: string, rest: string, signal: AbortSignal): Promise<string>;
}

/** Tells the editor of something in one session. Never rejects: an editor that is gone needs to hear nothing. */
export type Tell = (update: SessionUpdate) => Promise<void>;
