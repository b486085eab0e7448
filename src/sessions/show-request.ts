import type { RequestPlan, TurnModel, TurnRequest } from "../agents/contract.ts";
import { checkReachable } from "../agents/models/open-model.ts";
import { modelSettings } from "../config/model-settings.ts";
import { SkeinError } from "../core/errors.ts";
import { isAcpKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { Slices } from "../core/slices.ts";
import type { Run } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import { tokensByPart } from "../transcript/estimate-tokens.ts";
import type { Agent } from "./agents.ts";
import type { AnsweredRequest } from "./answered-request.ts";
import type { App } from "./app.ts";
import type { ViewText } from "./explain-request.ts";
import { explainRequest } from "./explain-request.ts";
import type { OfferedTools } from "./run-tools.ts";
import { contextOfSession } from "./runtime-context.ts";
import { planTurn } from "./turn.ts";
import { TurnRequests } from "./turn-request.ts";
import { ActiveTools } from "./with-state.ts";
import type { SessionXray } from "./xray.ts";

export type RequestApp = Pick<
  App,
  "store" | "models" | "hooks" | "config" | "clock" | "turns" | "agents" | "runs"
> & {
  /** The next turn's tools, as far as they can be determined without starting a server. */
  readonly tools: Pick<App["tools"], "offered">;
};

interface Shown {
  readonly plan: RequestPlan;
  readonly requests: { preview(): Promise<TurnRequest> };
  readonly unlisted: OfferedTools["unlisted"];
}

/**
 * Shows the request that a session's model is currently answering or, if there is none, the one that would be sent
 * next. Sends nothing and starts no server. Returns `null` for an ACP agent, or if this process does not have the
 * session's agent or the model of `answer`.
 */
export async function showRequest(
  app: RequestApp,
  session: SessionRecord,
  { model: name, baseUrl, wire = false }: ShowRequestOptions = {},
  { answer = null, viewText }: ShownAs = {},
): Promise<SessionXray | null> {
  const agent = isAcpKey(session.key) ? null : app.agents.find(session.agentId);
  if (agent === null) return null;
  const other = name === undefined ? modelOf(app, answer) : app.models.turnModel(name);
  if (other === undefined) return null;
  const shown =
    (answer === null ? turnInProgress(app, session, other) : null) ??
    (await nextTurn(app, session, agent, other, answer));
  const { plan, requests, unlisted } = shown;
  const { model } = plan;
  // A model that answered earlier might have been removed from the configuration since.
  const isReachable = answer !== null && name === undefined;
  if (!isReachable && !app.models.isGiven(`${model.provider}/${model.model}`))
    checkReachable(model, app.config.models, baseUrl);
  const { messages, context, changes } = await requests.preview();
  const { buildModelCall } = await import("../agents/loop/model-call.ts");
  const call = buildModelCall(plan, messages);
  const captured = wire ? await captureBody(app, model, call.options) : null;
  const tools = plan.tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    inputSchema,
  }));
  const explained = await new Slices().run(explainRequest({ context, messages, changes }, viewText));
  const toolsUnlisted = unlisted.length === 0 ? null : unlisted.map(({ from }) => from);
  const { system } = call;
  return {
    request: {
      provider: model.provider,
      api: model.policy.api,
      model: model.model,
      thinkingLevel: plan.thinkingLevel,
      ...present({ system }),
      messages,
      tools,
      ...present({ toolsUnlisted }),
    },
    tokens: tokensByPart({
      messages,
      context: context.messages,
      system: system ?? undefined,
      tools,
      window: model.info.contextWindow,
    }),
    parts: explained.parts,
    changes: [...explained.changes, ...call.changes, ...(captured?.warnings ?? [])],
    diagnostics: context.diagnostics,
    ...(captured === null ? {} : { wire: captured.body }),
  };
}

/**
 * Returns the model that produced an answer. Returns `undefined` if this process does not have the model, `null` if
 * there is no answer.
 */
