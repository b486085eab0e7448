/**
 * The functions of the first migration. Each call is one transaction and one round trip. `set_config(…, true)` sets the
 * user for that transaction only, so connections carry no state between calls.
 */

/**
 * The keys of a session and its descendants. `UNION` drops duplicates, so the query terminates even if the lineage is
 * circular.
 */
const treeKeys = `
CREATE FUNCTION skein.tree_keys(p_user text, p_key text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE tree (key) AS (
    SELECT p_key COLLATE "C"
    UNION
    SELECT child.key FROM tree JOIN skein.sessions AS child ON child.spawned_by = tree.key
    WHERE child.user_id = p_user AND child.removed_at IS NULL
  ) SELECT key FROM tree
$$;`;

/**
 * A session row and the positions of its tip. `p_lock` is `write` for a change to the session, `erase` for a change to
 * its entries, and `copy` to prevent an erasure until the copy is stored.
 */
const readSession = `
CREATE FUNCTION skein.read_session(p_user text, p_agent text, p_id text, p_lock text)
RETURNS TABLE (session json, tip json)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s skein.sessions;
BEGIN
  PERFORM set_config('skein.user_id', p_user, true);
  IF p_lock = 'write' THEN
    SELECT * INTO s FROM skein.sessions
      WHERE user_id = p_user AND id_key = p_id AND (p_agent IS NULL OR agent_id = p_agent) FOR NO KEY UPDATE;
  ELSIF p_lock = 'erase' THEN
    SELECT * INTO s FROM skein.sessions
      WHERE user_id = p_user AND id_key = p_id AND (p_agent IS NULL OR agent_id = p_agent) FOR UPDATE;
  ELSIF p_lock = 'copy' THEN
    SELECT * INTO s FROM skein.sessions
      WHERE user_id = p_user AND id_key = p_id AND (p_agent IS NULL OR agent_id = p_agent) FOR KEY SHARE;
  ELSE
    SELECT * INTO s FROM skein.sessions
      WHERE user_id = p_user AND id_key = p_id AND (p_agent IS NULL OR agent_id = p_agent);
  END IF;
  IF s.uid IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY SELECT to_json(s), (
    SELECT to_json(t) FROM (
      SELECT e.seq, e.chain_seq, e.up_seq, e.leaf_seq, e.context_seq, e.model_seq, e.thinking_seq, e.system_seq
      FROM skein.entries AS e WHERE e.session_uid = s.uid AND e.seq = s.tip_seq
    ) AS t);
END
$$;`;

/**
 * Reads the branch backward, chain by chain, from the tip to where the context starts. Without a compaction, at most
 * `p_limit` entries are read.
 */
const readContext = `
CREATE FUNCTION skein.read_context(p_user text, p_agent text, p_id text, p_limit integer)
RETURNS TABLE (what text, seq integer, line text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s record;
  t record;
  v_from integer;
  v_left integer := p_limit;
BEGIN
  PERFORM set_config('skein.user_id', p_user, true);
  SELECT x.uid, x.tip_seq, x.is_odd INTO s FROM skein.sessions AS x
    WHERE x.user_id = p_user AND x.id_key = p_id AND x.removed_at IS NULL
      AND (p_agent IS NULL OR x.agent_id = p_agent);
  IF NOT FOUND THEN
    RETURN;
  END IF;
  RETURN QUERY SELECT CASE WHEN s.is_odd THEN 'odd' ELSE 'session' END, 0, s.uid;
  IF s.is_odd OR s.tip_seq IS NULL THEN
    RETURN;
  END IF;
  SELECT e.* INTO t FROM skein.entries AS e WHERE e.session_uid = s.uid AND e.seq = s.tip_seq;
  RETURN QUERY SELECT 'state', e.seq, e.line FROM skein.entries AS e
    WHERE e.session_uid = s.uid AND e.seq IN (t.model_seq, t.thinking_seq, t.system_seq);
  v_from := coalesce(t.context_seq, 0);
  IF t.context_seq IS NOT NULL THEN
    v_left := NULL;
  END IF;
  LOOP
    RETURN QUERY SELECT 'path', e.seq, e.line FROM skein.entries AS e
      WHERE e.session_uid = s.uid
        AND e.seq BETWEEN greatest(t.chain_seq, v_from, t.seq - v_left + 1) AND t.seq;
    v_left := v_left - (t.seq - t.chain_seq + 1);
    EXIT WHEN t.chain_seq <= v_from OR t.up_seq IS NULL OR v_left <= 0;
    SELECT e.* INTO t FROM skein.entries AS e WHERE e.session_uid = s.uid AND e.seq = t.up_seq;
  END LOOP;
END
$$;`;

