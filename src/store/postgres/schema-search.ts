/**
 * Stems of words, and codes for counting them. Rows from before this migration have no codes, and searches do not find
 * them until their words have been rewritten.
 */
const codes = `
ALTER TABLE skein.entry_search ADD COLUMN codes bytea;
CREATE INDEX entry_search_old ON skein.entry_search (user_id, session_uid) WHERE codes IS NULL;`;

const dropFirstSearch = `
DROP FUNCTION skein.search(text, text, text, text, text, boolean, text[], text, text[], boolean[], integer);`;

/** The search of versions 4 to 8. It looks up each word once per session. */
const search = `
CREATE FUNCTION skein.search(
  p_user text, p_agent text, p_session text, p_role text, p_tree text, p_descendants boolean, p_agents text[],
  p_words text[], p_weights double precision[], p_all text, p_since bigint, p_until bigint, p_most integer,
  p_scored integer
) RETURNS TABLE (
  session_uid text, seq integer, role text, "time" bigint, length integer, codes bytea, held integer[],
  entries bigint, holding integer[], behind bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_tree text[] := NULL;
  v_entries bigint;
  v_behind bigint;
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
  SELECT count(DISTINCT e.session_uid) INTO v_behind
    FROM skein.entry_search AS e WHERE e.user_id = p_user AND e.codes IS NULL;
  RETURN QUERY
    WITH hits AS MATERIALIZED (
      SELECT w.at::integer AS at, w.weight, h.session_uid, h.seq, h."time"
      FROM unnest(p_words, p_weights) WITH ORDINALITY AS w (word, weight, at), LATERAL (
        SELECT e.session_uid, e.seq, e."time"
        FROM skein.entry_search AS e JOIN skein.sessions AS s ON s.uid = e.session_uid
        WHERE e.words @@ w.word::tsquery AND e.user_id = p_user AND e.codes IS NOT NULL
          AND s.user_id = p_user AND s.removed_at IS NULL
          AND (p_agent IS NULL OR s.agent_id = p_agent) AND (p_session IS NULL OR s.id_key = p_session)
          AND (p_agents IS NULL OR s.agent_id = ANY (p_agents) OR s.key = ANY (v_tree))
          AND (p_role IS NULL OR e.role = p_role)
        ORDER BY e."time" DESC, e.session_uid DESC, e.seq DESC LIMIT p_most
      ) AS h
    ), counted AS (
      SELECT h.at, count(*) AS count FROM hits AS h GROUP BY h.at
    ), weighed AS (
      SELECT c.at, c.count, ln(1 + (greatest(0, v_entries - c.count) + 0.5) / (c.count + 0.5)) AS rarity FROM counted AS c
    ), whole AS (
      SELECT e.session_uid, e.seq, e."time"
      FROM skein.entry_search AS e JOIN skein.sessions AS s ON s.uid = e.session_uid
      WHERE p_all IS NOT NULL AND EXISTS (SELECT 1 FROM counted AS c WHERE c.count >= p_most)
        AND e.words @@ p_all::tsquery AND e.user_id = p_user AND e.codes IS NOT NULL
        AND s.user_id = p_user AND s.removed_at IS NULL
        AND (p_agent IS NULL OR s.agent_id = p_agent) AND (p_session IS NULL OR s.id_key = p_session)
        AND (p_agents IS NULL OR s.agent_id = ANY (p_agents) OR s.key = ANY (v_tree))
        AND (p_role IS NULL OR e.role = p_role)
      ORDER BY e."time" DESC LIMIT p_scored
    ), best AS (
      SELECT x.session_uid, x.seq, max(x."time") AS "time", sum(x.weight) AS weight,
        array_agg(x.at) FILTER (WHERE x.at IS NOT NULL) AS held
      FROM (
        SELECT h.session_uid, h.seq, h."time", h.at, h.weight * w.rarity AS weight
        FROM hits AS h JOIN weighed AS w ON w.at = h.at
        UNION ALL SELECT a.session_uid, a.seq, a."time", NULL, 1000 FROM whole AS a
      ) AS x
      WHERE x."time" BETWEEN p_since AND p_until
      GROUP BY x.session_uid, x.seq
      ORDER BY weight DESC, "time" DESC, x.session_uid DESC, x.seq DESC LIMIT p_scored
    )
    SELECT NULL::text, NULL::integer, NULL::text, NULL::bigint, NULL::integer, NULL::bytea, NULL::integer[],
      v_entries, ARRAY(
        SELECT coalesce(c.count, 0)::integer FROM generate_subscripts(p_words, 1) AS g (at) LEFT JOIN counted AS c ON c.at = g.at
        ORDER BY g.at
      ), v_behind
    UNION ALL
    SELECT e.session_uid, e.seq, e.role, e."time", e.length, e.codes, b.held, NULL::bigint, NULL::integer[], NULL::bigint
    FROM best AS b JOIN skein.entry_search AS e
      ON e.session_uid = b.session_uid AND e.seq = b.seq AND e.part = 0 AND e.user_id = p_user;
END
$$;`;

