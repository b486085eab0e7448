import type { Static } from "typebox";
import Type from "typebox";
import { isLongJson, parseJsonInSteps } from "../core/parse-json.ts";
import type { Steps } from "../core/slices.ts";
import { mistakesIn } from "./check-value.ts";
import { WireErrorSchema } from "./errors.ts";
import { closed, count } from "./fields.ts";
import { ScopeSchema } from "./tokens.ts";
import { protocolVersion } from "./wire.ts";

export { type CloseReason, closeCodes, protocolVersion, wireLimits } from "./wire.ts";

/** What goes over a socket: a request and its one answer, and events. The first request is `connect`. */

export const LimitsSchema = Type.Object(
  {
    frameBytes: count,
    connectBytes: count,
    connectMs: count,
    requestsPerSecond: count,
    socketsPerToken: count,
    eventsKept: count,
  },
  closed,
);

const frameId = Type.String({ minLength: 1, maxLength: 128 });
const name = Type.String({ minLength: 1, maxLength: 128 });
const version = Type.Integer({ minimum: 1, maximum: 1000 });

export const RequestFrameSchema = Type.Object(
  { type: Type.Literal("req"), id: frameId, method: name, params: Type.Optional(Type.Unknown()) },
  closed,
);
export type RequestFrame = Static<typeof RequestFrameSchema>;

export const ResponseFrameSchema = Type.Union([
  Type.Object(
    { type: Type.Literal("res"), id: frameId, ok: Type.Literal(true), payload: Type.Unknown() },
    closed,
  ),
  Type.Object(
    { type: Type.Literal("res"), id: frameId, ok: Type.Literal(false), error: WireErrorSchema },
    closed,
  ),
]);
export type ResponseFrame = Static<typeof ResponseFrameSchema>;

/** `seq` goes up with every event of the gateway, so a reader sees that some were not for it; it never goes back. */
export const EventFrameSchema = Type.Object(
  { type: Type.Literal("event"), event: name, payload: Type.Unknown(), seq: count },
  closed,
);
export type EventFrame = Static<typeof EventFrameSchema>;

/**
 * The event `gap`: events behind `after` and up to `upTo` may be missing. `slow`: dropped; `gone`: no longer kept;
 * `restart`: the gateway was another one then.
 */
export const GapSchema = Type.Object(
  { after: count, upTo: count, reason: Type.Enum(["slow", "gone", "restart"]) },
  closed,
);
export type GapPayload = Static<typeof GapSchema>;

/** The params of `connect`. */
export const ConnectSchema = Type.Object(
  {
    protocol: Type.Object({ min: version, max: version }, closed),
    auth: Type.Object({ token: Type.String({ minLength: 1, maxLength: 1024 }) }, closed),
    client: Type.Object(
      {
        name,
        version: Type.Optional(name),
        platform: Type.Optional(name),
      },
      closed,
    ),
  },
  closed,
);
export type ConnectParams = Static<typeof ConnectSchema>;

/** What `connect` is answered with. */
export const HelloSchema = Type.Object(
  {
    protocol: version,
    server: Type.Object({ name: Type.String(), version: Type.String() }, closed),
    /** Those that this token may call. */
    methods: Type.Array(Type.String()),
    events: Type.Array(Type.String()),
    limits: LimitsSchema,
    scopes: Type.Array(ScopeSchema),
    /** Of the token that was shown. */
    tokenId: Type.Optional(Type.String()),
    /** Absent: the unnamed user, or with `allUsers` everybody. */
    userId: Type.Optional(Type.String()),
    allUsers: Type.Boolean(),
  },
  closed,
);
export type HelloPayload = Static<typeof HelloSchema>;

/** The version that both sides speak, the newest; `null`: none. */
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

/** A text from a client as a request, or why it is none; `id` where it could be made out, so that it can be answered. */
export function* readRequestInSteps(text: string): Steps<ReadRequest> {
  let value: unknown;
  try {
    value = isLongJson(text) ? yield* parseJsonInSteps(text) : JSON.parse(text);
  } catch {
    return { id: null, problem: "The frame is no JSON" };
  }
  const [mistake] = mistakesIn(RequestFrameSchema, value);
  if (mistake === undefined) return { frame: value as RequestFrame };
  const where = mistake.path.length === 0 ? "The frame" : mistake.path.join(".");
  return { id: idIn(value), problem: `${where} ${mistake.expected}` };
}

function idIn(value: unknown): string | null {
  const { id } = (value ?? {}) as { readonly id?: unknown };
  return typeof id === "string" && mistakesIn(frameId, id).length === 0 ? id : null;
}
