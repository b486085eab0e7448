import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough, Readable, Writable } from "node:stream";
import type {
  ClientCapabilities,
  ClientContext,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk/unstable";
import { expect } from "vitest";
import { runCli } from "../../src/cli/main.ts";
import { silentTerminal } from "./cli.ts";
import { skeinProgram } from "./programs.ts";

/** An editor connected to `skein acp`, and everything it has received. */
export interface AcpEditor {
  readonly agent: ClientContext;
  /** The updates in order of arrival, with their sessions. */
  readonly updates: (SessionUpdate & { readonly sessionId: string })[];
  readonly asked: RequestPermissionRequest[];
  /** The editor's answer from now on. A promise that never settles means no answer. */
  permit: (request: RequestPermissionRequest, signal: AbortSignal) => Promise<RequestPermissionResponse>;
  /** Returns all received texts of one kind, joined. */
  texts(kind?: "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk"): string;
  of<K extends SessionUpdate["sessionUpdate"]>(kind: K): Extract<SessionUpdate, { sessionUpdate: K }>[];
  until(pattern: RegExp): Promise<void>;
  prompt(sessionId: string, text: string): Promise<{ readonly stopReason: string }>;
  create(cwd: string): Promise<string>;
  close(): void;
}

export const allowed: RequestPermissionResponse = { outcome: { outcome: "selected", optionId: "allow" } };
export const rejected: RequestPermissionResponse = { outcome: { outcome: "selected", optionId: "reject" } };
export const cancelled: RequestPermissionResponse = { outcome: { outcome: "cancelled" } };

export async function acpEditor(
  input: Readable,
  output: Writable,
  clientCapabilities: ClientCapabilities = {},
): Promise<AcpEditor> {
  const updates: AcpEditor["updates"] = [];
  const asked: RequestPermissionRequest[] = [];
  const app = client({ name: "test" })
    .onNotification(methods.client.session.update, ({ params: { sessionId, update } }) => {
      updates.push({ ...update, sessionId });
    })
    .onRequest(methods.client.session.requestPermission, ({ params, signal }) => {
      asked.push(params);
      return editor.permit(params, signal);
    });
  const stream = ndJsonStream(
    Writable.toWeb(output) as WritableStream<Uint8Array>,
    Readable.toWeb(input) as ReadableStream<Uint8Array>,
  );
  const connection = app.connect(stream);
  const { agent } = connection;
  const editor: AcpEditor = {
    agent,
    updates,
    asked,
    permit: async () => rejected,
    texts: (kind = "agent_message_chunk") =>
      updates
        .map((each) => (each.sessionUpdate === kind && "text" in each.content ? each.content.text : ""))
        .join(""),
    of: <K extends SessionUpdate["sessionUpdate"]>(kind: K) =>
      updates.filter((each) => each.sessionUpdate === kind) as unknown as Extract<
        SessionUpdate,
        { sessionUpdate: K }
      >[],
    until: (pattern) => expect.poll(() => JSON.stringify({ updates, asked })).toMatch(pattern),
    prompt: (sessionId, text) =>
      agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] }),
    create: async (cwd) =>
      (await agent.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId,
    close: () => connection.close(),
  };
  await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientInfo: { name: "test", version: "0" },
    clientCapabilities,
  });
  return editor;
}

export interface OpenAcp {
  readonly editor: AcpEditor;
  /** The command's human-readable output. */
  notes(): string;
  /** Disconnects the editor. Resolves when the command has exited. */
  leave(): Promise<unknown>;
}

export interface AcpProcess extends OpenAcp {
  readonly child: ChildProcess;
}

const writeStdout = process.stdout.write;

/** Runs `skein acp` in this process, for protocol tests. */
export async function acpInside(
  cwd: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<OpenAcp> {
  const input = new PassThrough();
  const output = new PassThrough();
  let notes = "";
  const ended = runCli(["acp", ...args], "0.0.0", {
    ...silentTerminal(cwd),
    env: { PATH: process.env.PATH, HOME: cwd, ...env },
    home: cwd,
    input: () => ({ stream: input, typed: false }),
    out: (text) => void output.write(text),
    err: (text) => {
      notes += text;
    },
  });
  void ended.finally(() => output.end());
  return {
    editor: await acpEditor(output, input),
    notes: () => notes,
    leave: async () => {
      input.end();
      const exit = await ended;
      // Commands that run at the same time each replace the output function and can end in any order.
      process.stdout.write = writeStdout;
      return exit;
    },
  };
}

/** Starts the real `skein acp`, as an editor would. */
export async function acpProcess(
  cwd: string,
  args: readonly string[],
  env: Record<string, string> = {},
  capabilities: ClientCapabilities = {},
): Promise<AcpProcess> {
  const all: NodeJS.ProcessEnv = { PATH: process.env.PATH, HOME: cwd, NO_COLOR: "1", ...env };
  const child = spawn(process.execPath, [skeinProgram, "acp", ...args], { cwd, env: all, stdio: "pipe" });
  const closed = once(child, "close");
  let notes = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    notes += text;
  });
  const editor = await acpEditor(child.stdout, child.stdin, capabilities);
  return {
    editor,
    child,
    notes: () => notes,
    leave: async () => {
      child.stdin.end();
      const [code, signal] = await closed;
      return code ?? signal;
    },
  };
}
