import type { MethodApp } from "../../src/gateway/methods/dispatch.ts";
import type { EntryDraft } from "../../src/index.ts";
import { answered, said } from "./store-calls.ts";

/** Ann's data, by the names that others would use to request it. */
export interface WalkPlaces {
  readonly key: string;
  readonly sessionId: string;
  readonly label: string;
  readonly entryId: string;
  readonly secondId: string;
  readonly sha256: string;
  readonly trashed: string;
  readonly doomed: string;
  readonly resettable: string;
  readonly long: string;
  readonly busy: string;
  readonly runId: string;
  readonly approvalId: string;
  readonly deadId: string;
  readonly lostId: string;
  readonly waitingId: string;
  readonly queuedId: string;
  readonly spareTokenId: string;
}

const scope = { userId: "ann", agentId: "main" };
const folder = "/srv/ann-secret-90";

/** A session with one item of every kind, each with its own marker. */
export async function plantMain({ store }: MethodApp) {
  const sessionId = "ann-secret-1";
  const key = `agent:main:session:${sessionId}`;
  const label = "ANN-SECRET-2";
  const meta = { label, displayName: "ANN-SECRET-3" };
  await store.sessions.create(scope, { key, sessionId, cwd: folder, meta });
  const bytes = Buffer.from(`${"z".repeat(50)} ANN-SECRET-4`);
  const sha256 = await store.blobs.put(scope, bytes);
  const blob = { sha256, bytes: bytes.length, mimeType: "text/plain", was: "text" };
  const { entries } = await store.sessions.append(
    scope,
    sessionId,
    draftsOf(blob).map((draft) => ({ draft })),
  );
  const [entryId = "", secondId = ""] = entries.map(({ id }) => id);
  await store.sessions.append(scope, sessionId, [
    { draft: { type: "label", targetId: entryId, label: "ANN-SECRET-12" } },
  ]);
  return { key, sessionId, label, entryId, secondId, sha256 };
}

function draftsOf(blob: object): EntryDraft[] {
  const calling = answered("");
  if (calling.type !== "message" || calling.message.role !== "assistant") throw new Error("no answer");
  const content = [
    { type: "thinking" as const, thinking: "ANN-SECRET-5" },
    { type: "text" as const, text: "I say ANN-SECRET-6" },
    { type: "toolCall" as const, id: "c1", name: "run", arguments: { path: "ANN-SECRET-7" } },
  ];
  const made = { role: "toolResult" as const, toolCallId: "c1", toolName: "run", isError: true };
  return [
    said("wanted: ANN-SECRET-8"),
    answered("ANN-SECRET-9"),
    { type: "message", message: { ...calling.message, content } },
    {
      type: "message",
      message: { ...made, timestamp: 3, content: [{ type: "text", text: "[long]", skein: { blob } }] },
    } as EntryDraft,
    { type: "custom_message", customType: "note", content: "ANN-SECRET-10", display: true },
    { type: "session_info", name: "ANN-SECRET-11" },
    said("ANN-SECRET-13"),
    answered("ANN-SECRET-14"),
  ];
}

/** Enough text to summarize. */
export function longTalk(marker: string): string[] {
  const words = "of the gardens and temples of the old town we speak at length here ".repeat(160);
  return Array.from({ length: 24 }, (_, at) => `${marker} ${at} ${words}`);
}
