import { readKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { cutText, longestQuote, mostCharacters } from "../core/text.ts";
import type {
  AcceptRequest,
  ChildSequel,
  DeliveryTarget,
  ExchangeTerms,
  Outcome,
  Party,
  PingPongSequel,
  ReplySequel,
  Run,
} from "./contract.ts";
import {
  announcePrompt,
  childAnnouncement,
  exchangeAnnouncement,
  pingPongPrompt,
  replyAnnouncement,
  saidIn,
} from "./sequel-prompts.ts";

/**
 * What the end of a run sets off in other sessions. It follows from the run alone, and each step has a name of its own, so
 * that it is set off once, whoever ends the run and however often.
 */
export function planSequel(
  run: Run,
  outcome: Outcome,
  { endedAt, isAskerAsleep = false }: SequelFacts,
): readonly SequelStep[] {
  const { sequel } = run.options;
  switch (sequel?.type) {
    case "child":
      return [afterChild(run, sequel, outcome, endedAt)];
    case "reply":
      return afterReply(run, sequel, outcome, isAskerAsleep);
    case "ping_pong":
      return afterTurn(run, sequel, outcome);
    default:
      return [];
  }
}

function afterChild(run: Run, sequel: ChildSequel, outcome: Outcome, endedAt: number): SequelStep {
  const text = childAnnouncement(run, sequel, outcome, endedAt);
  const from = { key: sequel.childKey, tool: "sessions_spawn", verbatim: true } as const;
  return announcement(run, sequel.parent, from, text, sequel.deliverTo);
}

function afterReply(
  run: Run,
  sequel: ReplySequel,
  outcome: Outcome,
  isAskerAsleep: boolean,
): readonly SequelStep[] {
  const { type: _, ...terms } = sequel;
  const { asker, target, turns, deliverTo } = terms;
  const from = { ...target, tool: "sessions_send", verbatim: true } as const;
  const told = announcement(run, asker, from, replyAnnouncement(sequel, outcome), deliverTo);
  // A run that yielded for the reply owns it: what it answers goes to its own person, never to the target.
  if (outcome.state !== "ok" || isAskerAsleep) return [told];
  const said = saidIn(outcome.reply);
  const exchange = { ...terms, firstReply: quote(said ?? ""), latestReply: quote(said ?? "") };
  if (turns === 0 || said === null) return [told, ...targetAnnounceStep(run, exchange)];
  return [pingPongTurn(run, { ...exchange, turn: 1 }, said)];
}

function afterTurn(run: Run, sequel: PingPongSequel, outcome: Outcome): readonly SequelStep[] {
  // Written without a model turn because the budget is used up, or read by a run that yielded for it: no reply to pass on.
  if (run.isSilent || run.mergedInto !== null) return [];
  const { type: _, ...exchange } = sequel;
  const said = outcome.state === "ok" ? saidIn(outcome.reply) : null;
  if (said === null) return announceSteps(run, exchange);
  const next = { ...exchange, latestReply: quote(said) };
  if (sequel.turn >= sequel.turns) return announceSteps(run, next);
  return [pingPongTurn(run, { ...next, turn: sequel.turn + 1 }, said)];
}

type Exchange = ExchangeTerms & Pick<PingPongSequel, "firstReply" | "latestReply">;

/** One side is given what the other has said: the asker first. */
function pingPongTurn(run: Run, exchange: Omit<PingPongSequel, "type">, said: string): SequelStep {
  const sequel: PingPongSequel = { ...exchange, type: "ping_pong" };
  const isAskers = exchange.turn % 2 === 1;
  const [to, from] = isAskers ? [exchange.asker, exchange.target] : [exchange.target, exchange.asker];
  const request = requestOf(
    run,
    `ping_pong:${run.runId}`,
    { ...from, tool: "sessions_send" },
    cutText(said, mostCharacters),
  );
  const options = { origin: "inter_session", extraSystemPrompt: pingPongPrompt(sequel), sequel } as const;
  // The first may be what the asker sleeps for.
  const arrivalOf = exchange.turn === 1 ? run.runId : undefined;
  return {
    to: addressOf(to),
    request: { ...request, kind: "ping_pong", options, ...present({ arrivalOf }) },
    isBetweenStrangers: true,
  };
}

/** After an exchange each side may say to its own people what came of it. */
function announceSteps(run: Run, exchange: Exchange): readonly SequelStep[] {
  const { asker, target, deliverTo } = exchange;
  const from = { ...target, tool: "sessions_send", verbatim: true } as const;
  const told = announcement(run, asker, from, exchangeAnnouncement(exchange), deliverTo);
  return [told, ...targetAnnounceStep(run, exchange)];
}

/** The target announces on its outside channel; without one it has nobody to tell. */
function targetAnnounceStep(run: Run, exchange: Exchange): readonly SequelStep[] {
  const { asker, target, announceTo: deliverTo } = exchange;
  if (deliverTo === undefined) return [];
  const from = { ...asker, tool: "sessions_send", verbatim: true } as const;
  const request = requestOf(run, `announce_step:${run.runId}`, from, "Agent-to-agent announce step.");
  const extraSystemPrompt = announcePrompt(exchange);
  const options = { origin: "inter_session", extraSystemPrompt, deliverTo } as const;
  return [
    {
      to: addressOf(target),
      request: { ...request, kind: "announce", options },
      isBetweenStrangers: false,
    },
  ];
}

interface Sender {
  readonly key: string;
  readonly channel?: string;
  readonly tool: string;
  readonly verbatim?: true;
}

function announcement(
  run: Run,
  to: Party,
  from: Sender,
  text: string,
  deliverTo: DeliveryTarget | undefined,
): SequelStep {
  return {
    to: addressOf(to),
    request: {
      ...requestOf(run, `announce:${run.runId}`, from, text),
      kind: "announce",
      arrivalOf: run.runId,
      options: { origin: "inter_session", ...present({ deliverTo }) },
    },
    isBetweenStrangers: false,
  };
}

type Said = Pick<AcceptRequest, "message" | "idempotencyKey" | "provenance" | "root" | "isDelivery">;

/** `verbatim`: the text is ours, and fences what others said in it. */
function requestOf({ root }: Run, id: string, { key, channel, tool, verbatim }: Sender, text: string): Said {
  const provenance = {
    kind: "inter_session",
    sourceSessionKey: key,
    ...present({ sourceChannel: channel }),
    sourceTool: tool,
    rootId: root.rootId,
    hops: root.hops,
    deliveryId: id,
    ...present({ verbatim }),
  };
  const message = { role: "user" as const, content: text, provenance };
  return { message, idempotencyKey: id, provenance, root, isDelivery: true };
}

/** A sub-agent that is gone passes to the session that spawned it. */
function addressOf({ key }: Party): SequelStep["to"] {
  const parsed = readKey(key);
  return "problem" in parsed || parsed.form !== "subagent"
    ? { key }
    : { key, parentSessionId: parsed.parentSessionId };
}

/** Of what is carried along only as much as is quoted later. */
function quote(text: string): string {
  return cutText(text, longestQuote);
}

/** What the end of a run sets off in another session. The books know who has the key by then. */
export interface SequelStep {
  /** Where it goes: who has the key, else the session of this id, else nobody. */
  readonly to: { readonly key: string; readonly parentSessionId?: string };
  readonly request: Omit<AcceptRequest, "session" | "pair">;
  /** Neither spawned the other: counted against loops. */
  readonly isBetweenStrangers: boolean;
}

export interface SequelFacts {
  readonly endedAt: number;
  /** A run of the asker yielded to wait for this reply. */
  readonly isAskerAsleep?: boolean;
}
