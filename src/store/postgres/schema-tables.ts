import { everyUserKey } from "./lookup-text.ts";

/** The tables of the first migration, with their indexes and row-level security. */

/**
 * Columns that are looked up contain `lookupText` of their value, so that any value fits in an index. `detail`, `meta`
 * and `header` contain JSON as text, because `jsonb` rejects `\u0000` and reorders keys. A column is never called
 * `user`, because an unquoted `user` is the database role.
 */
const sessions = `
CREATE TABLE skein.sessions (
  uid text COLLATE "C" PRIMARY KEY,
  user_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  id_key text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  channel text COLLATE "C" NOT NULL,
  label text COLLATE "C",
  spawn_id text COLLATE "C",
  spawned_by text COLLATE "C",
  forked_from text COLLATE "C",
  archived boolean NOT NULL,
  names text COLLATE "C" NOT NULL,
  sort_name text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  tokens double precision NOT NULL,
  cost double precision NOT NULL,
  bytes bigint NOT NULL,
  removed_at bigint,
  version bigint NOT NULL,
  tip_seq integer,
  is_odd boolean NOT NULL,
  revision bigint NOT NULL,
  fence bigint NOT NULL DEFAULT 0,
  holder_run text COLLATE "C",
  header text NOT NULL,
  meta text NOT NULL,
  detail text NOT NULL
);
CREATE UNIQUE INDEX sessions_key ON skein.sessions (user_id, key) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX sessions_id ON skein.sessions (user_id, id_key);
CREATE UNIQUE INDEX sessions_label ON skein.sessions (user_id, agent_id, label)
  WHERE removed_at IS NULL AND label IS NOT NULL;
CREATE INDEX sessions_spawn ON skein.sessions (user_id, spawn_id) WHERE removed_at IS NULL AND spawn_id IS NOT NULL;
CREATE INDEX sessions_parent ON skein.sessions (user_id, spawned_by)
  WHERE removed_at IS NULL AND spawned_by IS NOT NULL;
CREATE INDEX sessions_forks ON skein.sessions (user_id, forked_from)
  WHERE removed_at IS NULL AND forked_from IS NOT NULL;
CREATE INDEX sessions_trash ON skein.sessions (user_id, removed_at) WHERE removed_at IS NOT NULL;
CREATE INDEX sessions_agents ON skein.sessions (user_id, agent_id) WHERE removed_at IS NULL;
CREATE INDEX sessions_updated ON skein.sessions (user_id, archived, updated_at DESC, uid DESC)
  WHERE removed_at IS NULL;
CREATE INDEX sessions_of_all ON skein.sessions (archived, updated_at DESC, uid DESC) WHERE removed_at IS NULL;
CREATE INDEX sessions_created ON skein.sessions (user_id, archived, created_at DESC, uid DESC)
  WHERE removed_at IS NULL;
CREATE INDEX sessions_tokens ON skein.sessions (user_id, archived, tokens DESC, uid DESC) WHERE removed_at IS NULL;
CREATE INDEX sessions_cost ON skein.sessions (user_id, archived, cost DESC, uid DESC) WHERE removed_at IS NULL;
CREATE INDEX sessions_name ON skein.sessions (user_id, archived, sort_name, uid DESC) WHERE removed_at IS NULL;
`;

/**
 * `seq` is the position in the log. A chain is a sequence of entries in which each entry's parent is the one before it:
 * `chain_seq` is where the entry's chain starts, and `up_seq` is the parent of the chain's first entry. A branch is
 * therefore a few ranges of `seq`. The other positions describe the branch that ends at the entry: its last
 * conversation entry, where the context starts after the last compaction, and the entries that set the model, the
 * thinking level and the system prompt.
 */
const entries = `
CREATE TABLE skein.entries (
  session_uid text COLLATE "C" NOT NULL,
  seq integer NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  entry_id text COLLATE "C" NOT NULL,
  chain_seq integer NOT NULL,
  up_seq integer,
  leaf_seq integer,
  context_seq integer,
  model_seq integer,
  thinking_seq integer,
  system_seq integer,
  line text NOT NULL,
  PRIMARY KEY (session_uid, seq)
) PARTITION BY HASH (session_uid);
CREATE UNIQUE INDEX entries_id ON skein.entries (user_id, entry_id, session_uid);
`;

const partitions = 16;

function entryPartitions(): string {
  return Array.from(
    { length: partitions },
    (_, part) => `
CREATE TABLE skein.entries_${part} PARTITION OF skein.entries FOR VALUES WITH (MODULUS ${partitions}, REMAINDER ${part});
ALTER TABLE skein.entries_${part} ENABLE ROW LEVEL SECURITY;
ALTER TABLE skein.entries_${part} FORCE ROW LEVEL SECURITY;`,
  ).join("");
}

/**
 * The words of an entry, each with the user's prefix and as many positions as occurrences. An entry with very many
 * words has several parts, because a `tsvector` is limited to 1 MB.
 */
const others = `
CREATE TABLE skein.entry_search (
  session_uid text COLLATE "C" NOT NULL,
  seq integer NOT NULL,
  part integer NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  time bigint NOT NULL,
  length integer NOT NULL,
  words tsvector NOT NULL,
  PRIMARY KEY (session_uid, seq, part)
);
CREATE INDEX entry_search_words ON skein.entry_search USING gin (words);
CREATE INDEX entry_search_user ON skein.entry_search (user_id, session_uid, role) WHERE part = 0;
CREATE TABLE skein.state_values (
  session_uid text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  value text NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (session_uid, key)
);
CREATE INDEX state_values_user ON skein.state_values (user_id);
CREATE TABLE skein.blobs (
  user_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  sha256 text COLLATE "C" NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (user_id, agent_id, sha256)
);
`;

const firstTables = ["sessions", "entries", "entry_search", "state_values", "blobs"] as const;

/** The tables with users' data. Access to a partition is possible only through its table. */
export const userTables = [...firstTables, "entry_embeddings"] as const;

/**
 * Lets a transaction see only its user's rows. `FORCE` also applies the policies to the owner of the tables. Under the
 * second policy, only that owner can request the rows of every user. See `setWordPolicy` for the one exception.
 */
export function rowSecurity(table: string, isOwn: string, isForEveryUser: string): string {
  return `
ALTER TABLE skein.${table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE skein.${table} FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON skein.${table} USING (${isOwn}) WITH CHECK (${isOwn});
CREATE POLICY every_row ON skein.${table} TO CURRENT_USER USING (${isForEveryUser});`;
}

/** Without a user, the comparison is null and no row is visible. */
function ownRows(table: string): string {
  const setting = "current_setting('skein.user_id', true)";
  return rowSecurity(table, `user_id = nullif(${setting}, '')`, `${setting} = '${everyUserKey}'`);
}

/** The migration that adds embeddings. They are removed together with the words of their entries. */
export function createEmbeddings(): string {
  return `
CREATE TABLE skein.entry_embeddings (
  session_uid text COLLATE "C" NOT NULL,
  seq integer NOT NULL,
  part integer NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  signs bit varying NOT NULL,
  vector bytea NOT NULL,
  PRIMARY KEY (session_uid, seq, part),
  FOREIGN KEY (session_uid, seq, part) REFERENCES skein.entry_search ON DELETE CASCADE
);
CREATE INDEX entry_embeddings_user ON skein.entry_embeddings (user_id);
${ownRows("entry_embeddings")}`;
}

export function createTables(): string {
  return [sessions, entries, entryPartitions(), others, ...firstTables.map(ownRows)].join("\n");
}