/** The migration that lets all stores rank hits in the same way. */
export function changeSearch(): string {
  return `${codes}\n${dropFirstSearch}\n${search}`;
}

/** The migration that adds marks for the kinds of answers in an entry to the entry's codes. */
export function renewCodes(): string {
  return `ALTER TABLE skein.entry_search DROP COLUMN codes;\n${codes}`;
}

/**
 * Selects entries of visible sessions. The planner expects very few visible sessions and would look up the word once
 * per session. `OFFSET 0` therefore keeps the lookup apart, and `IS TRUE` keeps the subquery from becoming a join, so
 * it is hashed once. In a search of one session, the lookup can use the index on its entries instead.
 */
const visibleEntries = (where: string) => `
        SELECT e.session_uid, e.seq, e."time" FROM (
          SELECT e.session_uid, e.seq, e."time" FROM skein.entry_search AS e
          WHERE ${where} AND e.user_id = p_user AND e.codes IS NOT NULL
            AND (p_session IS NULL OR e.session_uid = v_session) AND (p_role IS NULL OR e.role = p_role)
          OFFSET 0
        ) AS e
        WHERE (e.session_uid IN (SELECT v.uid FROM visible AS v)) IS TRUE`;

const withWord = "e.words @@ w.word::tsquery";

/**
 * Matches entries that contain all words. They are looked up only if a word occurs in too many entries to consider them
 * all.
 */
const withAllWords = `p_all IS NOT NULL AND EXISTS (SELECT 1 FROM counted AS c WHERE c.count >= p_most)
            AND e.words @@ p_all::tsquery`;

/**
 * Finds the entries with the rarest words. For each word, only its newest entries are considered, so a common word
 * cannot crowd out a rare one. Row-level security would prevent the use of the index on words, so this function runs
 * with the privileges of its owner, to whom the policy on words does not apply. It therefore requires the user twice,
 * as an argument and as the transaction's setting, and compares every row with it. The first row has no entry, only the
 * statistics.
 *
 * Each search is planned for its own arguments. All sessions of the user must fit into one hash table, whatever
 * `work_mem` is. The rows of the best entries are read by `part`, not by `part = 0`, which would also match the index
 * for counting.
 */
