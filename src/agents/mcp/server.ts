import type { CallToolResult, ContentBlock, Tool as McpTool } from "@modelcontextprotocol/client";
import type { Clock } from "../../core/clock.ts";
import { unlessAborted } from "../../core/concurrency.ts";
import { escapeToLine, thrownText } from "../../core/text.ts";
import type { ToolOutput } from "../contract.ts";
import type { Connection, ConnectionOptions, McpServerConfig } from "./connection.ts";
import { connect } from "./connection.ts";

const defaultTimeoutMs = 60_000;
const firstWaitMs = 1000;
const longestWaitMs = 60_000;

type McpServerOptions = Omit<ConnectionOptions, "closing"> & { readonly clock: Clock };

/**
 * A configured server. It starts on first use, is shared by all runs, and is restarted on the next use after it has
 * exited. Consecutive failures delay the next start by up to a minute.
 */
export class McpServer {
  readonly #config: McpServerConfig;
  readonly #options: McpServerOptions;
  readonly #closing = new AbortController();
  readonly #closings = new Set<Promise<void>>();
  #opening: Promise<Connection> | null = null;
  #connection: Connection | null = null;
  #failures = 0;
  #retryAt = 0;
  #lastProblem = "";

  constructor(config: McpServerConfig, options: McpServerOptions) {
    this.#config = config;
    this.#options = options;
  }

  get needsApproval(): boolean {
    return this.#config.approval ?? false;
  }

  /** Throws an error with a user-facing message. */
  async tools(): Promise<readonly McpTool[]> {
    const connection = await this.#open();
    try {
      return await connection.tools();
    } catch (error) {
      throw new Error(this.#lost(connection, error));
    }
  }

  /** A server failure becomes a failed result. Only an abort is thrown. */
  async call(
    tool: string,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<ToolOutput> {
    signal.throwIfAborted();
    const timeoutMs = this.#config.timeoutMs ?? defaultTimeoutMs;
    let connection: Connection | null = null;
    try {
      connection = await unlessAborted(this.#open(), signal);
      const result = await connection.call(tool, args, { signal, timeoutMs });
      this.#failures = 0;
      return mcpOutput(result);
    } catch (error) {
      signal.throwIfAborted();
      return failure(
        connection === null ? thrownText(error) : this.#callProblem(connection, error, timeoutMs),
      );
    }
  }

  /** Resolves when all of this server's processes have exited. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("it is closed"));
    const opening = this.#opening;
    if (opening !== null) await opening.catch((error) => thrownText(error));
    if (this.#connection !== null) this.#discard(this.#connection);
    await Promise.all(this.#closings);
  }

  async #open(): Promise<Connection> {
    this.#closing.signal.throwIfAborted();
    if (this.#connection !== null) return this.#connection;
    this.#opening ??= this.#start().finally(() => {
      this.#opening = null;
    });
    return await this.#opening;
  }

  async #start(): Promise<Connection> {
    const wait = this.#retryAt - this.#options.clock.now();
    if (wait > 0) throw new Error(`${this.#lastProblem}; the next attempt is in ${Math.ceil(wait / 1000)} s`);
    let report = "";
    try {
      const options = { ...this.#options, closing: this.#closing.signal };
      const connection = await connect(this.#config, options, (half) => {
        report = half.report();
        this.#discard(half);
      });
      connection.onEnd(() => this.#ended(connection));
      this.#connection = connection;
      return connection;
    } catch (error) {
      const problem = `it could not be started: ${startProblem(error, this.#options.startTimeoutMs)}`;
      this.#failed([problem, ...(report === "" ? [] : [report])].join("; "), false);
      throw new Error(this.#lastProblem);
    }
  }

  /** Keeps the connection after an error that the server sent, and discards it after any other error. */
  #callProblem(connection: Connection, error: unknown, timeoutMs: number): string {
    const { code } = error as { readonly code?: unknown };
    if (code === "REQUEST_TIMEOUT") return `it did not respond within ${timeoutMs / 1000} s`;
    // Only JSON-RPC errors have a numeric code.
    if (typeof code === "number") return thrownText(error);
    return this.#lost(connection, error);
  }

  #lost(connection: Connection, error: unknown): string {
    const report = connection.report();
    const problem = [
      `the connection was lost: ${thrownText(error)}`,
      ...(report === "" ? [] : [report]),
    ].join("; ");
    if (this.#connection === connection) {
      this.#discard(connection);
      this.#failed(problem, true);
    }
    return problem;
  }

  #ended(connection: Connection): void {
    if (this.#connection !== connection) return;
    this.#discard(connection);
    this.#failed(`it exited unexpectedly; ${connection.report()}`, true);
  }

  /** A server that has worked before can restart immediately after its first failure. */
  #failed(problem: string, worked: boolean): void {
    this.#lastProblem = escapeToLine(problem);
    this.#failures++;
    const wait = Math.min(longestWaitMs, firstWaitMs * 2 ** (this.#failures - 1));
    this.#retryAt = worked && this.#failures === 1 ? 0 : this.#options.clock.now() + wait;
  }

  #discard(connection: Connection): void {
    if (this.#connection === connection) this.#connection = null;
    const closing: Promise<void> = connection
      .close()
      .catch((error) => void thrownText(error))
      .finally(() => this.#closings.delete(closing));
    this.#closings.add(closing);
  }
}

function startProblem(error: unknown, startTimeoutMs: number): string {
  const isTimeout = (error as { readonly code?: unknown }).code === "REQUEST_TIMEOUT";
  return isTimeout || (error instanceof Error && error.name === "TimeoutError")
    ? `it did not respond within ${startTimeoutMs / 1000} s`
    : thrownText(error);
}

function failure(problem: string): ToolOutput {
  return { content: [{ type: "text", text: `The tool's server failed: ${problem}.` }], isError: true };
}

type Block = ToolOutput["content"][number];

/** Converts a server tool's result to blocks. Content that a model cannot read becomes text that describes it. */
export function mcpOutput(result: CallToolResult): ToolOutput {
  const { content = [], structuredContent, isError } = result;
  const blocks = content.map(blockOf).filter((block) => block.type === "image" || block.text !== "");
  const instead = structuredContent === undefined ? "(no output)" : JSON.stringify(structuredContent);
  return {
    content: blocks.length > 0 ? blocks : [text(instead)],
    ...(isError === true && { isError: true }),
  };
}

function text(value: string): Block {
  return { type: "text", text: value };
}

function blockOf(block: ContentBlock): Block {
  switch (block.type) {
    case "text":
      return text(block.text);
    case "image":
      return { type: "image", data: block.data, mimeType: block.mimeType };
    case "audio":
      return text(`[audio, ${block.mimeType}, about ${sizeOf(block.data)} bytes, not shown]`);
    case "resource_link":
      return text([`[${block.name}](${block.uri})`, block.description ?? ""].filter(Boolean).join(": "));
    case "resource":
      return resource(block.resource);
    default:
      return text(`[a block of type "${(block as { type: string }).type}", not shown]`);
  }
}

function resource(held: Extract<ContentBlock, { type: "resource" }>["resource"]): Block {
  if ("text" in held) return text(`${held.uri}:\n${held.text}`);
  const mimeType = held.mimeType ?? "unknown type";
  if (mimeType.startsWith("image/")) return { type: "image", data: held.blob, mimeType };
  return text(`[${held.uri}, ${mimeType}, about ${sizeOf(held.blob)} bytes, not shown]`);
}

function sizeOf(base64: string): number {
  return Math.floor((base64.length * 3) / 4);
}
