import type { Redactor } from "../../access/redaction/redactor.ts";
import { present } from "../../core/present.ts";
import type { SessionRow } from "../../protocol/session-list.ts";
import type { App } from "../../sessions/app.ts";
import { childrenOf, listRow } from "../../sessions/list.ts";
import type { Asker, Caller } from "../../sessions/session-access.ts";
import type { ListedSession, SessionPage, SessionReach } from "../../store/contract.ts";
import { scopeOf } from "./scope.ts";

export type ToolRow = Omit<SessionRow, "userId" | "cwd" | "summary">;

/**
 * The rows of a page as one asker may see them: short keys, and of parents and children those alone that they may list,
 * so that nothing depends on a session that they may not see.
 */
export async function listRows(
  asker: Asker & Pick<Caller, "isOperator">,
  page: SessionPage,
  reach: SessionReach,
  app: Pick<App, "access" | "store" | "runs" | "redactor" | "config">,
): Promise<{ readonly row: ToolRow; readonly session: ListedSession }[]> {
  const { store, runs, access } = app;
  const works = await runs.work(page.sessions.map(({ uid }) => uid));
  const parents = await visibleParents(asker, page.sessions, app);
  // Every list of a store that is behind spends time on catching up. `behind` counts all sessions, so for a sandboxed
  // asker it may not matter.
  const withChildren = asker.sandboxed || page.behind === 0;
  const keys = withChildren ? page.sessions.map(({ key }) => key) : [];
  const children = await childrenOf(store.sessions, scopeOf(asker), keys, reach);
  const seesPaths = !asker.sandboxed && (app.config.tools.sessions.showPaths || asker.isOperator === true);
  const paths = seesPaths ? store.upkeep?.workingSets(page.sessions) : null;
  const rows = [];
  for (const session of page.sessions) {
    const { key, uid, meta } = session;
    const extras = {
      childSessions: (children.get(key) ?? []).map((child) => access.display(asker, child)),
      work: works.get(uid),
      transcriptPath: paths?.get(uid),
    };
    const { userId: _userId, spawnedBy: _spawnedBy, ...row } = listRow(session, present(extras));
    const parent = meta.spawnedBy !== undefined && parents.has(meta.spawnedBy) ? meta.spawnedBy : null;
    const names = present({
      key: access.display(asker, key),
      spawnedBy: parent === null ? null : access.display(asker, parent),
    });
    rows.push({ row: { ...safeTexts(row, app.redactor), ...names }, session });
  }
  return rows;
}

/** Which of the sessions that spawned these the asker may list. */
async function visibleParents(
  asker: Asker,
  sessions: readonly ListedSession[],
  { store, access }: Pick<App, "store" | "access">,
): Promise<ReadonlySet<string>> {
  const visible = new Set(sessions.map(({ key }) => key));
  const parents = new Set(sessions.flatMap(({ meta }) => meta.spawnedBy ?? []));
  for (const key of parents) {
    if (visible.has(key)) continue;
    const [parent] = await store.sessions.find(scopeOf(asker), { by: "key", key });
    if (parent !== undefined && (await access.check(asker, parent, "list")) === null) visible.add(key);
  }
  return visible;
}

/** What people and programs have written; what names a session or its file stays as it is. */
function safeTexts(row: ToolRow, redactor: Redactor): ToolRow {
  const { key, sessionId, childSessions, transcriptPath, ...texts } = row;
  const safe = redactor.redactJson(texts).value as typeof texts;
  return { key, ...safe, sessionId, ...present({ childSessions, transcriptPath }) };
}
