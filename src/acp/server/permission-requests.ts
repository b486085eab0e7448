import type {
  RequestPermissionRequest,
  SessionMode,
  SessionModeState,
  ToolKind,
} from "@agentclientprotocol/sdk/unstable";
import { SkeinError } from "../../core/errors.ts";
import { isAcpKey } from "../../core/keys.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { EditorSession } from "./context.ts";
import type { ToolCalls } from "./tool-calls.ts";
import { maxTitleChars, toolKind, toolTitle } from "./tool-calls.ts";

export type ModeId = "ask" | "allow" | "deny";

const modes: readonly (SessionMode & { readonly id: ModeId })[] = [
  { id: "ask", name: "Ask", description: "Ask here before running tools that need approval." },
  { id: "allow", name: "Allow", description: "Approve tools that need approval immediately." },
  { id: "deny", name: "Deny", description: "Deny tools that need approval immediately." },
];

export function modeOf(id: string): ModeId {
  const found = modes.find((mode) => mode.id === id);
  if (found !== undefined) return found.id;
  const advice = `Use one of ${modes.map((mode) => mode.id).join(", ")}`;
  throw new SkeinError("invalid_arguments", { problem: `There is no mode "${id}"`, advice });
}

/** A tool call that is waiting for approval. */
export interface Approval {
  readonly approvalId: string;
  readonly runId?: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The spawned session that requests approval. Absent for the open session itself. */
  readonly spawned?: SpawnedSession;
}

export interface SpawnedSession {
  readonly key: string;
  readonly label?: string;
}

interface OpenRequest {
  readonly withdrawal: AbortController;
  readonly runId: string | null;
  readonly origin: "own" | "spawned";
}

export interface PermissionPorts extends EditorSession {
  resolve(approvalId: string, answer: "approved" | "denied"): Promise<void>;
  /** Called when a request is opened. */
  onOpen(): void;
  report(error: unknown): void;
}

const options: RequestPermissionRequest["options"] = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "reject", name: "Reject", kind: "reject_once" },
];
const answerByMode = { allow: "approved", deny: "denied" } as const;

/**
 * Sends a session's pending approvals to the editor as permission requests. The first answer is final, no matter where
 * it comes from.
 */
export class PermissionRequests {
  mode: ModeId = "ask";
  readonly #ports: PermissionPorts;
  readonly #tools: ToolCalls;
  readonly #open = new Map<string, OpenRequest>();
  #isClosed = false;

  constructor(ports: PermissionPorts, tools: ToolCalls) {
    this.#ports = ports;
    this.#tools = tools;
  }

  get modeState(): SessionModeState {
    return { currentModeId: this.mode, availableModes: modes.map((mode) => ({ ...mode })) };
  }

  /** Asks once per approval, without waiting for the answer. */
  open(approval: Approval): void {
    // Once the editor has closed the session, its mode no longer approves or denies anything.
    if (this.#isClosed || this.#open.has(approval.approvalId)) return;
    const withdrawal = new AbortController();
    const origin = approval.spawned === undefined ? "own" : "spawned";
    this.#open.set(approval.approvalId, { withdrawal, runId: approval.runId ?? null, origin });
    this.#ports.onOpen();
    void this.#settle(approval, withdrawal.signal).catch((error: unknown) => this.#ports.report(error));
  }

  /** Withdraws a request that has been answered elsewhere or has expired. */
  withdraw(approvalId: string, answer?: "approved" | "denied" | "expired"): void {
    this.#open.get(approvalId)?.withdrawal.abort(answer);
    this.#open.delete(approvalId);
  }

  /** Withdraws all requests from this origin that are no longer pending. */
  withdrawOthers(pendingIds: readonly string[], origin: OpenRequest["origin"]): void {
    for (const [id, request] of [...this.#open])
      if (request.origin === origin && !pendingIds.includes(id)) this.withdraw(id);
  }

  get openIds(): readonly string[] {
    return [...this.#open.keys()];
  }

  hasOpenFor(runId: string | undefined): boolean {
    return runId !== undefined && [...this.#open.values()].some((each) => each.runId === runId);
  }

  /** Withdraws these runs' requests. The approvals stay pending for other clients. */
  withdrawRuns(runIds: readonly string[]): void {
    for (const [id, { runId }] of [...this.#open])
      if (runId !== null && runIds.includes(runId)) this.withdraw(id);
  }

  close(): void {
    this.#isClosed = true;
    for (const id of this.openIds) this.withdraw(id);
  }

  async #settle(approval: Approval, signal: AbortSignal): Promise<void> {
    const answer = this.mode === "ask" ? await this.#ask(approval, signal) : answerByMode[this.mode];
    if (!signal.aborted) await this.#ports.resolve(approval.approvalId, answer);
  }

  /** Shows a spawned session's call only while its approval is pending, because it is not part of this session. */
  async #ask(approval: Approval, signal: AbortSignal): Promise<"approved" | "denied"> {
    const { spawned } = approval;
    if (spawned === undefined) {
      const toolCallId = this.#tools.editorId(approval.toolCallId);
      const title = toolTitle(approval.toolName, approval.arguments);
      return this.#request({ toolCallId, title, ...callFields(approval) }, signal);
    }
    const toolCall = spawnedCall(approval, spawned);
    const { toolCallId } = toolCall;
    await this.#ports.sendUpdate({ sessionUpdate: "tool_call", ...toolCall });
    const answer = signal.aborted ? "denied" : await this.#request(toolCall, signal);
    const final = signal.aborted ? signal.reason : answer;
    const status = final === "approved" ? "completed" : "failed";
    if (!this.#isClosed)
      await this.#ports.sendUpdate({ sessionUpdate: "tool_call_update", toolCallId, status });
    return answer;
  }

  /** If the editor cancels the request or fails, the call is denied. */
  async #request(toolCall: PendingCall, signal: AbortSignal): Promise<"approved" | "denied"> {
    try {
      const { outcome } = await this.#ports.requestPermission({ toolCall, options }, signal);
      return outcome.outcome === "selected" && outcome.optionId === "allow" ? "approved" : "denied";
    } catch (error) {
      if (!signal.aborted) this.#ports.report(error);
      return "denied";
    }
  }
}

interface PendingCall {
  readonly toolCallId: string;
  readonly title: string;
  readonly name: string;
  readonly kind: ToolKind;
  readonly status: "pending";
  readonly rawInput: Approval["arguments"];
}

function callFields({ toolName, arguments: args }: Approval) {
  return { name: toolName, kind: toolKind(toolName), status: "pending" as const, rawInput: args };
}

/**
 * Returns a spawned session's call. Its title starts with the session's name. Its ID contains the approval ID, because
 * call IDs are not unique, either within a session or across sessions.
 */
export function spawnedCall(approval: Approval, { key, label }: SpawnedSession): PendingCall {
  const { toolName, arguments: args, approvalId } = approval;
  const { title } = args;
  // Other agents put the question in the title and use the call's kind as the tool name.
  const hasTitle = isAcpKey(key) && typeof title === "string" && title.trim() !== "";
  const question = hasTitle ? toolTitle(title, {}) : toolTitle(toolName, args);
  const name = escapeToLine(cutText(label ?? key, maxTitleChars));
  return { toolCallId: `${key}/${approvalId}`, title: `${name}: ${question}`, ...callFields(approval) };
}
