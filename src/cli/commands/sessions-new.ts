import { transcriptPath } from "../../compose.ts";
import { createIdSource } from "../../core/ids.ts";
import { parseKey } from "../../core/keys.ts";
import { present } from "../../core/present.ts";
import { displayKey } from "../../core/references.ts";
import type { ForkedPayload, ResetPayload } from "../../protocol/session-changes.ts";
import { nameNew } from "../../sessions/name-new.ts";
import { sessionState } from "../../sessions/session-state.ts";
import { findEntryId } from "../folder/find-entry.ts";
import { findSession } from "../folder/find-session.ts";
import { withFolder } from "../folder/with-folder.ts";
import { answer } from "../output/answer.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { pathFrom } from "../output/terminal.ts";

export interface NewOptions extends GlobalOptions {
  readonly label?: string;
  readonly cwd?: string;
  readonly id?: string;
}

export async function newCommand(
  terminal: Terminal,
  name: string | undefined,
  options: NewOptions,
): Promise<void> {
  await withFolder(
    terminal,
    options,
    async ({ store, scope, asker, config }) => {
      const names = nameNew(name, asker, { sessionId: options.id, newId: createIdSource() });
      const placeOf = (key: string) => config.agents[agentOf(key)]?.cwd ?? terminal.cwd;
      const record = await store.sessions.create(scope, {
        ...names,
        cwd: options.cwd === undefined ? placeOf(names.key) : pathFrom(terminal, options.cwd),
        meta: present({ label: options.label }),
      });
      answer(terminal, options, sessionState(record), [
        `made ${displayKey(record.key, asker)}`,
        ["id", record.sessionId],
        ["file", transcriptPath(store, record)],
      ]);
    },
    "create",
  );
}

function agentOf(key: string): string {
  const parsed = parseKey(key);
  return parsed.form === "special" ? "main" : parsed.agentId;
}

export interface ForkOptions extends GlobalOptions {
  readonly at?: string;
  readonly id?: string;
}

export async function forkCommand(terminal: Terminal, name: string, options: ForkOptions): Promise<void> {
  await withFolder(terminal, options, async (folder) => {
    const { store, scope, asker } = folder;
    const from = await findSession(folder, name);
    const entryId = options.at === undefined ? from.leafId : await findEntryId(folder, from, options.at);
    const names = nameNew(
      undefined,
      { agentId: from.agentId },
      { sessionId: options.id, newId: createIdSource() },
    );
    const record = await store.sessions.fork(scope, from.sessionId, entryId, { ...names, cwd: from.cwd });
    const payload: ForkedPayload = {
      ...sessionState(record),
      forkedFrom: { key: from.key, sessionId: from.sessionId, entryId },
    };
    answer(terminal, options, payload, [
      `made ${displayKey(record.key, asker)} from ${displayKey(from.key, asker)}`,
      ["id", record.sessionId],
      ["file", transcriptPath(store, record)],
    ]);
  });
}

export async function resetCommand(terminal: Terminal, name: string, options: GlobalOptions): Promise<void> {
  await withFolder(terminal, options, async (folder) => {
    const { store, scope, asker } = folder;
    const { sessionId } = await findSession(folder, name);
    const { old, fresh } = await store.sessions.reset(scope, sessionId);
    const payload: ResetPayload = {
      key: fresh.key,
      sessionId: fresh.sessionId,
      previous: { key: old.key, sessionId: old.sessionId },
    };
    answer(terminal, options, payload, [
      `${displayKey(fresh.key, asker)} begins anew`,
      ["id", fresh.sessionId],
      ["before", old.key],
    ]);
  });
}
