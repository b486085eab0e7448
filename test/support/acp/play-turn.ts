import { spawn } from "node:child_process";
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type {
  AgentContext,
  PermissionOption,
  PromptRequest,
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionUpdate,
  StopReason,
  Usage,
} from "@agentclientprotocol/sdk/unstable";
import { methods, RequestError } from "@agentclientprotocol/sdk/unstable";
import type { KeptSessions } from "./kept-sessions.ts";
import type { AgentScript, Step } from "./script.ts";

interface Stage {
  readonly script: AgentScript;
  readonly sessions: KeptSessions;
  readonly client: AgentContext;
  readonly params: PromptRequest;
  /** Resolves when the client cancels. */
  readonly cancelled: Promise<void>;
}

const usualOptions: readonly PermissionOption[] = [
  { optionId: "yes-always", name: "Always", kind: "allow_always" },
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];
const never = new Promise<never>(() => undefined);

/** Plays one prompt to its end. */
export async function playTurn(steps: readonly Step[], stage: Stage): Promise<PromptResponse> {
  const { sessions, params } = stage;
  const text = params.prompt.map((block) => (block.type === "text" ? block.text : `<${block.type}>`));
  sessions.said(params.sessionId, "user", text.join("\n"));
  return new TurnPlayer(stage, text).play(steps);
}

class TurnPlayer {
  readonly #stage: Stage;
  readonly #prompt: readonly string[];
  #isCancelled = false;
  #usage: Usage | null = null;
  #stop: StopReason = "end_turn";
  #lastUpdates: readonly SessionUpdate[] = [];
  readonly #late: string[] = [];

  constructor(stage: Stage, prompt: readonly string[]) {
    this.#stage = stage;
    this.#prompt = prompt;
    void stage.cancelled.then(() => {
      this.#isCancelled = true;
    });
  }

  async play(steps: readonly Step[]): Promise<PromptResponse> {
    await this.#steps(steps);
    if (this.#isCancelled) for (const update of this.#lastUpdates) await this.#update(update);
    // The response is written in this tick of the event loop, and these updates follow it.
    if (this.#late.length > 0) setTimeout(() => void this.#say(this.#late.join("")), 20);
    const stopReason = this.#isCancelled ? "cancelled" : this.#stop;
    return { stopReason, ...(this.#usage === null ? {} : { usage: this.#usage }) };
  }

  async #steps(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      if (this.#isCancelled) return;
      await this.#step(step);
    }
  }

  async #step(step: Step): Promise<void> {
    if ("say" in step) await this.#say(step.say);
    else if ("think" in step) await this.#update(chunk("agent_thought_chunk", step.think));
    else if ("update" in step) await this.#update(step.update);
    else if ("echo" in step) await this.#say(this.#prompt.map((text) => `[${text}]`).join(""));
    else if ("tell" in step) await this.#say(this.#told(step.tell));
    else if ("permission" in step) await this.#permission(step);
    else if ("storm" in step) await this.#storm(step.storm);
    else if ("usage" in step) this.#usage = step.usage;
    else if ("stop" in step) this.#stop = step.stop;
    else if ("wait" in step) await (step.wait === "cancel" ? this.#stage.cancelled : never);
    else if ("fail" in step) throw new RequestError(step.fail.code, step.fail.message, step.fail.data);
    else if ("until" in step) while (!existsSync(step.until)) await sleep(5);
    else if ("onCancel" in step) this.#lastUpdates = step.onCancel;
    else if ("later" in step) this.#late.push(step.later);
    else if ("fork" in step) this.#fork();
    else if ("read" in step || "write" in step) await this.#file(step);
    else if ("terminal" in step || "leaveTerminal" in step) await this.#terminal(step);
    else await this.#onPipes(step);
  }

  async #onPipes(
    step: Extract<
      Step,
      { exit: number } | { stderr: string } | { raw: string } | { longLine: number } | { endless: number }
    >,
  ): Promise<void> {
    if ("stderr" in step && step.stderr !== undefined) process.stderr.write(step.stderr);
    if ("exit" in step) process.exit(step.exit);
    if ("raw" in step) process.stdout.write(step.raw);
    if ("longLine" in step) await this.#say("x".repeat(step.longLine));
    if ("endless" in step) process.stdout.write("x".repeat(step.endless));
  }

  async #permission(step: Extract<Step, { permission: unknown }>): Promise<void> {
    const { id, title, kind, rawInput } = step.permission;
    const toolCall = {
      toolCallId: id,
      title,
      ...(kind ? { kind } : {}),
      ...(rawInput === undefined ? {} : { rawInput }),
    };
    const asking = this.#ask(toolCall, step.options ?? usualOptions);
    if (step.isLeft === true) return void asking.catch(() => undefined);
    const outcome = await asking;
    if (outcome.startsWith("yes")) await this.#steps(step.allowed ?? []);
    else if (step.rejected !== undefined) await this.#steps(step.rejected);
    await this.#say(`(${outcome})`);
  }

