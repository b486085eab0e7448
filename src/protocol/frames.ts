import { findProblems, fits } from "../core/check-schema.ts";
import { isLongJson, parseJsonInSteps } from "../core/parse-json.ts";
import * as s from "../core/schema.ts";
import type { Steps } from "../core/slices.ts";
import { problemText } from "./check-params.ts";
import { WireErrorSchema } from "./errors.ts";
import { count } from "./fields.ts";
import { ScopeSchema } from "./tokens.ts";
import { protocolVersion } from "./wire.ts";

export { type CloseReason, closeCodes, protocolVersion, wireLimits } from "./wire.ts";

/** The frames on a socket: requests, one response per request, and events. The first request must be `connect`. */

export const LimitsSchema = s.closed({
  frameBytes: count,
  connectBytes: count,
  connectMs: count,
  requestsPerSecond: count,
  socketsPerToken: count,
  eventsKept: count,
});

const frameId = s.string({ minLength: 1, maxLength: 128 });
const name = s.string({ minLength: 1, maxLength: 128 });
const version = s.integer({ minimum: 1, maximum: 1000 });

export const RequestFrameSchema = s.closed({
  type: s.literal("req"),
  id: frameId,
  method: name,
  params: s.optional(s.unknown()),
});
export type RequestFrame = s.Static<typeof RequestFrameSchema>;

export const ResponseFrameSchema = s.union([
  s.closed({ type: s.literal("res"), id: frameId, ok: s.literal(true), payload: s.unknown() }),
  s.closed({ type: s.literal("res"), id: frameId, ok: s.literal(false), error: WireErrorSchema }),
]);
export type ResponseFrame = s.Static<typeof ResponseFrameSchema>;

/** `seq` increases with every event in the gateway, including events that this reader does not receive. */
export const EventFrameSchema = s.closed({
  type: s.literal("event"),
  event: name,
  payload: s.unknown(),
  seq: count,
});
export type EventFrame = s.Static<typeof EventFrameSchema>;

/**
 * The event `gap`: events after `after` and up to `upTo` might be missing. `slow` means that events were dropped for
 * this reader. `gone` means that they are no longer available. `restart` means that they came from an earlier gateway
 * process.
 */
export const GapSchema = s.closed({
  after: count,
  upTo: count,
  reason: s.choice(["slow", "gone", "restart"]),
});
export type GapPayload = s.Static<typeof GapSchema>;

/** The params of `connect`. */
export const ConnectSchema = s.closed({
  protocol: s.closed({ min: version, max: version }),
  auth: s.closed({ token: s.string({ minLength: 1, maxLength: 1024 }) }),
  client: s.closed({
    name,
    version: s.optional(name),
    platform: s.optional(name),
  }),
});
export type ConnectParams = s.Static<typeof ConnectSchema>;

/** The response to `connect`. */
export const HelloSchema = s.closed({
  protocol: version,
  server: s.closed({ name: s.string(), version: s.string() }),
  /** The methods that this token can call. */
  methods: s.array(s.string()),
  events: s.array(s.string()),
  limits: LimitsSchema,
  scopes: s.array(ScopeSchema),
  /** The ID of the token that the client connected with. */
  tokenId: s.optional(s.string()),
  /** Absent for the unnamed user and, with `allUsers`, for every user. */
  userId: s.optional(s.string()),
  allUsers: s.boolean(),
});
export type HelloPayload = s.Static<typeof HelloSchema>;

/** Returns the newest protocol version that both sides support, or `null`. */
export function commonProtocol(
  { min, max }: ConnectParams["protocol"],
  ours = [protocolVersion],
): number | null {
  const spoken = ours.filter((each) => each >= min && each <= max);
  return spoken.length === 0 ? null : Math.max(...spoken);
}

export type ReadRequest =
  | { readonly frame: RequestFrame }
  | { readonly id: string | null; readonly problem: string };

/**
 * Parses a request or explains why it is invalid. `id` is set if it could be read, so that an error response can be
 * sent.
 */
export function* readRequestInSteps(text: string): Steps<ReadRequest> {
  let value: unknown;
  try {
    value = isLongJson(text) ? yield* parseJsonInSteps(text) : JSON.parse(text);
  } catch {
    return { id: null, problem: "The frame is not JSON" };
  }
  const [problem] = findProblems(RequestFrameSchema, value, 1);
  if (problem === undefined) return { frame: value as RequestFrame };
  const where = problem.path.length === 0 ? "The frame" : problem.path.join(".");
  return { id: idIn(value), problem: `${where} ${problemText(problem)}` };
}

function idIn(value: unknown): string | null {
  const { id } = (value ?? {}) as { readonly id?: unknown };
  return fits(frameId, id) ? id : null;
}
