import type { Json, Scope } from "../contract.ts";
import { checkStateKey, nextVersion, stateText } from "../rules.ts";
import type { WorkingState } from "../work.ts";
import { idKey, lookupText, userKey } from "./lookup-text.ts";
import type { SessionAccess } from "./session-access.ts";

/** A stored value. */
interface StateRow {
  readonly value: string;
  readonly version: number;
}

/**
 * State values in the table `state_values`. `set` locks the session, so that concurrent calls see each other's version.
 */
export function postgresState(access: SessionAccess): WorkingState {
  const { database } = access.parts;
  return {
    async get(scope, sessionId, key) {
      const [row] = await readState<StateRow>(access, scope, sessionId, "v.value, v.version", key);
      return row === undefined ? null : { value: JSON.parse(row.value) as Json, version: row.version };
    },
    async set(scope, sessionId, key, value, options = {}) {
      checkStateKey(key);
      const text = stateText(key, value);
      return database.transact(scope.userId ?? null, async (sql) => {
        const { uid } = (await access.lockHeld(sql, scope, sessionId, options.fence)).session;
        const read = "SELECT version FROM skein.state_values WHERE session_uid = $1 AND key = $2";
        const [held] = await sql<StateRow>(read, [uid, key]);
        const version = nextVersion(key, held?.version ?? null, options);
        await sql(
          `INSERT INTO skein.state_values (session_uid, key, user_id, value, version) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (session_uid, key) DO UPDATE SET value = excluded.value, version = excluded.version`,
          [uid, key, userKey(scope.userId), text, version],
        );
        return version;
      });
    },
    async delete(scope, sessionId, key) {
      const row = await access.get(scope, sessionId);
      if (row === null) return false;
      const text = "DELETE FROM skein.state_values WHERE session_uid = $1 AND key = $2 RETURNING key";
      const values = [row.session.uid, lookupText(key)];
      return database.transact(scope.userId ?? null, async (sql) => (await sql(text, values)).length > 0);
    },
    async keys(scope, sessionId) {
      const rows = await readState<{ key: string }>(access, scope, sessionId, "v.key", null);
      return rows.map(({ key }) => key).toSorted();
    },
  };
}

function readState<Row>(
  { parts }: SessionAccess,
  scope: Scope,
  sessionId: string,
  columns: string,
  key: string | null,
): Promise<Row[]> {
  const text = `SELECT ${columns} FROM skein.sessions AS s JOIN skein.state_values AS v ON v.session_uid = s.uid
    WHERE s.user_id = $1 AND s.id_key = $2 AND s.removed_at IS NULL AND v.user_id = $1
      AND ($3::text IS NULL OR s.agent_id = $3) AND ($4::text IS NULL OR v.key = $4)`;
  return parts.database.read(scope.userId ?? null, text, [
    userKey(scope.userId),
    idKey(sessionId),
    scope.agentId ?? null,
    key === null ? null : lookupText(key),
  ]);
}