/**
 * Creates a session without entries. Because the lock is shared, sessions can be created concurrently, but not while
 * all of the user's data is being deleted.
 */
const createSession = `
CREATE FUNCTION skein.create_session(p_user text, p_session json) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('skein.user_id', p_user, true);
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('skein user ' || p_user, 0));
  INSERT INTO skein.sessions SELECT * FROM json_populate_record(NULL::skein.sessions, p_session);
END
$$;`;

/** Deletes all of a user's rows and returns the deleted sessions. */
const purgeUser = `
CREATE FUNCTION skein.purge_user(p_user text) RETURNS SETOF json
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('skein.user_id', p_user, true);
  PERFORM pg_advisory_xact_lock(hashtextextended('skein user ' || p_user, 0));
  RETURN QUERY SELECT to_json(s) FROM skein.sessions AS s WHERE s.user_id = p_user ORDER BY s.uid FOR UPDATE;
  DELETE FROM skein.blobs WHERE user_id = p_user;
  DELETE FROM skein.state_values WHERE user_id = p_user;
  DELETE FROM skein.entry_search WHERE user_id = p_user;
  DELETE FROM skein.entries WHERE user_id = p_user;
  DELETE FROM skein.sessions WHERE user_id = p_user;
END
$$;`;

const addEntries = `
CREATE FUNCTION skein.add_entries(p_user text, p_entries json, p_search json) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('skein.user_id', p_user, true);
  INSERT INTO skein.entries SELECT * FROM json_populate_recordset(NULL::skein.entries, p_entries);
  INSERT INTO skein.entry_search SELECT * FROM json_populate_recordset(NULL::skein.entry_search, p_search);
END
$$;`;

/**
 * Writes entries and the session row in one transaction. `p_revision` is the revision that the entries were planned
 * for. A run also passes its ID and fence. Both are columns of the locked row: after waiting for the lock, a condition
 * on another table would be checked against an outdated snapshot. The fence columns are never changed here.
 */
const append = `
CREATE FUNCTION skein.append(
  p_user text, p_uid text, p_revision bigint, p_run text, p_fence bigint,
  p_session json, p_entries json, p_search json
) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s record;
BEGIN
  PERFORM set_config('skein.user_id', p_user, true);
  SELECT x.revision, x.fence, x.holder_run INTO s FROM skein.sessions AS x
    WHERE x.uid = p_uid AND x.user_id = p_user FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN 'gone';
  END IF;
  IF p_run IS NOT NULL AND (s.holder_run IS DISTINCT FROM p_run OR s.fence IS DISTINCT FROM p_fence) THEN
    RETURN 'fenced';
  END IF;
  IF s.revision <> p_revision THEN
    RETURN 'stale';
  END IF;
  INSERT INTO skein.entries SELECT * FROM json_populate_recordset(NULL::skein.entries, p_entries);
  INSERT INTO skein.entry_search SELECT * FROM json_populate_recordset(NULL::skein.entry_search, p_search);
  UPDATE skein.sessions AS x SET
    key = n.key, kind = n.kind, channel = n.channel, label = n.label, spawn_id = n.spawn_id,
    spawned_by = n.spawned_by, forked_from = n.forked_from, archived = n.archived, names = n.names,
    sort_name = n.sort_name, updated_at = n.updated_at, tokens = n.tokens, cost = n.cost, bytes = n.bytes,
    removed_at = n.removed_at, version = n.version, tip_seq = n.tip_seq, is_odd = n.is_odd,
    revision = p_revision + 1, meta = coalesce(n.meta, x.meta), detail = n.detail
  FROM json_populate_record(NULL::skein.sessions, p_session) AS n WHERE x.uid = p_uid;
  RETURN 'written';
END
$$;`;

