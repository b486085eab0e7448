import type {
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionMode,
} from "@agentclientprotocol/sdk/unstable";
import { SkeinError } from "../../core/errors.ts";
import type { ToolCalls } from "./tool-calls.ts";
import { toolKind, toolTitle } from "./tool-shapes.ts";

export type ModeId = "ask" | "allow" | "deny";

export const modes: readonly (SessionMode & { readonly id: ModeId })[] = [
  { id: "ask", name: "Ask", description: "Tools that need approval are asked about here." },
  { id: "allow", name: "Allow", description: "Tools that need approval are approved at once." },
  { id: "deny", name: "Deny", description: "Tools that need approval are refused at once." },
];

export function modeOf(id: string): ModeId {
  const found = modes.find((mode) => mode.id === id);
  if (found !== undefined) return found.id;
  const advice = `Use one of ${modes.map((mode) => mode.id).join(", ")}`;
  throw new SkeinError("invalid_arguments", { problem: `There is no mode "${id}"`, advice });
}

/** A tool call that waits for somebody's word, as an event or a list tells of it. */
export interface Asked {
  readonly approvalId: string;
  readonly runId?: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export interface PermissionPorts {
  /** Puts it to the user; the signal takes the question back. */
  ask(
    request: Omit<RequestPermissionRequest, "sessionId">,
    signal: AbortSignal,
  ): Promise<RequestPermissionResponse>;
  resolve(approvalId: string, answer: "approved" | "denied"): Promise<void>;
  report(error: unknown): void;
}

const options: RequestPermissionRequest["options"] = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "reject", name: "Reject", kind: "reject_once" },
];

/** What a session's tools are waiting for, each asked once. The first answer stands, wherever it is given. */
export class Permissions {
  mode: ModeId = "ask";
  readonly #ports: PermissionPorts;
  readonly #tools: ToolCalls;
  readonly #open = new Map<string, { readonly asking: AbortController; readonly runId: string | null }>();
  #isClosed = false;

  constructor(ports: PermissionPorts, tools: ToolCalls) {
    this.#ports = ports;
    this.#tools = tools;
  }

  /** Does not wait for the answer. */
  requested(asked: Asked): void {
    // Whoever cannot be asked has not refused, and a mode that nobody sees any more approves nothing.
    if (this.#isClosed || this.#open.has(asked.approvalId)) return;
    const asking = new AbortController();
    this.#open.set(asked.approvalId, { asking, runId: asked.runId ?? null });
    void this.#settle(asked, asking.signal).catch((error: unknown) => this.#ports.report(error));
  }

  /** Somebody else answered, or nobody did in time. */
  resolved(approvalId: string): void {
    this.#open.get(approvalId)?.asking.abort();
    this.#open.delete(approvalId);
  }

  /** These alone are open: the others were answered while nobody listened. */
  stillOpen(approvalIds: readonly string[]): void {
    for (const id of [...this.#open.keys()]) if (!approvalIds.includes(id)) this.resolved(id);
  }

  /** Nobody is asked any more about the tools of these runs; what is open stays so for others. */
  dismiss(runIds: readonly string[]): void {
    for (const [id, { runId }] of [...this.#open])
      if (runId !== null && runIds.includes(runId)) this.resolved(id);
  }

  /** Nobody is asked any more at all. */
  close(): void {
    this.#isClosed = true;
    this.stillOpen([]);
  }

  async #settle(asked: Asked, signal: AbortSignal): Promise<void> {
    const answer = this.mode === "ask" ? await this.#ask(asked, signal) : byMode[this.mode];
    if (signal.aborted) return;
    await this.#ports.resolve(asked.approvalId, answer);
  }

  /** An editor that cancels, or cannot ask, has not allowed it. */
  async #ask(asked: Asked, signal: AbortSignal): Promise<"approved" | "denied"> {
    const { toolCallId, toolName, arguments: args } = asked;
    const toolCall = {
      toolCallId: this.#tools.idOf(toolCallId),
      title: toolTitle(toolName, args),
      name: toolName,
      kind: toolKind(toolName),
      status: "pending" as const,
      rawInput: args,
    };
    try {
      const { outcome } = await this.#ports.ask({ toolCall, options }, signal);
      return outcome.outcome === "selected" && outcome.optionId === "allow" ? "approved" : "denied";
    } catch (error) {
      if (!signal.aborted) this.#ports.report(error);
      return "denied";
    }
  }
}

const byMode = { allow: "approved", deny: "denied" } as const;
