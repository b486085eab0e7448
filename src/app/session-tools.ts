import type { Redactor } from "../access/redaction/redactor.ts";
import type { AccessAction } from "../access/visibility/access-policy.ts";
import type { AccessExplanation } from "../access/visibility/decide-access.ts";
import type { Tool } from "../agents/contract.ts";
import type { Channel } from "../channels/contract.ts";
import { threadOpener } from "../channels/contract.ts";
import { agentSettings } from "../config/agent-settings.ts";
import type { Config } from "../config/sections/all.ts";
import type { Clock } from "../core/clock.ts";
import { SkeinError } from "../core/errors.ts";
import { hashedId } from "../core/hashed-id.ts";
import type { IdSource } from "../core/ids.ts";
import { parseKey } from "../core/keys.ts";
import type { FileBoundary } from "../file-access/file-boundary.ts";
import type { Run } from "../runs/contract.ts";
import type { EmbeddedRuns } from "../runs/embedded/runs.ts";
import type { FindModelWindow } from "../sessions/accept.ts";
import { findFor, noSuchAgent, sessionFor } from "../sessions/accept.ts";
import { agentSessionIdOf, untilAgentSessionId } from "../sessions/acp-link.ts";
import { ActiveTools } from "../sessions/active-tools.ts";
import type { Agents } from "../sessions/agents.ts";
import type { AcpDirectory, Caller } from "../sessions/between.ts";
import type { HookRegistry } from "../sessions/hooks.ts";
import type { RunTools, ToolSource } from "../sessions/run-tools.ts";
import type { RunWatcher } from "../sessions/run-watcher.ts";
import type { ModelPort } from "../sessions/running.ts";
import type { ContextDefaults, RuntimeContext } from "../sessions/runtime-context.ts";
import { resolveRuntimeContext } from "../sessions/runtime-context.ts";
import type { Asker } from "../sessions/session-access.ts";
import { createSessionAccess, sandboxedBy } from "../sessions/session-access.ts";
import type { ToolCalled, ToolCallOptions, ToolListing } from "../sessions/skein.ts";
import type { SessionRecord } from "../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../store/rules.ts";
import type { SessionTool, ToolDeps } from "../tools/contract.ts";
import type { IsSandboxed } from "../tools/to-runtime-tool.ts";
import type { Acp } from "./acp.ts";
import type { SkeinStore } from "./open-store.ts";

export interface SessionToolParts {
  /** Throws for a model that cannot be asked. */
  readonly checkModel: (name: string) => void;
  readonly store: SkeinStore;
  readonly runs: EmbeddedRuns;
  readonly agents: Agents;
  readonly acp: Acp;
  readonly channels: ReadonlyMap<string, Channel>;
  readonly files: FileBoundary;
  readonly config: Config;
  readonly defaults: ContextDefaults;
  readonly redactor: Redactor;
  readonly hooks: HookRegistry;
  readonly models: Pick<ModelPort, "turnModel">;
  readonly modelWindow: FindModelWindow;
  readonly watcher: RunWatcher;
  /** Whether this process runs what is accepted. */
  readonly works: boolean;
  /** Made of these among others. */
  tools(): RunTools;
  readonly owner: string;
  readonly clock: Clock;
  readonly newId: IdSource;
  report(error: unknown): void;
}

/** The session tools of one process: for its runs, and for whoever acts for a session from outside. */
export class SessionTools {
  readonly deps: ToolDeps;
  readonly #parts: SessionToolParts;
  #offered: Promise<readonly Tool[]> | null = null;

  constructor(parts: SessionToolParts) {
    this.#parts = parts;
    this.deps = toolDeps(parts);
  }

  /** What runs are offered; made at the first run, once for all. */
  get source(): ToolSource {
    return {
      from: "Skein",
      givesWay: true,
      tools: () => {
        this.#offered ??= this.#offer();
        return this.#offered;
      },
    };
  }

