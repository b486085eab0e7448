import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import type {
  SessionConfigOption,
  SessionInfo,
  SessionModeState,
  SystemPrompt,
} from "@agentclientprotocol/sdk/unstable";
import { RequestError } from "@agentclientprotocol/sdk/unstable";
import type { AgentScript, Step } from "./script.ts";

interface KeptSession {
  readonly cwd: string;
  turns: number;
  history: { readonly role: "user" | "agent"; readonly text: string }[];
  /** The option values, keyed by ID. */
  values: Record<string, string | boolean>;
  mode: string | null;
  model: string | null;
  system: string;
}

/** A scripted agent's sessions, stored in a file if the script names one. */
export class KeptSessions {
  readonly #script: AgentScript;
  readonly #byId: Map<string, KeptSession>;

  constructor(script: AgentScript) {
    this.#script = script;
    const { sessionsFile } = script;
    const isThere = sessionsFile !== undefined && existsSync(sessionsFile);
    const kept = isThere ? (JSON.parse(readFileSync(sessionsFile, "utf8")) as [string, KeptSession][]) : [];
    this.#byId = new Map(kept);
  }

  begin(cwd: string): string {
    const id = `scripted-${randomUUID()}`;
    this.#byId.set(id, { cwd, turns: 0, history: [], values: {}, mode: null, model: null, system: "" });
    this.#keep();
    return id;
  }

  history(id: string): KeptSession["history"] {
    return this.#session(id).history;
  }

  said(id: string, role: "user" | "agent", text: string): void {
    this.#session(id).history.push({ role, text });
    this.#keep();
  }

  nextTurn(id: string): readonly Step[] {
    const session = this.#session(id);
    const turns = this.#script.turns ?? [[{ say: "Done." }]];
    const steps = turns[Math.min(session.turns, turns.length - 1)] ?? [];
    session.turns++;
    this.#keep();
    return steps;
  }

  list(): SessionInfo[] {
    return [...this.#byId].map(([sessionId, { cwd }]) => ({ sessionId, cwd }));
  }

  settings(id: string): {
    configOptions?: SessionConfigOption[];
    modes?: SessionModeState;
    models?: unknown;
  } {
    const { configOptions, modes, models } = this.#script;
    const { mode, model } = this.#session(id);
    const availableModels = models?.map((modelId) => ({ modelId, name: `The ${modelId} one` }));
    return {
      ...(configOptions === undefined ? {} : { configOptions: this.#options(id) }),
      ...(modes === undefined ? {} : { modes: { ...modes, currentModeId: mode ?? modes.currentModeId } }),
      ...(models === undefined ? {} : { models: { availableModels, currentModelId: model ?? models[0] } }),
    };
  }

  setOption(id: string, configId: string, value: string | boolean): SessionConfigOption[] {
    this.#session(id).values[configId] = value;
    this.#keep();
    return this.#options(id);
  }

  setMode(id: string, modeId: string): void {
    this.#session(id).mode = modeId;
    this.#keep();
  }

  setModel(id: string, modelId: string): void {
    this.#session(id).model = modelId;
    this.#keep();
  }

  setSystem(id: string, prompt: SystemPrompt | null | undefined): void {
    const texts = (prompt?.content ?? []).map((block) => (block.type === "text" ? block.text : ""));
    this.#session(id).system = texts.join("\n");
    this.#keep();
  }

  system(id: string): string {
    return this.#session(id).system;
  }

  /** The part that a test reads. */
  config(id: string): Pick<KeptSession, "values" | "mode"> & Partial<Pick<KeptSession, "model">> {
    const { values, mode, model } = this.#session(id);
    return { values, mode, ...(model === null ? {} : { model }) };
  }

  #options(id: string): SessionConfigOption[] {
    const { values } = this.#session(id);
    return (this.#script.configOptions ?? []).map((option) => {
      const value = values[option.id];
      return value === undefined ? option : ({ ...option, currentValue: value } as SessionConfigOption);
    });
  }

  #session(id: string): KeptSession {
    const session = this.#byId.get(id);
    if (session === undefined) throw RequestError.resourceNotFound(id);
    return session;
  }

  #keep(): void {
    const { sessionsFile } = this.#script;
    if (sessionsFile === undefined) return;
    // A test or another process of this agent can read the file at any moment.
    const half = `${sessionsFile}.${process.pid}`;
    writeFileSync(half, JSON.stringify([...this.#byId]));
    renameSync(half, sessionsFile);
  }
}
