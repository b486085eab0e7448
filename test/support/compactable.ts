import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionRecord, Store } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import type { EntryDraft } from "../../src/index.ts";
import { textOfTokens } from "./conversation.ts";
import { assistantMessage } from "./session-text.ts";

/** Sessions that are long enough to be compacted. */

export const scope = { userId: "ann", agentId: "main" };
// Keeps about 4,000 tokens.
const contextWindow = 10_000;
export const base = { contextWindow, mode: "safeguard", trigger: "threshold" } as const;

export const said = (text: string): EntryDraft => ({
  type: "message",
  message: { role: "user", content: text },
});
export const answered = (text: string): EntryDraft => ({ type: "message", message: assistantMessage(text) });
export const tenTurns = Array.from({ length: 10 }, (_, index) => [
  { id: `u${index}`, draft: said(`ask ${index} ${textOfTokens(450)}`) },
  { id: `a${index}`, draft: answered(`answer ${index} ${textOfTokens(450)}`) },
]).flat();

export const roots: string[] = [];
export const stores: Record<string, () => Promise<Store>> = {
  memory: () => createStore({ memory: true }),
  files: async () => {
    const root = mkdtempSync(join(tmpdir(), "skein-compact-"));
    roots.push(root);
    return createStore({ dir: root, durability: "os" });
  },
};
/** Removes the files that the stores left on disk. */
export function removeRoots(): void {
  for (const root of roots) rmSync(root, { recursive: true, force: true });
}

/** Copies methods to properties, for an object that inherits from one with private fields. */
export function bound<T extends object>(object: T, names: readonly (keyof T)[]): PropertyDescriptorMap {
  return Object.fromEntries(
    names.map((name) => [name, { value: (object[name] as (...args: unknown[]) => unknown).bind(object) }]),
  );
}

export async function begin(store: Store): Promise<SessionRecord> {
  const session = await store.sessions.create(scope, {
    key: "agent:main:session:s",
    sessionId: "s",
    cwd: "/w",
  });
  await store.sessions.append(scope, "s", tenTurns);
  return session;
}

export const allIds = tenTurns.map(({ id }) => id);
