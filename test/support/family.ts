import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { SessionRecord } from "../../src/entry-store.ts";
import type { ModelStep } from "../../src/entry-testing.ts";
import type { AgentSpec, Channel, Run, SkeinOptions, Turn } from "../../src/index.ts";
import { defineAgent, defineTool } from "../../src/index.ts";
import type { OpenedSkein } from "./skein.ts";
import { newFolder, withScript } from "./skein.ts";

type Request = LanguageModelV4CallOptions;
type Step = ModelStep | ((request: Request) => ModelStep);
/** The model's replies in each session, selected by words in the session's first message. */
export type Parts = Readonly<
  Record<string, readonly Step[] | ((request: Request, index: number) => ModelStep)>
>;

export interface Family extends OpenedSkein {
  /** The model's requests in a session with this part. */
  asked(part: string): readonly Request[];
  /** Calls a tool for one of main's sessions, by default `main`. */
  call(name: string, args: object, sessionKey?: string): Promise<Readonly<Record<string, unknown>>>;
  /** Creates an empty session. */
  make(sessionKey: string): Promise<SessionRecord>;
  at(sessionKey: string): Promise<SessionRecord>;
  linesAt(sessionKey: string): Promise<string[]>;
  runsAt(sessionKey: string): Promise<readonly Run[]>;
  /** Resolves when nothing under a run's root is open. */
  settled(runId: string): Promise<void>;
}

export interface FamilyOptions extends SkeinOptions {
  readonly agent?: Partial<AgentSpec>;
  readonly others?: readonly AgentSpec[];
  /** Configuration settings. */
  readonly settings?: object;
}

/** A Skein instance in which every session has its own part in one script. */
export async function withParts(parts: Parts, options: FamilyOptions = {}): Promise<Family> {
  const { agent = {}, others = [], settings, ...rest } = options;
  const asked = new Map<string, Request[]>();
  const play = (request: Request): ModelStep => {
    const part = Object.keys(parts).find((name) => firstWords(request).includes(name)) ?? "";
    const requests = asked.get(part) ?? [];
    asked.set(part, requests);
    const index = requests.push(request) - 1;
    const script = parts[part] ?? [];
    const step = typeof script === "function" ? script(request, index) : script[index];
    if (step === undefined) return { error: { status: 400, message: `"${part}" has no step ${index + 1}` } };
    return typeof step === "function" ? step(request) : step;
  };
  const agents = [{ id: "main", visibility: "agent" as const, ...agent }, ...others].map((spec) =>
    defineAgent({ model: "rehearsal/script", ...spec }),
  );
  const config = settings === undefined ? {} : { config: configFile(settings) };
  const opened = await withScript(play, {}, { agents, ...config, ...rest });
  return { ...opened, asked: (part) => asked.get(part) ?? [], ...reading(opened) };
}

function reading(opened: OpenedSkein) {
  const { skein, lines } = opened;
  const at = async (sessionKey: string) => {
    const found = await skein.session({ sessionKey }).record();
    if (found === null) throw new Error(`there is no ${sessionKey}`);
    return found;
  };
  const call = async (name: string, args: object, sessionKey = "agent:main:main") =>
    (await skein.callTool(name, args, { sessionKey })).result;
  return {
    at,
    call,
    make: async (sessionKey: string) => {
      const agentId = sessionKey.split(":")[1] ?? "main";
      const known = await skein.session({ sessionKey }).record();
      return known ?? skein.store.sessions.create({ agentId }, { key: sessionKey, cwd: tmpdir() });
    },
    linesAt: async (sessionKey: string) => lines((await at(sessionKey)).sessionId),
    runsAt: async (sessionKey: string) =>
      (await skein.runs.list({ sessionUid: (await at(sessionKey)).uid, limit: 100 })).toReversed(),
    settled: async (runId: string) => {
      const run = await skein.runs.get(runId);
      if (run === null) throw new Error(`there is no run ${runId}`);
      await skein.settled(run.root.rootId);
    },
  };
}

export function configFile(settings: object): string {
  const file = join(newFolder(), "skein.json");
  writeFileSync(file, JSON.stringify(settings));
  return file;
}

/** A channel that records its deliveries. */
export function desk(id = "desk", openThread?: Channel["openThread"]) {
  const told: { readonly text: string; readonly target: object }[] = [];
  const channel: Channel = {
    id,
    deliver: async ({ text }, target) => {
      told.push({ text, target });
      return {};
    },
    ...(openThread === undefined ? {} : { openThread }),
  };
  return { channel, told };
}

export function call(name: string, args: object = {}): ModelStep {
  return { calls: [{ name, arguments: args as never }] };
}

/** Returns one message with a call for each argument. */
export function calls(...each: readonly (readonly [name: string, args: object])[]): ModelStep {
  return { calls: each.map(([name, args]) => ({ name, arguments: args as never })) };
}

/** Returns the prompt with one text per part and its role, oldest first. */
export function words(request: Request | undefined): string[] {
  return (request?.prompt ?? []).flatMap((message) =>
    typeof message.content === "string"
      ? [`${message.role}: ${message.content}`]
      : message.content.flatMap((part) => {
          if (part.type === "text") return [`${message.role}: ${part.text}`];
          return part.type === "tool-result" ? [`result: ${JSON.stringify(part.output)}`] : [];
        }),
  );
}

/** Returns everything that the model received after its own last message. */
export function lastUser(request: Request | undefined): string {
  const prompt = request?.prompt ?? [];
  const from = prompt.findLastIndex(({ role }) => role === "assistant" || role === "tool") + 1;
  return prompt
    .slice(from)
    .flatMap((message) => (message.role === "user" ? message.content : []))
    .flatMap((part) => (part.type === "text" ? [part.text] : []))
    .join("\n");
}

/** A turn that another process ends, so its rejection is ignored. */
export function begun(turn: Turn): Turn {
  turn.result.catch(() => undefined);
  return turn;
}

export function system(request: Request | undefined): string {
  const [first] = request?.prompt ?? [];
  return first?.role === "system" ? first.content : "";
}

/** The number of sessions whose end was reported to the model. */
export function announced(lines: readonly string[]): number {
  const heads = /^(?:user: )?A session that you spawned has ended: /gm;
  return lines.reduce((sum, line) => sum + (line.match(heads)?.length ?? 0), 0);
}

/** A tool that waits until it is released. Later calls wait too. */
export function gate(name = "gate") {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const tool = defineTool({
    name,
    description: "Waits.",
    replay: "safe",
    execute: async (_, { signal }) => {
      await Promise.race([
        opened,
        new Promise((_resolve, reject) => signal.addEventListener("abort", reject)),
      ]);
      return "open";
    },
  });
  return { tool, open: () => open() };
}

/** Returns the results of the calls in the last message, as JSON. */
export function results(request: Request | undefined): Record<string, unknown>[] {
  const last = (request?.prompt ?? []).findLast(({ role }) => role === "tool");
  if (last?.role !== "tool") return [];
  return last.content.flatMap((part) => {
    if (part.type !== "tool-result") return [];
    const { output } = part;
    // For a provider without failed results, the failure is a prefix of the text.
    if (output.type === "text" || output.type === "error-text")
      return [output.value.includes("{") ? JSON.parse(output.value.slice(output.value.indexOf("{"))) : {}];
    throw new Error(`a result of the type ${output.type}`);
  });
}

function firstWords(request: Request): string {
  return words(request).find((line) => line.startsWith("user: ")) ?? "";
}