  async #ask(
    toolCall: { toolCallId: string; title: string },
    options: readonly PermissionOption[],
  ): Promise<string> {
    const { sessionId } = this.#stage.params;
    const request: RequestPermissionRequest = { sessionId, toolCall, options: [...options] };
    const { outcome }: RequestPermissionResponse = await this.#stage.client.request(
      methods.client.session.requestPermission,
      request,
    );
    return outcome.outcome === "selected" ? outcome.optionId : "cancelled";
  }

  async #storm(many: number): Promise<void> {
    const asked = Array.from({ length: many }, (_, at) =>
      this.#ask({ toolCallId: `storm-${at}`, title: `Ask ${at}` }, usualOptions).catch(() => "failed"),
    );
    const counts: Record<string, number> = {};
    for (const outcome of await Promise.all(asked)) counts[outcome] = (counts[outcome] ?? 0) + 1;
    await this.#say(JSON.stringify(counts));
  }

  async #file(step: Extract<Step, { read: string } | { write: string }>): Promise<void> {
    const { client, params } = this.#stage;
    const { sessionId } = params;
    try {
      if ("read" in step) {
        const { content } = await client.request(methods.client.fs.readTextFile, {
          sessionId,
          path: step.read,
        });
        await this.#say(content);
        return;
      }
      const { write: path, content } = step;
      await client.request(methods.client.fs.writeTextFile, { sessionId, path, content });
      await this.#say("(written)");
    } catch (error) {
      await this.#say(`(${messageOf(error)})`);
    }
  }

  async #terminal(step: Extract<Step, { terminal: string } | { leaveTerminal: string }>): Promise<void> {
    const { client, params } = this.#stage;
    const command = "terminal" in step ? step.terminal : step.leaveTerminal;
    const cwd = "terminal" in step ? step.cwd : undefined;
    const creating = client.createTerminal({
      sessionId: params.sessionId,
      command,
      args: [...(step.args ?? [])],
      ...(cwd === undefined ? {} : { cwd }),
    });
    if ("isLeft" in step) return void creating.catch(() => undefined);
    try {
      const terminal = await creating;
      if ("leaveTerminal" in step) return;
      const { exitCode } = await terminal.waitForExit();
      const { output } = await terminal.currentOutput();
      await terminal.release();
      await this.#say(`(${exitCode}: ${output.trim()})`);
    } catch (error) {
      await this.#say(`(${messageOf(error)})`);
    }
  }

  #fork(): void {
    const { pidFile } = this.#stage.script;
    const program = 'process.on("SIGTERM", () => {}); setInterval(() => {}, 60000);';
    const child = spawn(process.execPath, ["-e", program], { stdio: "ignore" });
    if (pidFile !== undefined) appendFileSync(pidFile, `${child.pid}\n`);
  }

  #told(what: Extract<Step, { tell: string }>["tell"]): string {
    const { sessions, params } = this.#stage;
    if (what === "pid") return String(process.pid);
    if (what === "cwd") return process.cwd();
    if (what === "system") return sessions.system(params.sessionId);
    return JSON.stringify(what === "env" ? process.env : sessions.config(params.sessionId));
  }

  async #say(text: string): Promise<void> {
    const { sessions, params } = this.#stage;
    sessions.said(params.sessionId, "agent", text);
    await this.#update(chunk("agent_message_chunk", text));
  }

  async #update(update: SessionUpdate): Promise<void> {
    const { client, params } = this.#stage;
    await client.notify(methods.client.session.update, { sessionId: params.sessionId, update });
  }
}

function chunk(sessionUpdate: "agent_message_chunk" | "agent_thought_chunk", text: string): SessionUpdate {
  return { sessionUpdate, content: { type: "text", text } };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
