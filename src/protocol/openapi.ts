import * as s from "../core/schema.ts";
import { WireErrorSchema, wireErrors } from "./errors.ts";
import { eventFilter, eventPatterns, eventTable } from "./events.ts";
import { GapSchema } from "./frames.ts";
import type { Method } from "./method.ts";
import { methodNames, methodTable } from "./method-table.ts";
import { RunRowSchema } from "./runs.ts";
import { WireEntrySchema } from "./session-details.ts";
import { SessionRowSchema } from "./session-list.ts";
import { LinkedSchema, LinkSchema } from "./tokens.ts";

type Json = Readonly<Record<string, unknown>>;

const { withRefs, components } = schemaRefs({
  Error: WireErrorSchema,
  SessionRow: SessionRowSchema,
  Run: RunRowSchema,
  Entry: WireEntrySchema,
});

/** Returns the gateway's HTTP API as an OpenAPI 3.1 document. */
export function openApiDocument({ version }: { readonly version: string }): Json {
  const methods = methodNames.filter((name) => (methodTable[name] as Method).isSocketOnly !== true);
  return {
    openapi: "3.1.0",
    info: { title: "Skein gateway", version },
    security: [{ token: [] }],
    paths: {
      ...Object.fromEntries(methods.map((name) => [`/rpc/${name}`, { post: operation(name) }])),
      "/events": { get: events() },
      "/healthz": { get: plain("healthz", "Reports whether the process is alive.", [200], []) },
      "/readyz": { get: plain("readyz", "Reports whether the gateway accepts requests.", [200, 503], []) },
      "/metrics": {
        get: plain("metrics", "Returns metrics in Prometheus format. Requires a token for all users.", [200]),
      },
      "/channels/{id}/inbound": { post: inbound() },
      "/link": { post: link() },
    },
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      responses: {
        Error: {
          description: "The request was rejected or failed.",
          content: json(withRefs(WireErrorSchema)),
        },
      },
      schemas: components(),
    },
  };
}

function operation(name: keyof typeof methodTable): Json {
  const { scope, about, params, result, needsAll, adminOnly, isIdempotent, isDestructive }: Method =
    methodTable[name];
  return {
    operationId: name,
    tags: [name.split(".")[0]],
    summary: about,
    "x-scope": scope,
    ...(needsAll === true ? { "x-needs-all-users": true } : {}),
    ...(adminOnly === undefined ? {} : { "x-admin-only": adminOnly }),
    ...(isIdempotent === true ? { "x-idempotent": true } : {}),
    ...(isDestructive === true ? { "x-destructive": true } : {}),
    requestBody: { required: needsBody(params), content: json(withRefs(params)) },
    responses: { 200: { description: "Done.", content: json(withRefs(result)) }, ...refusals() },
  };
}

function needsBody(params: s.Schema): boolean {
  const {
    required = [],
    oneOf,
    anyOf,
  } = params as {
    readonly required?: readonly string[];
    readonly oneOf?: unknown;
    readonly anyOf?: unknown;
  };
  return required.length > 0 || oneOf !== undefined || anyOf !== undefined;
}

function refusals(): Json {
  const statuses = [...new Set(Object.values(wireErrors).map(({ status }) => status))];
  return Object.fromEntries(statuses.map((status) => [status, { $ref: "#/components/responses/Error" }]));
}

function events(): Json {
  const query = (name: string, items: s.Schema, most: number) => ({
    name,
    in: "query",
    schema: { type: "array", items, maxItems: most },
  });
  const kinds = Object.entries({ ...eventTable, gap: { payload: GapSchema } });
  return {
    operationId: "events",
    summary: "Streams events. Each event's data is its frame, and its ID is its seq.",
    "x-scope": "read",
    "x-events": Object.fromEntries(kinds.map(([name, { payload }]) => [name, withRefs(payload)])),
    parameters: [
      query("keys", s.string({ minLength: 1, maxLength: 4096 }), 100),
      query("events", s.choice([...eventPatterns]), 64),
      { name: "agentId", in: "query", schema: eventFilter.agentId },
      { name: "userId", in: "query", schema: eventFilter.userId },
      { name: "Last-Event-ID", in: "header", schema: { type: "integer", minimum: 0 } },
    ],
    responses: {
      200: {
        description: "The event stream.",
        content: { "text/event-stream": { schema: { type: "string" } } },
      },
      ...refusals(),
    },
  };
}

function plain(operationId: string, summary: string, statuses: readonly number[], security?: []): Json {
  return {
    operationId,
    summary,
    ...(security === undefined ? {} : { security }),
    responses: Object.fromEntries(statuses.map((status) => [status, { description: summary }])),
  };
}

/** Authenticated by a signature made with the channel's secret instead of a token. */
function inbound(): Json {
  return {
    operationId: "inbound",
    summary: "Accepts a signed message for a webhook channel.",
    security: [],
    parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
    requestBody: { required: true, content: json({ type: "object" }) },
    responses: {
      200: { description: "The message was already accepted." },
      202: { description: "Accepted." },
    },
  };
}

/** Called by a console page that was opened with a link and has no token yet. */
function link(): Json {
  return {
    operationId: "link",
    summary: "Exchanges a one-time link code for a token.",
    security: [],
    requestBody: { required: true, content: json(LinkSchema) },
    responses: { 200: { description: "Done.", content: json(LinkedSchema) }, ...refusals() },
  };
}

function json(schema: unknown): Json {
  return { "application/json": { schema } };
}

/** Replaces named schemas with references. Schemas are compared by their JSON. */
export function schemaRefs(named: Readonly<Record<string, s.Schema>>) {
  const names = new Map(Object.entries(named).map(([name, schema]) => [JSON.stringify(schema), name]));
  const replaced = (value: unknown, isTop: boolean): unknown => {
    if (Array.isArray(value)) return value.map((each) => replaced(each, false));
    if (typeof value !== "object" || value === null) return value;
    const name = isTop ? undefined : names.get(JSON.stringify(value));
    if (name !== undefined) return { $ref: `#/components/schemas/${name}` };
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replaced(each, false)]));
  };
  return {
    withRefs: (schema: s.Schema): unknown => replaced(schema, false),
    components: () =>
      Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, replaced(schema, true)])),
  };
}
