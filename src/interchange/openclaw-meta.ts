import type { SessionMeta } from "../store/contract.ts";
import type { Losses } from "./imported.ts";
import type { JsonObject } from "./json-lines.ts";
import { objectField, textField } from "./json-lines.ts";

/** What a row of OpenClaw's `sessions.json` says of a session, as metadata of ours. */

const longest = 512;
const usedFields = new Set(
  [
    "sessionId sessionFile updatedAt label displayName subject channel lastChannel deliveryContext lastTo",
    "lastAccountId lastThreadId providerOverride modelOverride thinkingLevel verboseLevel sendPolicy spawnedBy",
    "spawnDepth subagentRole",
  ].flatMap((names) => names.split(" ")),
);

/** Without `spawnedBy`, which takes knowing the other rows. */
export function openclawMeta(row: JsonObject, losses: Losses): SessionMeta {
  const left = Object.keys(row).filter((field) => !usedFields.has(field));
  if (left.length > 0)
    losses.add("Fields that our sessions have no place for were left out.", names(left), left.length);
  const unusable: string[] = [];
  const text = (field: string): string | null => {
    const value = row[field];
    if (value === undefined || value === null) return null;
    const tidy = typeof value === "string" ? value.trim() : "";
    if (tidy !== "" && tidy.length <= longest && tidy.isWellFormed()) return tidy;
    unusable.push(field);
    return null;
  };
  const oneOf = <T extends string>(field: string, values: readonly T[]): T | null => {
    const value = text(field);
    const known = values.find((each) => each === value) ?? null;
    if (value !== null && known === null) unusable.push(field);
    return known;
  };
  const provider = text("providerOverride");
  const model = text("modelOverride");
  const depth = row.spawnDepth;
  const meta = {
    label: text("label"),
    displayName: text("displayName") ?? text("subject"),
    channel: text("channel") ?? text("lastChannel"),
    delivery: deliveryOf(row),
    model: model !== null && provider !== null ? `${provider}/${model}` : model,
    thinkingLevel: text("thinkingLevel"),
    verboseLevel: oneOf("verboseLevel", ["off", "on", "full"]),
    sendPolicy: oneOf("sendPolicy", ["allow", "deny"]),
    spawnDepth: typeof depth === "number" && Number.isSafeInteger(depth) && depth >= 0 ? depth : null,
    role: oneOf("subagentRole", ["orchestrator", "leaf"]),
  };
  if (unusable.length > 0)
    losses.add("Fields whose value cannot be used were left out.", names(unusable), unusable.length);
  return withoutNulls(meta);
}

/** Where answers go: told as a whole, or in four fields of older rows. */
function deliveryOf(row: JsonObject): SessionMeta["delivery"] | null {
  const context = objectField(row, "deliveryContext");
  const from: JsonObject = context ?? {
    channel: row.lastChannel,
    to: row.lastTo,
    accountId: row.lastAccountId,
    threadId: row.lastThreadId,
  };
  const channel = textField(from, "channel");
  if (channel === null || channel === "") return null;
  const fields = { to: from.to, accountId: from.accountId, threadId: from.threadId };
  const told = Object.entries(fields).flatMap(([field, value]) => {
    const known = typeof value === "number" ? String(value) : value;
    return typeof known === "string" && known !== "" && known.length <= longest ? [[field, known]] : [];
  });
  return { channel, ...Object.fromEntries(told) };
}

function withoutNulls(fields: Readonly<Record<string, unknown>>): SessionMeta {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)) as SessionMeta;
}

function names(fields: readonly string[]): string {
  const shown = fields.slice(0, 12).map((field) => field.slice(0, 40));
  return fields.length > shown.length ? `${shown.join(", ")}, …` : shown.join(", ");
}