function modelOf({ models }: RequestApp, answer: AnsweredRequest | null): TurnModel | null | undefined {
  if (answer === null) return null;
  try {
    return models.turnModel(`${answer.model.provider}/${answer.model.model}`);
  } catch (error) {
    if (error instanceof SkeinError) return undefined;
    throw error;
  }
}

/**
 * Returns the turn that this process is running in the session. If a different model is given, returns the same request
 * for that model.
 */
function turnInProgress(app: RequestApp, session: SessionRecord, other: TurnModel | null): Shown | null {
  const turn = app.turns.get(session.uid);
  if (turn === undefined) return null;
  if (other === null) return { ...turn, unlisted: [] };
  const { system, tools } = turn.plan;
  const requests = new TurnRequests(app, session, { model: other, system, tools });
  return { plan: { ...turn.plan, model: other }, requests, unlisted: [] };
}

/** Returns the next turn, with the open run's settings. */
async function nextTurn(
  app: RequestApp,
  session: SessionRecord,
  agent: Agent,
  other: TurnModel | null,
  answer: AnsweredRequest | null,
): Promise<Shown> {
  const run = answer === null ? await openRun(app, session) : null;
  const options = run?.options ?? {};
  const planned = await planTurn(app, session, agent, options);
  const model = other ?? planned.model;
  const { tools, unlisted } = await app.tools.offered(
    agent,
    session,
    await ActiveTools.read(app.store.state, session),
    run,
  );
  const system = await askSystem(app, session, run, model, planned.system);
  const about = { model, system, tools, unlisted: unlisted.map(({ prefix }) => prefix) };
  const plan: RequestPlan = {
    model,
    system,
    thinkingLevel: planned.thinkingLevel,
    tools,
    outputSchema: options.outputSchema ?? null,
    limits: present({ maxOutputTokens: agent.maxOutputTokens }),
  };
  if (answer === null) return { plan, requests: new TurnRequests(app, session, about), unlisted };
  const { store, config } = app;
  const then = { store, config, clock: { now: () => answer.at } };
  const requests = new TurnRequests(then, session, about, (options) => answer.context(options));
  return { plan, requests, unlisted };
}

/** Lets hooks change the system prompt, as in a run. There is no prompt yet, so no context is prepended. */
async function askSystem(
  app: RequestApp,
  session: SessionRecord,
  run: Run | null,
  model: TurnModel,
  system: string | null,
): Promise<string | null> {
  if (!app.hooks.has("before_prompt_build")) return system;
  const { cleanedHistory } = await import("./turn.ts");
  const messages = await cleanedHistory(app, session, model);
  const ctx = contextOfSession(app.store, session, run);
  const built = await app.hooks.ask("before_prompt_build", { system, prompt: "", messages, ctx });
  return built.system;
}

async function captureBody(
  { config }: RequestApp,
  { provider, model, policy }: TurnModel,
  options: Parameters<typeof import("../agents/models/open-model.ts").captureWire>[0],
) {
  const { captureWire } = await import("../agents/models/open-model.ts");
  const { type } = modelSettings(config.models, provider, model);
  return captureWire(options, { provider, model, api: policy.api }, type);
}

/** Returns a session's open or next run, or `null` if there is none. */
async function openRun({ runs }: RequestApp, { uid }: SessionRecord): Promise<Run | null> {
  const runId = (await runs.work([uid])).get(uid)?.runId ?? null;
  return runId === null ? null : runs.get(runId);
}

export interface ShownAs {
  /** If set, shows the request for this answer instead of the next one. */
  readonly answer?: AnsweredRequest | null;
  readonly viewText?: ViewText | undefined;
}

/** Options for {@link Skein.xray}. */
export interface ShowRequestOptions {
  /**
   * The ID of an answer on any branch. Shows the request that led to this answer, using the agent's current settings.
   */
  readonly entryId?: string;
  /** A model to use instead of the session's own, in `provider/model` format. */
  readonly model?: string;
  /** The base URL for a model from an unknown provider. */
  readonly baseUrl?: string;
  /** Adds the request body as the provider would receive it. */
  readonly wire?: boolean;
}
