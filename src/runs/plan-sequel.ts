import { readKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { cutText, longestQuote, maxCharacters } from "../core/text.ts";
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
  readReply,
  replyAnnouncement,
} from "./sequel-prompts.ts";

/**
 * Plans what starts in other sessions when a run ends. The result depends only on the arguments, and every step has an
 * idempotency key. Each step therefore starts once, regardless of which process ends the run and how many times it
 * tries.
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
  const announced = announcement(run, asker, from, replyAnnouncement(sequel, outcome), deliverTo);
  // A requester that is sleeping until the reply arrives answers on its own channel, never to the target.
  if (outcome.state !== "ok" || isAskerAsleep) return [announced];
  const text = readReply(outcome.reply);
  const exchange = { ...terms, firstReply: quote(text ?? ""), latestReply: quote(text ?? "") };
  if (turns === 0 || text === null) return [announced, ...targetAnnounceStep(run, exchange)];
  return [pingPongTurn(run, { ...exchange, turn: 1 }, text)];
}

function afterTurn(run: Run, sequel: PingPongSequel, outcome: Outcome): readonly SequelStep[] {
  // There is no reply to forward, either because the run had no model turn after its budget was used up, or because a
  // run that yielded until this input arrived has already read it.
  if (run.isSilent || run.mergedInto !== null) return [];
  const { type: _, ...exchange } = sequel;
  const text = outcome.state === "ok" ? readReply(outcome.reply) : null;
  if (text === null) return announceSteps(run, exchange);
  const next = { ...exchange, latestReply: quote(text) };
  if (sequel.turn >= sequel.turns) return announceSteps(run, next);
  return [pingPongTurn(run, { ...next, turn: sequel.turn + 1 }, text)];
}

type Exchange = ExchangeTerms & Pick<PingPongSequel, "firstReply" | "latestReply">;

/** Sends each side's reply to the other in turn, starting with the requester. */
function pingPongTurn(run: Run, exchange: Omit<PingPongSequel, "type">, reply: string): SequelStep {
  const sequel: PingPongSequel = { ...exchange, type: "ping_pong" };
  const isForAsker = exchange.turn % 2 === 1;
  const [to, from] = isForAsker ? [exchange.asker, exchange.target] : [exchange.target, exchange.asker];
  const request = requestOf(
    run,
    `ping_pong:${run.runId}`,
    { ...from, tool: "sessions_send" },
    cutText(reply, maxCharacters),
  );
  const options = { origin: "inter_session", extraSystemPrompt: pingPongPrompt(sequel), sequel } as const;
  // The requester might have a run that is sleeping until the first turn arrives.
  const arrivalOf = exchange.turn === 1 ? run.runId : undefined;
  return {
    to: addressOf(to),
    request: { ...request, kind: "ping_pong", options, ...present({ arrivalOf }) },
    isBetweenStrangers: true,
  };
}

/** Plans the end of an exchange, after which each side can announce the result on its own channel. */
function announceSteps(run: Run, exchange: Exchange): readonly SequelStep[] {
  const { asker, target, deliverTo } = exchange;
  const from = { ...target, tool: "sessions_send", verbatim: true } as const;
  const announced = announcement(run, asker, from, exchangeAnnouncement(exchange), deliverTo);
  return [announced, ...targetAnnounceStep(run, exchange)];
}

/** Lets the target announce the result on its external channel, if it has one. */
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

/** `verbatim` means that the text is generated and that any quotes from other sessions in it are already fenced. */
function requestOf(
  { root }: Run,
  id: string,
  { key, channel, tool, verbatim }: Sender,
  text: string,
): Pick<AcceptRequest, "message" | "idempotencyKey" | "provenance" | "root" | "isDelivery"> {
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

/**
 * Returns the address of a session. A message to a sub-agent that no longer exists goes to the session that spawned it.
 */
function addressOf({ key }: Party): SequelStep["to"] {
  const parsed = readKey(key);
  return "problem" in parsed || parsed.form !== "subagent"
    ? { key }
    : { key, parentSessionId: parsed.parentSessionId };
}

/** Limits the stored text to the length that is quoted later. */
function quote(text: string): string {
  return cutText(text, longestQuote);
}

/** Input for another session. The ledger resolves the key when the step starts. */
export interface SequelStep {
  /** The session with this key. If there is none, the session with this session ID. */
  readonly to: { readonly key: string; readonly parentSessionId?: string };
  readonly request: Omit<AcceptRequest, "session" | "pair">;
  /** `true` if neither session spawned the other. The message then counts toward the ping-pong limit. */
  readonly isBetweenStrangers: boolean;
}

export interface SequelFacts {
  readonly endedAt: number;
  /** `true` if one of the requester's runs has yielded to wait for this reply. */
  readonly isAskerAsleep?: boolean;
}
