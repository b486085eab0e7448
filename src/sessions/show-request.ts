import type { RequestPlan, TurnModel, TurnRequest } from "../agents/contract.ts";
import { checkReachable } from "../agents/models/open-model.ts";
import { modelSettings } from "../config/model-settings.ts";
import type { Config } from "../config/sections/all.ts";
import { present } from "../core/present.ts";
import type { Run } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import { tokensByPart } from "../transcript/estimate-tokens.ts";
import type { Agent } from "./agents.ts";
import { placeOf } from "./run.ts";
import type { OfferedTools } from "./run-tools.ts";
import type { RunningDeps, RunPlace } from "./running.ts";
import type { ShowRequestOptions } from "./skein.ts";
import { planTurn } from "./turn.ts";
import { TurnRequests } from "./turn-request.ts";
import type { SessionXray } from "./xray.ts";

export interface ShowRequestDeps
  extends Pick<RunningDeps, "store" | "models" | "hooks" | "settings" | "clock" | "shrink" | "turns"> {
  readonly config: Pick<Config, "models">;
  /** The agent that answers in a session; `null`: unknown here, or an ACP agent. */
  agent(session: SessionRecord): Agent | null;
  /** The tools of the next turn, as far as they are known without starting a server. */
  tools(agent: Agent, session: SessionRecord, run: Run | null): Promise<OfferedTools>;
  /** Whether the application made the model itself: then it needs no base URL. */
  isGiven(model: TurnModel): boolean;
  /** The open run of a session, or the one that starts next. */
  openRun(session: SessionRecord): Promise<Run | null>;
}

interface Shown {
  readonly plan: RequestPlan;
  readonly requests: { preview(): Promise<TurnRequest> };
  readonly unlisted: OfferedTools["unlisted"];
}

/**
 * Shows the request that a session's model is answering now, or would be sent next. Nothing is sent, and no server is
 * started. `null`: the agent of the session is not known here.
 */
export async function showRequest(
  deps: ShowRequestDeps,
  session: SessionRecord,
  { model: name, baseUrl, wire = false }: ShowRequestOptions = {},
): Promise<SessionXray | null> {
  const agent = deps.agent(session);
  if (agent === null) return null;
  const other = name === undefined ? null : deps.models.turnModel(name);
  const shown = turnInProgress(deps, session, other) ?? (await nextTurn(deps, session, agent, other));
  const { plan, requests, unlisted } = shown;
  const { model } = plan;
  if (!deps.isGiven(model)) checkReachable(model, deps.config.models, baseUrl);
  const { messages, context, changes } = await requests.preview();
  const { buildModelCall } = await import("../agents/loop/model-call.ts");
  const call = buildModelCall(plan, messages);
  const captured = wire ? await captureBody(deps, model, call.options) : null;
  const tools = plan.tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    inputSchema,
  }));
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
    changes: [...changes, ...call.changes, ...(captured?.warnings ?? [])],
    diagnostics: context.diagnostics,
    ...(captured === null ? {} : { wire: captured.body }),
  };
}

/** The turn that this process runs in the session; for another model, a request of the same turn to that model. */
function turnInProgress(
  { turns, ...deps }: ShowRequestDeps,
  session: SessionRecord,
  other: TurnModel | null,
): Shown | null {
  const turn = turns.get(session.uid);
  if (turn === undefined) return null;
  if (other === null) return { ...turn, unlisted: [] };
  const { system, tools } = turn.plan;
  const requests = new TurnRequests(deps, placeOf(deps, session, null), { model: other, system, tools });
  return { plan: { ...turn.plan, model: other }, requests, unlisted: [] };
}

/** The turn that comes next, with the settings of the run that is open. */
async function nextTurn(
  deps: ShowRequestDeps,
  session: SessionRecord,
  agent: Agent,
  other: TurnModel | null,
): Promise<Shown> {
  const run = await deps.openRun(session);
  const options = run?.options ?? {};
  const place = placeOf(deps, session, run);
  const planned = await planTurn(deps, place, agent, options);
  const model = other ?? planned.model;
  const { tools, unlisted } = await deps.tools(agent, session, run);
  const system = await askSystem(deps, place, model, planned.system);
  const about = { model, system, tools, unlisted: unlisted.map(({ prefix }) => prefix) };
  const plan: RequestPlan = {
    model,
    system,
    thinkingLevel: planned.thinkingLevel,
    tools,
    outputSchema: options.outputSchema ?? null,
    limits: present({ maxOutputTokens: agent.maxOutputTokens }),
  };
  return { plan, requests: new TurnRequests(deps, place, about), unlisted };
}

/** Hooks change the system prompt here as they do in a run. There is no prompt yet to put context before. */
async function askSystem(
  deps: ShowRequestDeps,
  place: RunPlace,
  model: TurnModel,
  system: string | null,
): Promise<string | null> {
  if (!deps.hooks.has("before_prompt_build")) return system;
  const { cleanedHistory } = await import("./turn.ts");
  const messages = await cleanedHistory(deps, place, model);
  const built = await deps.hooks.ask("before_prompt_build", { system, prompt: "", messages, ctx: place.ctx });
  return built.system;
}

async function captureBody(
  { config }: ShowRequestDeps,
  { provider, model, policy }: TurnModel,
  options: Parameters<typeof import("../agents/models/open-model.ts").captureWire>[0],
) {
  const { captureWire } = await import("../agents/models/open-model.ts");
  const { type } = modelSettings(config.models, provider, model);
  return captureWire(options, { provider, model, api: policy.api }, type);
}
