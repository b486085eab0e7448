import type {
  EmbeddedEntry,
  Embedding,
  Scope,
  SearchHit,
  SearchQuery,
  SearchStore,
  UnembeddedEntry,
} from "../contract.ts";
import { hitLimit } from "../list-query.ts";
import type { CheckedText } from "../search/check-hits.ts";
import { fittingHit } from "../search/check-hits.ts";
import { queryTerms, withFilters } from "../search/query-terms.ts";
import {
  mostNearest,
  NearestItems,
  packedBytes,
  packVector,
  signsOf,
  takeHits,
  unpackBytes,
} from "../search/vectors.ts";
import type { PostgresDatabase } from "./database.ts";
import { acceptedText, userKey } from "./lookup-text.ts";
import { searchedSessions } from "./session-lists.ts";

/** The database compares only the signs of vectors. This many of the nearest entries are then compared exactly. */
const mostCompared = 4 * mostNearest;

/** Identifies an entry by its session and its position in the log. */
export interface EntryPlace {
  readonly uid: string;
  readonly seq: number;
}

interface NearRow {
  readonly session_uid: string;
  readonly seq: number;
  readonly role: string;
  readonly time: number;
  readonly vector: Uint8Array;
}

/** Reads the texts of entries. A text that cannot be read is `null`. */
type ReadTexts = (scope: Scope, places: readonly EntryPlace[]) => Promise<readonly (CheckedText | null)[]>;

/** Finds entries by their embeddings, which are stored next to their words. */
export class PostgresEmbeddings implements Required<Pick<SearchStore, "nearest" | "unembedded" | "embed">> {
  readonly #database: PostgresDatabase;
  readonly #readTexts: ReadTexts;

  constructor(database: PostgresDatabase, readTexts: ReadTexts) {
    this.#database = database;
    this.#readTexts = readTexts;
  }

  async nearest(
    scope: Scope,
    given: SearchQuery,
    { model, vector }: Embedding,
  ): Promise<readonly SearchHit[]> {
    const terms = queryTerms(given.text);
    const query = withFilters(given, terms);
    const packed = packVector(vector);
    const nearest = new NearestItems<EntryPlace & Pick<SearchHit, "role" | "time">>(packed, mostNearest);
    for (const { session_uid: uid, seq, role, time, vector: bytes } of await this.#readNear(
      scope,
      query,
      model,
      signsOf(packed),
    ))
      nearest.add({ uid, seq, role, time }, unpackBytes(bytes));
    const near = nearest.items;
    const texts = await this.#readTexts(scope, near);
    const read = async (at: number) => {
      const [text, written] = [texts[at] ?? null, near[at]];
      return text === null || written === undefined ? null : fittingHit(query, terms, text, written);
    };
    return takeHits([...near.keys()], read, hitLimit(given.limit));
  }

  async #readNear(scope: Scope, query: SearchQuery, model: string, signs: string): Promise<NearRow[]> {
    const where = searchedSessions(scope, query);
    const { role, since, until } = query;
    const conditions = [
      `v.model = ${where.value(acceptedText(model))}`,
      `length(v.signs) = ${where.value(signs.length)}`,
      ...(role === undefined ? [] : [`e.role = ${where.value(acceptedText(role))}`]),
      ...(since === undefined ? [] : [`e.time >= ${where.value(Math.floor(since))}`]),
      ...(until === undefined ? [] : [`e.time <= ${where.value(Math.floor(until))}`]),
    ];
    // PostgreSQL may evaluate conditions in any order, and signs of different lengths cannot be compared.
    const distance = `CASE WHEN length(v.signs) = ${where.value(signs.length)}
      THEN bit_count(v.signs # ${where.value(signs)}::bit varying) END`;
    return this.#database.read<NearRow>(
      scope.userId ?? null,
      `SELECT e.session_uid, e.seq, e.role, e.time, v.vector
       FROM skein.entry_search AS e JOIN skein.entry_embeddings AS v USING (session_uid, seq, part)
       WHERE e.session_uid IN (SELECT uid FROM skein.sessions WHERE ${where.sql}) AND ${conditions.join(" AND ")}
       ORDER BY ${distance}, e.time DESC, e.session_uid, e.seq LIMIT ${mostCompared}`,
      where.values,
    );
  }

  async unembedded(
    scope: Scope,
    model: string,
    { sessionId, limit }: { readonly sessionId?: string; readonly limit: number },
  ): Promise<readonly UnembeddedEntry[]> {
    const where = searchedSessions(scope, sessionId === undefined ? {} : { sessionId });
    const rows = await this.#database.read<{ readonly session_uid: string; readonly seq: number }>(
      scope.userId ?? null,
      `SELECT e.session_uid, e.seq FROM skein.entry_search AS e
       WHERE e.part = 0 AND e.session_uid IN (SELECT uid FROM skein.sessions WHERE ${where.sql}) AND NOT EXISTS (
         SELECT FROM skein.entry_embeddings AS v
         WHERE v.session_uid = e.session_uid AND v.seq = e.seq AND v.model = ${where.value(acceptedText(model))})
       ORDER BY e.time DESC, e.session_uid, e.seq DESC LIMIT ${where.value(limit)}`,
      where.values,
    );
    const places = rows.map(({ session_uid: uid, seq }) => ({ uid, seq }));
    const texts = await this.#readTexts(scope, places);
    return places.flatMap(({ uid, seq }, at) => {
      const entry = texts[at]?.entry;
      return entry === undefined ? [] : [{ place: `${uid} ${seq}`, entry }];
    });
  }

  async embed({ userId }: Scope, model: string, embedded: readonly EmbeddedEntry[]): Promise<void> {
    const rows = embedded.map(({ place, vector }) => {
      const at = place.lastIndexOf(" ");
      return { uid: place.slice(0, at), seq: Number(place.slice(at + 1)), packed: packVector(vector) };
    });
    await this.#database.transact(userId ?? null, async (sql) => {
      await sql(
        `INSERT INTO skein.entry_embeddings (session_uid, seq, part, user_id, model, signs, vector)
         SELECT e.session_uid, e.seq, 0, e.user_id, $2, g.signs::bit varying, decode(g.vector, 'hex')
         FROM unnest($3::text[], $4::integer[], $5::text[], $6::text[]) AS g (uid, seq, signs, vector)
         JOIN skein.entry_search AS e ON e.session_uid = g.uid AND e.seq = g.seq AND e.part = 0 AND e.user_id = $1
         ON CONFLICT (session_uid, seq, part)
         DO UPDATE SET model = excluded.model, signs = excluded.signs, vector = excluded.vector`,
        [
          ...[userKey(userId), acceptedText(model), rows.map(({ uid }) => uid), rows.map(({ seq }) => seq)],
          rows.map(({ packed }) => signsOf(packed)),
          rows.map(({ packed }) => Buffer.from(packedBytes(packed)).toString("hex")),
        ],
      );
    });
  }
}