  async #offer(): Promise<readonly Tool[]> {
    const { toRuntimeTool } = await import("../tools/to-runtime-tool.ts");
    const isSandboxed: IsSandboxed = (_, session) => session !== null && this.isSandboxed(session);
    return (await everyTool()).map((tool) => toRuntimeTool(tool, this.deps, isSandboxed));
  }

  async list(allowed: ReadonlySet<string> | null): Promise<readonly ToolListing[]> {
    const tools = (await everyTool()).filter(({ name }) => allowed === null || allowed.has(name));
    return tools.map(({ name, label, description, parameters }) => ({
      name,
      label,
      description,
      parameters: { ...parameters },
    }));
  }

  /** On behalf of a session, outside of any run; what sets something off makes it where it is not there. */
  async call(
    name: string,
    args: unknown,
    { idempotencyKey, signal, onWait, runId: ofRun, isOperator = false, ...context }: ToolCallOptions,
  ): Promise<ToolCalled> {
    const tool = (await everyTool()).find((each) => each.name === name);
    if (tool === undefined) throw noSuchTool(name, await everyTool());
    const { runs, newId } = this.#parts;
    const asker = await this.#askerFor(context, tool.isReadOnly === true);
    const caller: Caller = {
      ...asker,
      isOperator,
      // A caller outside the loop cannot be put to sleep, whoever it acts for.
      run: tool.isLast === true ? null : await this.#runOf(ofRun, asker),
      callId:
        idempotencyKey === undefined
          ? newId()
          : hashedId("call", asker.session?.uid ?? "", name, idempotencyKey),
      entryId: null,
      signal: signal ?? new AbortController().signal,
      whileWaiting: async (runIds, wait) => {
        onWait?.(runIds);
        return { entered: true, value: await wait() };
      },
    };
    const { runSessionTool } = await import("../tools/run-session-tool.ts");
    const { result } = await runSessionTool(tool, args, caller, this.deps);
    const { runId } = result;
    const run = typeof runId === "string" ? await runs.get(runId, asker.userId) : null;
    return { result, rootId: run?.root.rootId ?? null };
  }

  async #runOf(runId: string | undefined, { session, userId }: Asker): Promise<Run | null> {
    const run = runId === undefined ? null : await this.#parts.runs.get(runId, userId);
    const isTheirs = run !== null && run.session.uid === session?.uid && run.state === "running";
    return isTheirs ? run : null;
  }

  /**
   * Who looks makes nothing: it speaks from its session if that is there. A node is a program outside, whose session begins
   * with the first thing that it sets off: until then it speaks from none.
   */
  async #askerFor(context: RuntimeContext, isReadOnly: boolean): Promise<Asker> {
    const { store, defaults, agents } = this.#parts;
    const resolved = resolveRuntimeContext(context, defaults);
    const { userId, agentId, sessionKey } = resolved;
    if (!isReadOnly && !agents.ids.includes(agentId)) throw noSuchAgent(agentId);
    const session = isReadOnly ? await findFor(store, resolved) : await sessionFor(store, resolved);
    if (session !== null) return this.askerOf(session);
    const isNode = parseKey(sessionKey).form === "node";
    const isNamed = !isNode && (context.sessionKey ?? context.sessionId ?? null) !== null;
    if (isNamed) return noSuchSession(sessionKey);
    const isSandboxed = this.isSandboxed({ agentId, meta: {} });
    return { userId, agentId, session: null, sandboxed: isSandboxed };
  }

  explain(session: SessionRecord, reference: string, action: AccessAction): Promise<AccessExplanation> {
    return this.deps.access.explain(this.askerOf(session), reference, action);
  }

  askerOf(session: SessionRecord): Asker {
    const { userId, agentId } = session;
    return { userId, agentId, session, sandboxed: this.isSandboxed(session) };
  }

  isSandboxed(session: Pick<SessionRecord, "agentId" | "meta">): boolean {
    const { agents, config } = this.#parts;
    const ofAgent = (agentId: string) =>
      agents.policy(agentId)?.sandboxed ?? agentSettings(config, agentId).sandboxed;
    return sandboxedBy(ofAgent)(session);
  }
}

function acpDirectory({ acp, store, watcher, works }: SessionToolParts): AcpDirectory {
  const { names, defaultAgent, startTimeoutMs } = acp;
  return {
    names,
    defaultAgent,
    // Where nobody is at work, there may be nobody to tell it.
    untilAgentSessionId: (run, signal) =>
      works
        ? untilAgentSessionId({ store, watcher }, run, startTimeoutMs, signal)
        : agentSessionIdOf(store, run.session),
  };
}

async function everyTool(): Promise<readonly SessionTool[]> {
  const { sessionToolTable } = await import("../tools/all.ts");
  return sessionToolTable;
}

function toolDeps(parts: SessionToolParts): ToolDeps {
  const { store, runs, agents, config, redactor, owner, clock, newId, report } = parts;
  const { scope, agentToAgent } = config.session;
  return {
    store,
    work: store.work,
    runs,
    access: createSessionAccess({ store, settings: () => agents.access, scope }),
    agents: agents.directory,
    acp: acpDirectory(parts),
    channels: {
      opener: (channel) => threadOpener(parts.channels, channel),
    },
    clock,
    newId,
    settings: { maxPingPongTurns: agentToAgent.maxPingPongTurns, scope },
    owner,
    untilEnded: (runId, signal) => parts.watcher.untilEnded(runId, signal),
    report,
    checkModel: parts.checkModel,
    hooks: parts.hooks,
    ungrantedTools: async (session, entries) => {
      const agent = agents.find(session.agentId);
      const child = await store.sessions.get(scopeOfSession(session), session.sessionId);
      if (agent === null || child === null) return { unknown: [], denied: [] };
      return parts.tools().ungranted(agent, child, entries);
    },
    files: parts.files,
    modelWindow: parts.modelWindow,
    redactor,
    describeModel: (name) => {
      try {
        return parts.models.turnModel(name);
      } catch {
        return null; // nobody knows such a model: then nothing is known of it
      }
    },
    offered: async ({ session, run }) => {
      const agent = session === null ? null : agents.find(session.agentId);
      if (session === null || agent === null) return [];
      const tools = await parts.tools().of(agent, run, session);
      const active = await ActiveTools.read(store.state, session);
      return tools.filter((tool) => active.offers(tool, agent.onDemand)).map(({ name }) => name);
    },
    transcriptPaths: (sessions) => store.upkeep?.workingSets(sessions) ?? new Map(),
    showPaths: config.tools.sessions.showPaths,
  };
}

function noSuchTool(name: string, tools: readonly SessionTool[]): SkeinError {
  const names = tools.map((tool) => tool.name).join(", ");
  const problem = `There is no session tool "${name}"`;
  return new SkeinError("invalid_arguments", { problem, advice: `The session tools are ${names}` });
}