/**
 * Finds entries with any of the terms. Row-level security would prevent the use of the index on words, so this function
 * runs with the privileges of its owner, which can bypass row-level security. It therefore requires the user twice, as
 * an argument and as the transaction's setting, and compares every row with it.
 */
const search = `
CREATE FUNCTION skein.search(
  p_user text, p_agent text, p_session text, p_role text, p_tree text, p_descendants boolean, p_agents text[],
  p_query text, p_terms text[], p_prefixes boolean[], p_most integer
) RETURNS TABLE (session_uid text, seq integer, role text, "time" bigint, length integer, counts integer[], entries bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_tree text[] := NULL;
  v_entries bigint;
BEGIN
  IF p_user IS NULL OR p_user IS DISTINCT FROM nullif(current_setting('skein.user_id', true), '') THEN
    RAISE EXCEPTION 'skein.search requires the user of this transaction' USING ERRCODE = '42501';
  END IF;
  IF p_tree IS NOT NULL THEN
    v_tree := CASE WHEN p_descendants THEN ARRAY(SELECT skein.tree_keys(p_user, p_tree)) ELSE ARRAY[p_tree] END;
  END IF;
  SELECT count(*) INTO v_entries
    FROM skein.sessions AS s JOIN skein.entry_search AS e ON e.session_uid = s.uid AND e.user_id = p_user AND e.part = 0
    WHERE s.user_id = p_user AND s.removed_at IS NULL
      AND (p_agent IS NULL OR s.agent_id = p_agent) AND (p_session IS NULL OR s.id_key = p_session)
      AND (p_agents IS NULL OR s.agent_id = ANY (p_agents) OR s.key = ANY (v_tree))
      AND (p_role IS NULL OR e.role = p_role);
  RETURN QUERY
    WITH hits AS (
      SELECT e.session_uid, e.seq, e.role, e."time", e.length, e.part, e.words
      FROM skein.entry_search AS e JOIN skein.sessions AS s ON s.uid = e.session_uid
      WHERE e.words @@ p_query::tsquery AND e.user_id = p_user AND s.user_id = p_user AND s.removed_at IS NULL
        AND (p_agent IS NULL OR s.agent_id = p_agent) AND (p_session IS NULL OR s.id_key = p_session)
        AND (p_agents IS NULL OR s.agent_id = ANY (p_agents) OR s.key = ANY (v_tree))
        AND (p_role IS NULL OR e.role = p_role)
      ORDER BY e."time" DESC, e.session_uid DESC, e.seq DESC LIMIT p_most
    ), counted AS (
      SELECT h.session_uid, h.seq, h.role, h."time", h.length, t.at,
        sum(cardinality(w.positions)) FILTER (WHERE w.lexeme = t.term OR (t.prefix AND starts_with(w.lexeme, t.term)))
          AS occurrences
      FROM hits AS h, unnest(h.words) AS w, unnest(p_terms, p_prefixes) WITH ORDINALITY AS t (term, prefix, at)
      GROUP BY h.session_uid, h.seq, h.role, h."time", h.length, t.at
    )
    SELECT c.session_uid, c.seq, c.role, c."time", c.length,
      array_agg(coalesce(c.occurrences, 0)::integer ORDER BY c.at), v_entries
    FROM counted AS c GROUP BY c.session_uid, c.seq, c.role, c."time", c.length
    ORDER BY c."time" DESC, c.session_uid DESC, c.seq DESC;
END
$$;`;

export function createFunctions(): string {
  return [treeKeys, readSession, readContext, createSession, purgeUser, addEntries, append, search].join(
    "\n",
  );
}
