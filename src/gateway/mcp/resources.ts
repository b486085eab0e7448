import type { ListResourcesResult, ReadResourceResult, Resource } from "@modelcontextprotocol/server";
import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from "@modelcontextprotocol/server";
import { stringifyJson } from "../../core/json.ts";
import { present } from "../../core/present.ts";
import { displayKey } from "../../core/references.ts";
import type { ToolResult } from "../../tools/contract.ts";
import { isRefusal } from "../../tools/refusal.ts";
import { resultOf } from "./call-tool.ts";
import type { McpAsker, McpParts } from "./contract.ts";

/**
 * Sessions as resources: what `sessions_list` and `sessions_history` show this asker, and nothing else. The name in a URI is
 * the key as the asker would write it; the whole key, the session id and the label are read too.
 */

const base = "skein://sessions/";
const mimeType = "application/json";
const pageSize = 100;
const messagesRead = 1000;

export const resourceTemplate = {
  uriTemplate: `${base}{key}`,
  name: "session",
  title: "A session",
  description:
    "The newest messages of a session, as sessions_history gives them. key: as sessions_list shows it, percent-encoded.",
  mimeType,
} as const;

export function uriOf(reference: string): string {
  return base + encodeURIComponent(reference);
}

/** What a URI names; `null`: no session. */
export function referenceIn(uri: string): string | null {
  if (!uri.startsWith(base)) return null;
  try {
    const reference = decodeURIComponent(uri.slice(base.length));
    return reference === "" ? null : reference;
  } catch {
    return null; // not percent-encoded as URIs are: it names nothing
  }
}

/** Every URI under which an asker may have asked for a session. */
export function urisOf(
  { scope }: Pick<McpParts, "scope">,
  { agentId, sessionKey }: McpAsker,
  session: { readonly sessionKey: string; readonly sessionId: string },
): readonly string[] {
  const display = displayKey(session.sessionKey, { agentId, key: sessionKey, scope });
  return [...new Set([display, session.sessionKey, session.sessionId])].map(uriOf);
}

export async function listResources(
  parts: McpParts,
  asker: McpAsker,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<ListResourcesResult> {
  const args = { limit: pageSize, ...present({ cursor }) };
  const result = await resultOf(parts, asker, { name: "sessions_list", args, signal });
  if (isRefusal(result)) throw invalid(result);
  const { sessions, nextCursor } = result as { sessions: readonly Row[]; nextCursor?: string };
  return { resources: sessions.map(resourceOf), ...present({ nextCursor }) };
}

/** A row of `sessions_list`, as far as it is told here. */
interface Row {
  readonly key: string;
  readonly kind: string;
  readonly label?: string;
  readonly displayName?: string;
  readonly updatedAt: number;
}

function resourceOf({ key, kind, label, displayName, updatedAt }: Row): Resource {
  return {
    uri: uriOf(key),
    name: key,
    ...present({ title: label ?? displayName }),
    description: `A session (${kind}).`,
    mimeType,
    annotations: { lastModified: new Date(updatedAt).toISOString() },
  };
}

export async function readResource(
  parts: McpParts,
  asker: McpAsker,
  uri: string,
  signal: AbortSignal,
): Promise<ReadResourceResult> {
  const result = await historyOf(parts, asker, uri, { limit: messagesRead, signal });
  return { contents: [{ uri, mimeType, text: stringifyJson(result) }] };
}

/** Throws as reading does where the asker may not, and reads next to nothing. */
export async function checkResource(
  parts: McpParts,
  asker: McpAsker,
  uri: string,
  signal: AbortSignal,
): Promise<void> {
  await historyOf(parts, asker, uri, { limit: 1, signal });
}

async function historyOf(
  parts: McpParts,
  asker: McpAsker,
  uri: string,
  { limit, signal }: { readonly limit: number; readonly signal: AbortSignal },
): Promise<ToolResult> {
  const reference = referenceIn(uri);
  if (reference === null) {
    throw new ResourceNotFoundError(uri, `No such resource: the resources are ${base}{key}.`);
  }
  const args = { sessionKey: reference, limit };
  const result = await resultOf(parts, asker, { name: "sessions_history", args, signal });
  if (!isRefusal(result)) return result;
  if (result.code === "not_found") throw new ResourceNotFoundError(uri, String(result.error));
  throw invalid(result, uri);
}

function invalid({ code, error }: ToolResult, uri?: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, String(error), { code, ...present({ uri }) });
}
