import type { Tool } from "../agents/contract.ts";
import { SkeinError } from "../core/errors.ts";
import { hashedId } from "../core/hashed-id.ts";
import { parseKey } from "../core/keys.ts";
import type { Run } from "../runs/contract.ts";
import { findFor, noSuchAgent, sessionFor } from "../sessions/accept.ts";
import type {
  App,
  SessionToolCalls,
  ToolCalled,
  ToolCallOptions,
  ToolInvoked,
  ToolListing,
} from "../sessions/app.ts";
import { resolveSessionTarget } from "../sessions/resolve-context.ts";
import type { ToolSource } from "../sessions/run-tools.ts";
import type { RuntimeContext } from "../sessions/runtime-context.ts";
import type { Asker, Caller } from "../sessions/session-access.ts";
import { askerOf, isSandboxed } from "../sessions/session-access.ts";
import { noSuchSession } from "../store/rules.ts";
import type { SessionTool } from "../tools/session-tool.ts";
import type { IsSandboxed } from "../tools/tool-adapters.ts";
import type { InvokeApp } from "./invoke-tool.ts";
import { allowedSessionTools, callTool, invokeTool } from "./invoke-tool.ts";

/** The session tools of one process, for its runs and for outside callers that act on behalf of a session. */
export class SessionTools implements SessionToolCalls {
  readonly #app: App;
  #offered: Promise<readonly Tool[]> | null = null;

  constructor(app: App) {
    this.#app = app;
  }

  /** The app for calls that follow an agent's rules. */
  get #invoking(): InvokeApp {
    return {
      ...this.#app,
      offeredSessionTools: () => this.source.tools(),
      callSessionTool: (name, args, how) => this.#callDirect(name, args, how),
    };
  }

  async list(context: RuntimeContext | null): Promise<readonly ToolListing[]> {
    const allowed = context === null ? null : await allowedSessionTools(this.#invoking, context);
    const tools = (await everyTool()).filter(({ name }) => allowed === null || allowed.has(name));
    return tools.map(({ name, label, description, parameters }) => ({
      name,
      label,
      description,
      parameters: { ...parameters },
    }));
  }

  call(name: string, args: unknown, options: ToolCallOptions): Promise<ToolCalled> {
    return callTool(this.#invoking, name, args, options);
  }

  invoke(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: ToolCallOptions,
  ): Promise<ToolInvoked> {
    return invokeTool(this.#invoking, name, args, options);
  }

  /** The tool source for runs, created on the first run. */
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
    const { toRuntimeTool } = await import("../tools/tool-adapters.ts");
    const isAskerSandboxed: IsSandboxed = (_, session) => session !== null && isSandboxed(this.#app, session);
    return (await everyTool()).map((tool) => toRuntimeTool(tool, this.#app, isAskerSandboxed));
  }

  /**
   * Calls a tool on behalf of a session, outside any run. A tool that starts a run creates the session if the session
   * does not exist.
   */
  async #callDirect(
    name: string,
    args: unknown,
    { idempotencyKey, signal, onWait, runId: ofRun, isOperator = false, ...context }: ToolCallOptions,
  ): Promise<ToolCalled> {
    const tool = (await everyTool()).find((each) => each.name === name);
    if (tool === undefined) throw noSuchTool(name, await everyTool());
    const { runs, newId } = this.#app;
    const asker = await this.#askerFor(context, tool.isReadOnly === true);
    const caller: Caller = {
      ...asker,
      isOperator,
      // A caller outside the agent loop cannot be put to sleep, regardless of which session it acts for.
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
    const { result } = await runSessionTool(tool, args, caller, this.#app);
    const { runId } = result;
    const run = typeof runId === "string" ? await runs.get(runId, asker.userId) : null;
    return { result, rootId: run?.root.rootId ?? null };
  }

  async #runOf(runId: string | undefined, { session, userId }: Asker): Promise<Run | null> {
    const run = runId === undefined ? null : await this.#app.runs.get(runId, userId);
    const isTheirs = run !== null && run.session.uid === session?.uid && run.state === "running";
    return isTheirs ? run : null;
  }

  /**
   * Returns the requester of a call. A read-only call does not create a session, so the call is rejected if it names a
   * session that does not exist. A node is an external program, whose session is created by its first call that is not
   * read-only. Until then, the node acts without a session, as does a read-only call that names no session.
   */
  async #askerFor(context: RuntimeContext, isReadOnly: boolean): Promise<Asker> {
    const { store, agents } = this.#app;
    const resolved = resolveSessionTarget(this.#app, context);
    const { userId, agentId, key } = resolved;
    if (!isReadOnly && !agents.ids.includes(agentId)) throw noSuchAgent(agentId);
    const session = isReadOnly ? await findFor(store, resolved) : await sessionFor(store, resolved);
    if (session !== null) return askerOf(this.#app, session);
    const isNode = parseKey(key).form === "node";
    const isNamed = !isNode && (context.sessionKey ?? context.sessionId ?? null) !== null;
    if (isNamed) return noSuchSession(key);
    return { userId, agentId, session: null, sandboxed: isSandboxed(this.#app, { agentId, meta: {} }) };
  }
}

async function everyTool(): Promise<readonly SessionTool[]> {
  const { sessionToolTable } = await import("../tools/all.ts");
  return sessionToolTable;
}

function noSuchTool(name: string, tools: readonly SessionTool[]): SkeinError {
  const names = tools.map((tool) => tool.name).join(", ");
  const problem = `"${name}" is not a session tool`;
  return new SkeinError("invalid_arguments", { problem, advice: `Use one of ${names}` });
}