const searchEachWordOnce = `
CREATE OR REPLACE FUNCTION skein.search(
  p_user text, p_agent text, p_session text, p_role text, p_tree text, p_descendants boolean, p_agents text[],
  p_words text[], p_weights double precision[], p_all text, p_since bigint, p_until bigint, p_most integer,
  p_scored integer
) RETURNS TABLE (
  session_uid text, seq integer, role text, "time" bigint, length integer, codes bytea, held integer[],
  entries bigint, holding integer[], behind bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan
SET hash_mem_multiplier = 1000 AS $$
DECLARE
  v_tree text[] := NULL;
  v_session text := NULL;
BEGIN
  IF p_user IS NULL OR p_user IS DISTINCT FROM nullif(current_setting('skein.user_id', true), '') THEN
    RAISE EXCEPTION 'skein.search requires the user of this transaction' USING ERRCODE = '42501';
  END IF;
  IF p_tree IS NOT NULL THEN
    v_tree := CASE WHEN p_descendants THEN ARRAY(SELECT skein.tree_keys(p_user, p_tree)) ELSE ARRAY[p_tree] END;
  END IF;
  SELECT s.uid INTO v_session FROM skein.sessions AS s WHERE s.user_id = p_user AND s.id_key = p_session;
  RETURN QUERY
    WITH visible AS MATERIALIZED (
      SELECT s.uid FROM skein.sessions AS s
      WHERE s.user_id = p_user AND s.removed_at IS NULL
        AND (p_agent IS NULL OR s.agent_id = p_agent) AND (p_session IS NULL OR s.id_key = p_session)
        AND (p_agents IS NULL OR s.agent_id = ANY (p_agents) OR s.key = ANY (v_tree))
    ), total AS MATERIALIZED (
      SELECT count(*) AS entries
      FROM visible AS v JOIN skein.entry_search AS e ON e.session_uid = v.uid AND e.user_id = p_user AND e.part = 0
      WHERE p_role IS NULL OR e.role = p_role
    ), hits AS MATERIALIZED (
      SELECT w.at::integer AS at, w.weight, h.session_uid, h.seq, h."time"
      FROM unnest(p_words, p_weights) WITH ORDINALITY AS w (word, weight, at), LATERAL (${visibleEntries(withWord)}
        ORDER BY e."time" DESC, e.session_uid DESC, e.seq DESC LIMIT p_most
      ) AS h
    ), counted AS (
      SELECT h.at, count(*) AS count FROM hits AS h GROUP BY h.at
    ), weighed AS MATERIALIZED (
      SELECT c.at, ln(1 + (greatest(0, t.entries - c.count) + 0.5) / (c.count + 0.5))::double precision AS rarity
      FROM counted AS c, total AS t
    ), whole AS (${visibleEntries(withAllWords)}
        ORDER BY e."time" DESC LIMIT p_scored
    ), best AS (
      SELECT x.session_uid, x.seq, 0 AS part, max(x."time") AS "time", sum(x.weight) AS weight,
        array_agg(x.at) FILTER (WHERE x.at IS NOT NULL) AS held
      FROM (
        SELECT h.session_uid, h.seq, h."time", h.at, h.weight * w.rarity AS weight
        FROM hits AS h JOIN weighed AS w ON w.at = h.at
        UNION ALL SELECT a.session_uid, a.seq, a."time", NULL, 1000 FROM whole AS a
      ) AS x
      WHERE x."time" BETWEEN p_since AND p_until
      GROUP BY x.session_uid, x.seq
      ORDER BY weight DESC, "time" DESC, x.session_uid DESC, x.seq DESC LIMIT p_scored
    )
    SELECT NULL::text, NULL::integer, NULL::text, NULL::bigint, NULL::integer, NULL::bytea, NULL::integer[],
      t.entries, ARRAY(
        SELECT coalesce(c.count, 0)::integer FROM generate_subscripts(p_words, 1) AS g (at) LEFT JOIN counted AS c ON c.at = g.at
        ORDER BY g.at
      ), (SELECT count(DISTINCT e.session_uid) FROM skein.entry_search AS e WHERE e.user_id = p_user AND e.codes IS NULL)
    FROM total AS t
    UNION ALL
    SELECT e.session_uid, e.seq, e.role, e."time", e.length, e.codes, b.held, NULL::bigint, NULL::integer[], NULL::bigint
    FROM best AS b JOIN skein.entry_search AS e
      ON e.session_uid = b.session_uid AND e.seq = b.seq AND e.part = b.part AND e.user_id = p_user;
END
$$;`;

/** The migration that makes a search look up each word once, instead of once per session. */
export function speedUpSearch(): string {
  return searchEachWordOnce;
}
